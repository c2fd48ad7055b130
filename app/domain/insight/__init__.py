"""What happens in the service, for people and live updates: figures, failures, searches, checks.

`figures` counts outcomes for `trends` and `failures`. `queues` knows what waits. `timelines` and the searches find
single things. `checks` and `readiness` examine the installation. `updates` is the stream behind live pages.
"""

"""What follows from events: the runs that begin or end because of them.

`batches` commits many tasks with all that follows from their events; `run_states` begins and changes runs, and says
whether a contact may enter again; `run_endings` ends runs, also those of a contact that goes; `triggers` finds the runs
that an event concerns, among the automations that `automation_listeners` knows.
"""

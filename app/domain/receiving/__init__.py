"""Processing of arrivals from providers and visitors: who sent them, and what they change.

Workers call `arrival_processing`, which processes the arrivals that `channels.arrivals` stored.
"""

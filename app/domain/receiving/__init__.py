"""Processing of arrivals from providers and visitors: who sent them, and what they change.

Workers call `arrival_processing`, which takes up what `channels.arrivals` stored.
"""

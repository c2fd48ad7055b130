"""What arrives from providers and visitors, carried out: whom it is from, and what it changes.

Workers call `arrival_processing`, which takes up what `arrivals` of the package `channels` stored.
"""

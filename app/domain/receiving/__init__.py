"""Arrivals from providers and visitors, processed: who sent them, and what they change.

Workers call `arrival_processing`, which takes up what `arrivals` of the package `channels` stored.
"""

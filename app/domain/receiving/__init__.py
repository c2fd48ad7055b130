"""Processes arrivals from providers and visitors, and joins signed visitors to contacts.

Workers call `arrival_processing`, which processes the arrivals that `channels.arrivals` stored.
"""

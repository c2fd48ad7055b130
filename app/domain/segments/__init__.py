"""Segments: named filters of contacts, and the runs that schedules start for these contacts."""

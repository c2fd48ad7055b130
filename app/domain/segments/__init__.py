"""Segments: filters of contacts that have a name, who is in them, and the runs that a schedule starts for these."""

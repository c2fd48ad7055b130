"""Broadcasts: one message, or the start of an automation, for each contact of a segment, and what became of each."""

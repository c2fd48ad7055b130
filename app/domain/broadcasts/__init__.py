"""Broadcasts: a message, or the start of an automation, for each contact of a segment."""

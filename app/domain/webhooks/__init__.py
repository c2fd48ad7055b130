"""Endpoints that receive events, the kinds of events there are, and how a receiver verifies one."""

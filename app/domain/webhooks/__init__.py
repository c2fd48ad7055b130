"""Endpoints that receive events, the kinds of events, and how receivers verify them."""

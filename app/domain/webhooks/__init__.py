"""Webhook endpoints and their restarts, the kinds of events, and the verification of webhooks."""

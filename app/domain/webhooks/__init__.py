"""Webhook endpoints, the kinds of events, and the verification of webhooks."""

"""Kinds of channels: the requests to each provider, and the meaning of its answers and webhooks."""

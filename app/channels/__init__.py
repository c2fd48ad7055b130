"""Kinds of channels: what each provider is asked, and what its answers and webhooks mean."""

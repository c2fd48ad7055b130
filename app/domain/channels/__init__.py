"""Connections to providers: channels, hooks, visitors, files, arrivals and outgoing messages.

The API and pages call `channels`, `media`, `visitors` and `chats`. Hooks store providers' webhooks through `arrivals`.
Workers run `channel_connections`, `channel_requests` and `fetches`.
"""

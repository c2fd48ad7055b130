"""The connections to providers: channels, their hooks, visitors and files, arrivals, and messages to be sent.

The API and pages call `channels`, `media`, `visitors` and `chats`; hooks store what providers say through `hooks` and
`arrivals`; workers run `channel_connections`, `channel_requests` and `fetches`.
"""

"""The connections to providers: channels, their hooks, visitors and files, what arrives and what waits to go out.

The API and pages call `channels`, `media`, `visitors` and `chats`; hooks store what providers say through `hooks` and
`arrivals`; workers run `channel_connections`, `channel_requests` and `fetches`.
"""

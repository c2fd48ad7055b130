"""Live updates: the `realtime` process, which streams what changes to members on pages and to visitors of chats."""

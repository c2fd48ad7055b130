"""Live updates: the `realtime` process streams changes to members on pages, tokens of the API and visitors of chats."""

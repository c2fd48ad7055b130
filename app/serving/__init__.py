"""How `web` reads requests: slow clients, callers' turns, unreadable requests, session cookies."""

"""How `web` reads requests: slow clients, unreadable requests, and the cookie of a session."""

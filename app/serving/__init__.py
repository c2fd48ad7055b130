"""How `web` reads requests: slow clients, limits for each caller, unreadable requests, session cookies."""

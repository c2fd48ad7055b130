"""How `web` reads requests: slow clients, limits by caller, unreadable requests, session cookies."""

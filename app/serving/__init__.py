"""How `web` reads requests: slow clients, bad requests, limits by caller, session cookies."""

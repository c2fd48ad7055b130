"""How `web` reads requests: slow clients, requests that cannot be parsed, and the cookie that holds a session."""

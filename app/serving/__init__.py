"""How `web` reads requests: what slow clients may hold of it, and what becomes of requests that cannot be parsed."""

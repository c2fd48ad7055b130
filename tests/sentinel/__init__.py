"""Stories on Redis servers that Sentinels watch, and on TLS: they need the machine's `redis-server`."""

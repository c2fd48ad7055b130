"""A month in an hour: a soak in which nights pass in seconds."""

"""The worker processes: a file of actors for each queue. A bell says where to look; the domain does the work."""

"""Pages about the work of the service: deliveries, events, jobs, runs, replays and failures."""

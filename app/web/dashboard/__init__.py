"""Pages about the service's work: deliveries, events, jobs, runs, replays and failures."""

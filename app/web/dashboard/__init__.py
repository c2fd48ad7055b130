"""Pages about the service's work, such as deliveries, runs and failures, and its search box."""

"""Pages about the results of automations."""

"""Pages of what automations lead to."""

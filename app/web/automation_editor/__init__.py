"""The editor of automations: forms on the picture of a draft, its working copy, and trials."""

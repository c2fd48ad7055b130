"""Pages of automations: the picture of a definition, its versions, and its runs."""

"""Pages of automations: the picture of a definition, its versions, and what its runs do."""

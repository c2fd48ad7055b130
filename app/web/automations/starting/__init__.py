"""Pages for new automations: from templates, or from files of other workspaces and products."""

"""Pages on which automations begin: templates, and files of other workspaces and products."""

"""Imports of automations: files of other products, and of other workspaces, as definitions of ours."""

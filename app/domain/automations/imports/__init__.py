"""Imports of automations: converts files of other products, and of other workspaces."""

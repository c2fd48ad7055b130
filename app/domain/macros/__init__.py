"""Saved replies and macros: texts and actions that members prepare for their work in the inbox."""

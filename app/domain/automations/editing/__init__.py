"""Editing: changes to definitions, even incomplete ones, and shared working copies."""

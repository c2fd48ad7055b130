"""Checks what the documentation says."""

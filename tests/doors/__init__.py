"""Attacks by strangers and tenants, each beside a victim that must hardly notice: `python -m tests.doors [name …]`."""

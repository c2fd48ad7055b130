"""Pages about contacts: found, changed, imported and exported."""

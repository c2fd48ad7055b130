"""Pages of what members prepare for their work in the inbox: saved replies and macros."""

"""Pages of saved replies and macros, which members prepare for the inbox."""

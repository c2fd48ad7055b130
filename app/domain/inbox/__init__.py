"""Finding one's work in the inbox: searches, saved views, and changes of many conversations at once."""

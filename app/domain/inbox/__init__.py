"""Finding work in the inbox: searches, saved views, and bulk changes of conversations."""

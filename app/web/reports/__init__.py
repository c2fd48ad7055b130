"""The reports of the inbox: which days they are about, their charts and their tables."""

"""Reports of the inbox: their days, charts and tables."""

"""Reports of the inbox: figures of messages and conversations, counted after the fact, and read over days of a zone."""

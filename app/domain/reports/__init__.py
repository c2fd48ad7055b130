"""Reports of the inbox: figures of messages and conversations, counted later, by days of a zone."""

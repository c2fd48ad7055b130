"""What happened, for people: figures, trends, failures, queues, timelines, searches, updates."""

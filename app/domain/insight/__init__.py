"""What happened, for people to look at: figures, trends, failures, queues, timelines, searches, live updates."""

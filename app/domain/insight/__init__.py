"""What happens in the service, for people and live updates: figures, failures, searches, checks."""

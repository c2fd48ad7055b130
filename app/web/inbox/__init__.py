"""The inbox: where members answer contacts."""

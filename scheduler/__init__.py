"""The scheduler: repeats passes that keep the service moving. One process leads, others stand by."""

"""The scheduler: mends what got stuck. One process leads, others stand by."""

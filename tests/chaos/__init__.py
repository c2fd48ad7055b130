"""`make chaos`: a long run under load and random faults, followed by an account of every write."""

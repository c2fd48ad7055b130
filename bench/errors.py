"""What makes a benchmark worthless."""


class BenchError(Exception):
    """A run did not go as it must for its figures to mean something; the message is for people."""

"""The error of a benchmark that went wrong."""


class BenchError(Exception):
    """A run whose figures would mean nothing; the message says why, for people."""

"""The error of a benchmark that failed."""


class BenchError(Exception):
    """The figures of the run would mean nothing. The message tells people why."""

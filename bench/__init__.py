"""The benchmarks of `make bench`: `python -m bench [accept] [latency] [sustained]`."""

"""The benchmarks of `make bench`: `python -m bench [--quick] [section …]`."""

"""Real servers on loopback, for `make up`, the tests and the benchmarks."""

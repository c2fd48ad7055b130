"""The tests, and in `stack` the real servers they run against."""

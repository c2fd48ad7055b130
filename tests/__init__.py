"""The tests, and in `stack` the real servers that they run against."""

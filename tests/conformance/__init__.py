"""Third-party tools against the running service; `make conformance` installs them."""

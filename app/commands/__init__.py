"""The commands of `python -m app`; most groups have a module of their own."""

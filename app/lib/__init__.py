"""Pieces that know nothing of the product."""

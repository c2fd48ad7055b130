"""Pieces that know nothing about the product."""

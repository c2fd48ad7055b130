"""Helpers that know nothing about the product."""

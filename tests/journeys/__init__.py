"""Whole stories over real servers and the real processes of the Procfile."""

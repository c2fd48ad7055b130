"""Whole stories over real servers and the Procfile's real processes."""

"""Providers' servers, played on loopback."""

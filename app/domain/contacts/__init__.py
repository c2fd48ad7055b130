"""Contacts, and what they bought and booked."""

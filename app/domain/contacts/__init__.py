"""Contacts, their identities, sales and bookings."""

"""Contacts as a whole: imported, exported, merged and erased."""

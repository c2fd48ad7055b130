"""Request bodies that the API shares with the forms of pages and with imports."""

"""Request bodies: sent to the API, by the forms of pages, and in the lines of imports."""

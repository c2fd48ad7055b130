"""The bodies that callers may send: by the API, in the lines of an import, and from the forms of pages."""

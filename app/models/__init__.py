"""Tables, their relations and their named queries: one file per noun."""

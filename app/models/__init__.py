"""Tables, their relations and their named queries: a file for each noun."""

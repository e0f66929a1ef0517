"""One module of handlers for each noun."""

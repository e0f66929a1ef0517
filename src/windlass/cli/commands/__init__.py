"""One module for each topic of commands."""

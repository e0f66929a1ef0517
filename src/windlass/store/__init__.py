"""All that is remembered, in SQLite."""

"""All that is remembered: in SQLite on disk, and the same in memory."""

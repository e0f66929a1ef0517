"""Projects, their agents' files, and tasks."""

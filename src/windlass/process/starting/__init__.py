"""Starting programs: a small process forks and prepares each one."""

"""Starting, watching and ending instances."""

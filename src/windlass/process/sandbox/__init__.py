"""Keep a run in a sandbox of bubblewrap."""

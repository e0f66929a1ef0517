"""What the readers of the providers have in common: lines to events, and words to troubles."""

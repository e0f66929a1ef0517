"""What messages mean: mentions, chat lines, loops, keys."""

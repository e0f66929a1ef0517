"""Making the commit that main would move to, and moving main."""

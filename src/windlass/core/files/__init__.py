"""Files of keys and values, read with places."""

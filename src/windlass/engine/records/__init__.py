"""Steps within a transaction that several topics share."""

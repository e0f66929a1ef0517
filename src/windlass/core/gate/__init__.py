"""Which change is tested, lands or goes back."""

"""Agents' working trees: made, renewed, saved, and what is read from them with care."""

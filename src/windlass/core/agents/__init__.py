"""Agents as a repository defines and names them."""

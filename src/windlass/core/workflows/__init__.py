"""Workflow files and their instances."""

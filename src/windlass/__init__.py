"""Windlass runs many coding agents on one codebase; only what passes the checks reaches main."""

__version__ = "0.1.0"

"""Builds every object once, runs the ticks, serves the surfaces."""

"""The life of a run: start, watch, judge."""

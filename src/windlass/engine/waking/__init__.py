"""The dispatch and deliver ticks, and what they would do."""

"""Files opened without following links, and programs' output captured: what several adapters need of the machine."""

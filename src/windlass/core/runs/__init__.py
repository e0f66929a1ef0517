"""How a run is started, told, kept and judged."""

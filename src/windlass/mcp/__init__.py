"""Tools for agents, by the Model Context Protocol. Nothing here is imported before someone calls `/mcp`."""

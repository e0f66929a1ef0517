"""Fields of events by name: `data.items.0.id`."""

from __future__ import annotations

from windlass.providers.output.events import Event


def at(event: Event, path: str) -> object:
    """What is there, or nothing."""
    found: object = event if path else None
    for name in path.split("."):
        match found:
            case dict():
                found = found.get(name)
            case list() if name.isdecimal() and int(name) < len(found):
                found = found[int(name)]
            case _:
                return None
    return found

"""Find a noun in the store, or raise NotFound in the same words everywhere."""

from __future__ import annotations

from windlass.core.errors import NotFound
from windlass.core.nouns.message import Kind, Message
from windlass.core.ports.store import N, Reading


def get(store: Reading, kind: type[N], key: str, *, hint: str = "") -> N:
    """The noun with that id. Raises NotFound."""
    found = store.find(kind, key)
    if found is None:
        raise NotFound(f"There is no {kind.__name__.lower()} {key}.", hint=hint)
    return found


def get_question(store: Reading, key: str) -> Message:
    """The message of a conversation that asks. Raises NotFound, also for a message that asks nothing."""
    found = store.find(Message, key)
    if found is None or found.kind is not Kind.ASK:
        raise NotFound(f"There is no conversation {key}.", hint="`windlass inbox` shows what was asked.")
    return found

"""Ways to lose, double or misdeliver what is said, each of which the judge must notice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sim_mutants import Patch

from windlass.core.nouns.message import Delivery, Receipt
from windlass.engine.messages import log, sending
from windlass.engine.records import closing
from windlass.engine.records.messages import put


def read_without_acknowledging(patch: Patch) -> None:
    """What is read stays unread."""
    patch.setattr(log, "told", lambda store, speaker, channel: [])
    move = Delivery.move

    def forgetful(self: Delivery, to: Receipt, *, run: str = "") -> Delivery:
        return move(self, Receipt.DELIVERED if to is Receipt.ACKED else to, run=run)

    patch.setattr(Delivery, "move", forgetful)


def drop_what_others_want(patch: Patch) -> None:
    """With its task, all mail of an agent is taken for told."""

    def all_of_it(store: Any, task: Any, **_: Any) -> list[Delivery]:
        return [replace(each, receipt=Receipt.READ) for each in store.undelivered(reader=task.agent)]

    patch.setattr(closing, "_about", all_of_it)
    patch.setattr(closing, "Receipt", type("Receipts", (), {"FAILED": Receipt.READ}))


def lose_a_reader(patch: Patch) -> None:
    """Of several readers, the last is forgotten."""

    def careless(store: Any, message: Any, **given: Any) -> Any:
        sent = put(store, replace(message, to=message.to[:-1] or message.to), **given)
        return replace(sent, to=message.to)

    patch.setattr(sending, "put", careless)


TALK_MUTANTS: dict[Callable[[Patch], None], str] = {
    read_without_acknowledging: r"(end: )?I4: \S+ (has heard|is stuck)|end: I4: m\d+ was shown",
    drop_what_others_want: r"end: I4: \S+ counts as read",
    lose_a_reader: r"end: I4: m\d+ is (not what was said|lost)",
}
"""Each with how it is found out."""

"""A key that was used: the same once more is the same message, and anything else is refused."""

from __future__ import annotations

from typing import Any

import pytest
from stage import play
from talk_room import Room

from windlass.core.errors import Conflict
from windlass.core.nouns.message import Kind


async def meet(room: Room) -> None:
    await room.begin("alice", "bob")
    for name in ("alice", "alice@one", "bob@one", "bob@two"):
        await room.send(to=(name,), body="Begin.")
    await room.move()


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        ({"to": ("@one",)}, {"to": ("@two",)}, "is for others"),
        ({"to": ("alice@one",)}, {"to": ("alice",)}, "is for others"),
        ({"to": ("alice",)}, {"to": ("alice@one",)}, "is for others"),
        ({"to": ("alice", "bob@one")}, {"to": ("alice",)}, "is for others"),
        ({"to": ("alice",)}, {"to": ("alice", "bob@one")}, "is for others"),
        ({"to": ("@one",)}, {"to": ("alice@one",)}, "is for others"),
        ({"to": ("alice",)}, {"everyone": True}, "is for others"),
        ({"to": ("alice",)}, {"to": ("alice",), "kind": Kind.HANDOFF}, "is of kind say"),
        ({"to": ("alice",)}, {"to": ("alice",), "reply_to": "m1"}, "answers nothing"),
        ({"channel": "main"}, {"channel": "@one"}, "stands in main"),
    ],
)
def test_something_else_under_a_used_key_is_refused(
    room: Room, first: dict[str, Any], second: dict[str, Any], why: str
) -> None:
    """Else its readers would never get it, and its sender would believe that they have."""

    async def story() -> None:
        await meet(room)
        sent = await room.send(**first, body="Go on.", key="k1")
        assert await room.send(**first, body="Go on.", key="k1") == sent
        with pytest.raises(Conflict, match=f"k1 is that of {sent.id}, which {why}"):
            await room.send(**second, body="Go on.", key="k1")

    play(story)


def test_a_name_means_the_same_once_more(room: Room) -> None:
    """From an instance a bare name stands for the one who is near; and a question is put to the one it was put to."""

    async def story() -> None:
        await meet(room)
        me = await room.speaker("alice@one")
        sent = await room.send(me, to=("bob",), body="Go on.", key="k1")
        assert sent.to == ("bob@one",)
        assert await room.send(me, to=("bob@one",), body="Go on.", key="k1") == sent
        asked = await room.ask(room.person, "Which port?", agent="alice", key="k2")
        assert await room.ask(room.person, "Which port?", agent="alice", key="k2") == asked
        with pytest.raises(Conflict, match="which is for others"):
            await room.ask(room.person, "Which port?", agent="alice@one", key="k2")

    play(story)


def test_who_is_alone_in_an_instance_may_say_it_again(room: Room) -> None:
    """What was for nobody is for nobody once more."""

    async def story() -> None:
        await meet(room)
        me = await room.speaker("bob@two")
        sent = await room.send(me, to=("@two",), body="Hello?", key="k1")
        assert sent.to == () and await room.send(me, to=("@two",), body="Hello?", key="k1") == sent

    play(story)

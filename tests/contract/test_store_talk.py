"""The questions that every store answers about what is said, to whom, and how far it got."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from store_builders import (
    AnyStore,
    a_delivery,
    a_message,
    a_run,
    an_ask,
    putting,
)

from windlass.core.errors import BadInput
from windlass.core.nouns.document import Document
from windlass.core.nouns.message import Kind, Receipt
from windlass.core.nouns.run import Outcome
from windlass.core.ports.store import FAR_BACK, Noun


class TestTalk:
    def test_messages_stand_in_the_order_of_their_numbers(self, store: AnyStore) -> None:
        """m2 comes before m10, whatever was written first, and a page begins after a number."""

        async def story() -> None:
            keys = ["m10", "m2", "m1", "m21", "m3"]
            await store.write(putting(*map(a_message, keys), a_message("m4", channel="task/t1")))

            async def ids(channel: str = "main", **how: Any) -> list[str]:
                return [each.id for each in await store.read(lambda reading: reading.messages(channel, **how))]

            assert await ids() == ["m1", "m2", "m3", "m10", "m21"]
            assert await ids(after=2, limit=2) == ["m3", "m10"]
            assert await ids("task/t1") == ["m4"]
            assert await ids("nowhere") == []

        asyncio.run(story())

    def test_what_was_said_is_shown_to_those_who_may_see_it(self, store: AnyStore) -> None:
        """What is for all, what one said, and what is for one; nobody named sees everything."""

        async def story() -> None:
            await store.write(
                putting(
                    a_message("m1", project="p", to=()),
                    a_message("m2", project="p", sender="ann", to=("bob",), direct=True),
                    a_delivery("m2", "bob"),
                    a_message("m10", project="p", sender="bob", to=("ann",), direct=True, channel="@i"),
                    a_delivery("m10", "ann"),
                    a_message("m3", project="q", to=()),
                )
            )

            async def ids(**how: Any) -> list[str]:
                return [each.id for each in await store.read(lambda reading: reading.said("p", **how))]

            assert await ids() == ["m1", "m2", "m10"]
            assert await ids(viewer="ann") == await ids(viewer="bob") == ["m1", "m2", "m10"]
            assert await ids(viewer="carol") == ["m1"]
            assert await ids(viewer="carol", channel="@i") == []
            assert (await ids(to="ann"), await ids(channel="@i")) == (["m10"], ["m10"])
            assert await ids(limit=2) == ["m2", "m10"]
            assert await ids(limit=2, newest=False) == ["m1", "m2"]
            assert await ids(after=2) == ["m10"]
            assert await ids(limit=0) == await ids(limit=-1) == []

        asyncio.run(story())

    def test_what_is_seen_does_not_hang_on_how_it_is_looked_for(self, store: AnyStore) -> None:
        """By channel, by reader, by page, from either end: always just what the viewer may see of it."""
        chance = random.Random(6)
        names, channels = ("ann", "bob", "human"), ("main", "@i", "task/t1")
        said = [
            a_message(
                f"m{number}",
                project=chance.choice("ppq"),
                sender=chance.choice(names),
                to=tuple(chance.sample(names, chance.randrange(3))),
                channel=chance.choice(channels),
                direct=chance.random() < 0.4,
            )
            for number in range(1, 90)
        ]

        def expected(viewer: str, home: str, channel: str, to: str, after: int) -> list[str]:
            return [
                each.id
                for each in said
                if each.project == "p" and channel in ("", each.channel) and int(each.id[1:]) > after
                if to in ("", *each.to)
                if viewer in ("", each.sender, *each.to) or (not each.direct and each.channel == home)
            ]

        async def story() -> None:
            owed = [a_delivery(each.id, reader) for each in said for reader in each.to]
            await store.write(putting(*said, *owed))
            for viewer, home, channel, to, after, limit, newest in product(
                ("", "ann", "carol"), ("main", "@i"), ("", "main", "@i"), ("", "bob"), (0, 40), (3, 100), (True, False)
            ):
                which = {"viewer": viewer, "home": home, "channel": channel, "to": to, "after": after}
                found = await store.read(lambda reading: reading.said("p", **which, limit=limit, newest=newest))  # type: ignore[arg-type]  # noqa: B023 - a mapping of both; it is asked at once
                whole = expected(viewer, home, channel, to, after)
                assert [each.id for each in found] == (whole[-limit:] if newest else whole[:limit]), which

        asyncio.run(story())

    def test_who_has_written_to_one_is_known(self, store: AnyStore) -> None:
        """Of those who are asked about, whether or not it was acknowledged."""

        async def story() -> None:
            said = [a_message("m1", sender="ann", to=("bob",)), a_message("m2", sender="eve", to=("ann",))]
            await store.write(putting(*said, a_delivery("m1", "bob", receipt=Receipt.ACKED), a_delivery("m2", "ann")))

            assert await store.read(lambda reading: reading.wrote_to("bob", ["ann", "eve", "dan"])) == {"ann"}
            assert await store.read(lambda reading: reading.wrote_to("bob", ["eve"])) == set()

        asyncio.run(story())

    def test_a_sender_s_own_key_is_found_again(self, store: AnyStore) -> None:
        """Another sender's is another one, and no key is no key."""

        async def story() -> None:
            said = (replace(a_message("m1"), key="k"), replace(a_message("m2", sender="ann"), key="k"), a_message("m3"))
            await store.write(putting(*said))

            async def key(sender: str, key: str) -> str:
                found = await store.read(lambda reading: reading.keyed(sender, key))
                return found.id if found else ""

            assert [await key("human", "k"), await key("ann", "k")] == ["m1", "m2"]
            assert [await key("human", ""), await key("bob", "k")] == ["", ""]

        asyncio.run(story())

    def test_an_inbox_is_what_is_not_acknowledged(self, store: AnyStore) -> None:
        """In order of sending; all of it, if one asks so; and each message tells how far it got."""

        async def story() -> None:
            letters = [
                a_delivery("m10"),
                a_delivery("m2", receipt=Receipt.READ),
                a_delivery("m3", receipt=Receipt.ACKED),
            ]
            await store.write(putting(*letters, a_delivery("m2", "ann", receipt=Receipt.FAILED)))

            async def keys(reader: str, **how: Any) -> list[str]:
                return [each.message for each in await store.read(lambda reading: reading.deliveries_to(reader, **how))]

            assert await keys("coder") == ["m2", "m10"]
            assert await keys("coder", acked=True) == ["m2", "m3", "m10"]
            assert await keys("coder", after=2) == ["m10"]
            assert await keys("coder", limit=1) == ["m2"]
            receipts = await store.read(lambda reading: reading.receipts("m2"))
            assert [(receipt.reader, receipt.receipt) for receipt in receipts] == [
                ("coder", Receipt.READ),
                ("ann", Receipt.FAILED),
            ]

        asyncio.run(story())

    def test_the_longest_way_is_what_came_through_most_hands(self, store: AnyStore) -> None:
        """Of all that one run was told after a person's last word; no run was told nothing."""

        async def story() -> None:
            said = [replace(a_message(f"m{each}", sender="bob"), hops=each % 3) for each in range(1, 6)]
            owed = [a_delivery(each.id, run="r1" if each.id != "m5" else "r2") for each in said]
            later = [a_delivery(key, run="r3") for key in ("m6", "m7")]
            more: list[Noun] = [a_message("m6"), a_message("m7", sender="bob"), *later]
            await store.write(putting(*said, *owed, a_delivery("m1", "ann"), a_delivery("m5", "ann", run="r3"), *more))

            runs = ("r1", "r2", "r3", "r9", "")
            found = await store.read(lambda reading: [reading.longest_way(run) for run in runs])

            assert [each.id if each else "" for each in found] == ["m2", "m5", "m7", "", ""]

        asyncio.run(story())

    def test_the_longest_way_counts_what_was_sent_during_a_run(self, store: AnyStore) -> None:
        """Whether or not it was told of it; what is older counts only if it was told, or answers it."""

        async def story() -> None:
            hops = {"m1": 9, "m2": 1, "m9": 4, "m10": 4, "m11": 8}
            said = [replace(a_message(key, sender="bob"), hops=n, sent_at=float(key[1:])) for key, n in hops.items()]
            owed = [a_delivery(key, run="r1" if key == "m2" else "") for key in hops if key != "m11"]
            await store.write(putting(*said, *owed, a_delivery("m11", "ann"), a_run("r1", starting_at=9.0)))

            async def longest(run: str = "r1", answered: str = "") -> str:
                found = await store.read(lambda reading: reading.longest_way(run, answered=answered))
                return found.id if found else ""

            assert [await longest(), await longest("r9"), await longest("")] == ["m9", "", ""]
            assert [await longest(answered=each) for each in ("m1", "m2", "m99")] == ["m1", "m9", "m9"]
            assert [await longest("r9", "m1"), await longest("", "m1")] == ["m1", "m1"]
            later = replace(a_message("m12"), sent_at=12.0)
            await store.write(putting(later, a_delivery("m12")))
            assert [await longest(), await longest(answered="m1")] == ["", ""]
            await store.write(putting(replace(a_message("m13", sender="bob"), sent_at=13.0), a_delivery("m13")))
            assert await longest() == "m13"

        asyncio.run(story())

    def test_of_much_that_was_heard_only_the_last_counts(self, store: AnyStore) -> None:
        """However long a run lives, it takes no longer to find; what it was told counts like what it was sent."""

        async def story() -> None:
            hops = {1: 9, 2: 8, FAR_BACK + 2: 3}
            said = [
                replace(a_message(f"m{each}", sender="bob"), hops=hops.get(each, 1), sent_at=10.0)
                for each in range(1, FAR_BACK + 3)
            ]
            owed = [a_delivery(each.id) for each in said]
            await store.write(putting(*said, *owed, a_run("r1", starting_at=9.0)))
            found = await store.read(lambda reading: reading.longest_way("r1"))
            assert found is not None and found.id == f"m{FAR_BACK + 2}"

        asyncio.run(story())

    def test_a_question_is_open_until_it_is_answered(self, store: AnyStore) -> None:
        """For each of those it was put to."""

        async def story() -> None:
            asks = [
                an_ask("m1", "ann", to=("bob",)),
                an_ask("m2", "ann", to=("bob",)),
                an_ask("m3", "ann", to=("eve",)),
            ]
            owed = [a_delivery("m1", "bob"), a_delivery("m2", "bob"), a_delivery("m3", "eve")]
            answer = a_message("m4", kind=Kind.ANSWER, reply_to="m1")
            await store.write(putting(*asks, *owed, answer))

            found = await store.read(lambda reading: reading.asks_to("bob"))

            assert [each.id for each in found] == ["m2"]

        asyncio.run(story())

    def test_who_waits_for_an_answer_is_known(self, store: AnyStore) -> None:
        """In its live run, from an agent, and not answered yet; oldest first."""

        async def story() -> None:
            runs = [
                a_run("r1", "ann", starting_at=5.0),
                a_run("r2", "bob", starting_at=5.0, outcome=Outcome.DONE),
            ]
            asks = [
                an_ask("m1", "ann", to=("eve",), sent_at=4.0),
                an_ask("m2", "bob", to=("eve",), sent_at=6.0),
                an_ask("m3", "ann", to=("human",), sent_at=6.0),
                an_ask("m4", "ann", to=("eve",), sent_at=6.0),
                an_ask("m10", "ann", to=("eve",), sent_at=6.0),
                an_ask("m9", "ann", to=("bob",), sent_at=6.0),
            ]
            await store.write(putting(*runs, *asks, a_message("m11", kind=Kind.ANSWER, reply_to="m4")))

            found = await store.read(lambda reading: reading.asking())

            assert [each.id for each in found] == ["m9", "m10"]

        asyncio.run(story())

    def test_a_document_s_past_is_in_the_journal(self, store: AnyStore) -> None:
        """Oldest first; and a project's pages are found by how their names begin."""

        async def story() -> None:
            first = Document(project="p", name="context/main/notes", body="1", author="human")
            second = first.revise("2", author="ann", now=5.0)
            other = replace(first, name="context/main%/notes")
            for each in (first, second, other):
                await store.write(lambda writing, each=each: writing.record("document.written", each.id, each))  # type: ignore[misc]  # mypy can't tell the type of a default

            assert await store.read(lambda reading: reading.revisions(first.id)) == [first, second]
            assert await store.read(lambda reading: reading.documents("p", "context/main/")) == [second]
            assert await store.read(lambda reading: reading.documents("q", "context/main/")) == []

        asyncio.run(story())

    def test_a_message_without_a_number_is_refused(self, store: AnyStore) -> None:
        """Order needs a number, so an id without one is bad input."""

        async def story() -> None:
            for key in ("hello", "m", "m0", "m01", "m-1", "m1x", "m" + "9" * 40, ""):
                with pytest.raises(BadInput, match="numbered"):
                    await store.write(putting(a_message(key)))
                with pytest.raises(BadInput, match="numbered"):
                    await store.write(putting(a_delivery(key)))
            assert await store.read(lambda reading: reading.last_seq()) == 0

        asyncio.run(story())

    def test_undelivered_is_what_an_agent_has_not_read(self, store: AnyStore) -> None:
        """Pending and delivered mail of agents, oldest message first; people and the system need no delivery."""

        async def story() -> None:
            waiting = [a_delivery("m10"), a_delivery("m2", "ann"), a_delivery("m2", receipt=Receipt.DELIVERED)]
            settled = [a_delivery(f"m{each}", receipt=Receipt(state)) for each, state in ((3, "read"), (4, "acked"))]
            others = [a_delivery("m5", "human"), a_delivery("m5", "system"), a_delivery("m6", receipt=Receipt.FAILED)]
            await store.write(putting(*waiting, *settled, *others))

            async def ids(limit: int = 1000) -> list[str]:
                return [each.id for each in await store.read(lambda reading: reading.undelivered(limit=limit))]

            assert await ids() == ["m2/ann", "m2/coder", "m10/coder"]
            assert await ids(1) == ["m2/ann"]
            await store.write(putting(a_delivery("m2", "ann", receipt=Receipt.READ)))
            assert await ids() == ["m2/coder", "m10/coder"]

        asyncio.run(story())

    def test_a_run_s_deliveries_come_in_order_of_sending(self, store: AnyStore) -> None:
        """What a prompt carried is told in the order in which it was said."""

        async def story() -> None:
            carried = [a_delivery(key, run="r1") for key in ("m10", "m9", "m1")]
            await store.write(putting(*carried, a_delivery("m2"), a_delivery("m3", run="r2")))

            async def ids(run: str) -> list[str]:
                return [each.message for each in await store.read(lambda reading: reading.deliveries_of(run))]

            assert await ids("r1") == ["m1", "m9", "m10"]
            assert await ids("") == []

        asyncio.run(story())

    def test_an_ask_is_open_until_it_is_answered(self, store: AnyStore) -> None:
        """Only questions to the human count, and only an answer closes one."""

        async def story() -> None:
            asks = [an_ask("m10"), an_ask("m2"), an_ask("m3", "ann"), an_ask("m4", to=("ann",)), an_ask("m5")]
            replies = [a_message("m11", kind=Kind.ANSWER, reply_to="m5"), a_message("m12", reply_to="m2")]
            statement = a_message("m13", to=("human",))
            await store.write(putting(*asks, *replies, statement))

            async def ids(**how: Any) -> list[str]:
                return [each.id for each in await store.read(lambda reading: reading.open_asks(**how))]

            assert await ids() == ["m2", "m3", "m10"]
            assert await ids(limit=2) == ["m2", "m3"]
            assert await ids(sender="coder") == ["m2", "m10"]
            assert await ids(channel="main") == ["m2", "m3", "m10"]
            assert await ids(channel="main", sender="ann") == ["m3"]
            assert await ids(channel="task/t1") == []
            await store.write(putting(a_message("m14", kind=Kind.ANSWER, reply_to="m2")))
            assert await ids() == ["m3", "m10"]

        asyncio.run(story())

"""Agents that talk on and on are stopped; people never are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from windlass.core.messages.loop_guard import LONGEST_CHAIN, LoopStop, circle_of, decide_brake, linked, remedy
from windlass.core.nouns.message import Delivery, MailItem, Message
from windlass.core.nouns.run import Cause, Outcome, Run
from windlass.core.settings.schema import Limits

NOW = 1000.0
SAID = Message(id="m1", channel="main", sender="bob", to=("alice",), body="Go on.")
RUN = Run(id="r1", agent="alice", task="t1", number=1, provider="command", outcome=Outcome.DONE)
LIMITS = Limits(hops=5, wakes=3)


def braked(*messages: Message, runs: list[Run] | None = None, now: float = NOW) -> LoopStop | None:
    items = [MailItem(message, Delivery(message=message.id, reader="alice")) for message in messages]
    return decide_brake(runs or [], items, LIMITS, now=now)


def test_each_agent_that_speaks_is_one_hop_more_and_a_person_begins_anew() -> None:
    """Of several messages that led to it, the one with the longest way counts."""
    assert linked("bob", []) == (1, ("bob",))
    assert linked("bob", [SAID, replace(SAID, hops=4, chain=("alice", "bob"))]) == (5, ("alice", "bob", "bob"))
    assert linked("human", [replace(SAID, hops=4)]) == (0, ())


def test_a_chain_remembers_only_its_end() -> None:
    """What is kept with each message does not grow for ever."""
    assert linked("z", [replace(SAID, hops=99, chain=("a",) * 50)])[1] == (*(("a",) * (LONGEST_CHAIN - 1)), "z")


def test_too_many_hops_wait_for_a_person() -> None:
    """Up to the limit they go on; beyond it, time alone does not help."""
    assert braked(replace(SAID, hops=5)) is None
    found = braked(replace(SAID, hops=6))
    assert found == LoopStop("6 messages went from agent to agent without a person", message="m1")


@pytest.mark.parametrize("sender", ["human", "system"])
def test_a_person_s_word_is_never_held_up(sender: str) -> None:
    """Nor is what the gate says; and what agents said meanwhile comes with it."""
    assert braked(replace(SAID, hops=99), replace(SAID, id="m2", sender=sender)) is None


def test_what_wakes_nobody_is_not_braked() -> None:
    """Someone who is only told has no brake to be released from."""
    item = MailItem(replace(SAID, hops=99), Delivery(message="m1", reader="alice", wakes=False))
    assert decide_brake([], [item], LIMITS, now=NOW) is None


@pytest.mark.parametrize(
    ("chain", "circle"),
    [
        ("abcabcabc", "abc"),
        ("xabcabcabc", "abc"),
        ("abcdabcdabcd", "abcd"),
        ("abababababab", ""),
        ("abcabc", ""),
        ("abcabcacb", ""),
        ("aaaaaaaaa", ""),
        ("", ""),
    ],
)
def test_a_circle_is_the_same_three_or_more_again_and_again(chain: str, circle: str) -> None:
    """Two who answer one another have a conversation, which hops alone limit."""
    assert circle_of(tuple(chain)) == tuple(circle)


def test_a_circle_is_named() -> None:
    """So that a person knows whom to talk to."""
    found = braked(replace(SAID, hops=4, chain=tuple("abcabcabc")))
    assert found is not None and "a, b" in found.reason and "circle" in found.reason


def test_a_brake_says_what_lets_its_agent_go_on() -> None:
    """A person's word; or nothing, where a minute does."""
    held = LoopStop("they talk on and on", message="m1")
    assert held.words("alice@a") == (
        'they talk on and on; a person\'s `windlass send "Go on." --to alice@a` lets it go on'
    )
    rests = LoopStop("it was woken too often", NOW + 10)
    assert rests.words("alice") == "it was woken too often; it goes on by itself within another minute"
    assert remedy("alice", "bob") == '`windlass send "Go on." --to alice --to bob`'


def test_who_is_woken_too_often_rests_until_the_minute_is_over() -> None:
    """Only wakes by mail count, and only those of the last minute."""
    runs = [replace(RUN, cause=Cause.MAIL, starting_at=NOW - each) for each in (70, 50, 40, 30)]
    found = braked(SAID, runs=runs)
    assert found == LoopStop("it was woken 3 times within a minute", NOW + 10)
    assert braked(SAID, runs=runs, now=NOW + 10) is None
    assert braked(SAID, runs=[replace(run, cause=Cause.TASK) for run in runs]) is None

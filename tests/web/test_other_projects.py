"""What an agent may read: every route and every tool is called by an agent of another project, and tells nothing.

The calls are made from the tables of routes and tools, so a new one is covered. A person makes the same calls and finds
every planted word, so the words are there to be found.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator

import pytest
from two_projects import MARK, TwoProjects
from walk import UNKNOWN, Ask, Heard, Walk

from windlass.core.agents.grants import Grant
from windlass.engine.views.event_projects import projects_of

PLANTED = (
    "asked asking brief busy check document file flow landed line own paths pause printed private project question "
    "queued role said secret trouble"
).split()
PRIVATE = ("asked", "printed", "private", "secret")
"""Words that only a person may read, and the agent that said or heard them."""
WORD = re.compile(rf"{MARK}([a-z]+)")


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def walk(loop: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    walk = Walk(TwoProjects(tmp_path_factory.mktemp("repos"), tmp_path_factory.mktemp("home")))
    loop.run(walk.begin())
    yield walk
    loop.run(walk.end())


@pytest.fixture(scope="module")
def spied(loop: asyncio.Runner, walk: Walk) -> list[Heard]:
    """What the agent of the other project is answered."""
    return loop.run(walk.routes(walk.stage.spy))


def test_a_person_finds_every_planted_word(loop: asyncio.Runner, walk: Walk) -> None:
    """Or else it would prove nothing that an agent does not."""
    heard = loop.run(walk.routes(only=lambda ask: ask.reads))
    found = {word for answer in heard for word in WORD.findall(answer.words)}
    assert set(PLANTED) <= found, set(PLANTED) - found


def test_an_agent_of_another_project_finds_none_by_any_route(spied: list[Heard]) -> None:
    """In no answer, no error and no stream."""
    leaks = {str(answer.ask): answer.words for answer in spied if MARK in answer.without_key}
    assert not leaks, leaks
    assert not [str(answer.ask) for answer in spied if answer.number >= 500]
    assert len(spied) > 200


def test_an_agent_of_another_project_changes_nothing_there(
    loop: asyncio.Runner, walk: Walk, spied: list[Heard]
) -> None:
    """Whatever it posts."""
    assert len([answer for answer in spied if not answer.ask.reads]) > 100
    victim = loop.run(walk.stage.engine.projects.at(str(walk.stage.repo))).id
    events = loop.run(walk.stage.store.read(lambda store: store.events(after=walk.planted, limit=10_000)))
    about = loop.run(walk.stage.store.read(lambda store: [projects_of(event, store) for event in events]))
    assert victim not in set().union(*about)


def test_what_another_project_has_is_answered_like_what_nobody_has(spied: list[Heard]) -> None:
    """An id tells not even that something is there."""
    named = [answer for answer in spied if answer.ask.key]
    unknown = {_asked(answer.ask): answer for answer in named if answer.ask.key in UNKNOWN}
    for answer in named:
        other = unknown[_asked(answer.ask)]
        assert (answer.number, answer.without_key) == (other.number, other.without_key), str(answer.ask)


def _asked(ask: Ask) -> str:
    return f"{ask.route.method} {ask.route.path} {ask.given}"


def test_an_agent_is_told_of_every_field_that_nobody_knows(spied: list[Heard]) -> None:
    """Where it may call at all, and nothing is missing before: also by a route to which nothing is to be said."""
    odd = {answer.ask.route.path: answer for answer in spied if "zzzz" in answer.ask.given and answer.number < 403}
    assert {answer.number for answer in odd.values()} == {400}
    assert {"/agent/check", "/agent/signal", "/messages", "/status", "/radar/watch"} <= odd.keys()


def test_an_agent_of_another_project_finds_none_by_any_tool(loop: asyncio.Runner, walk: Walk) -> None:
    """Nor by what else a client can list and read."""
    called = loop.run(walk.called(walk.stage.spy))
    assert not [answer for answer in called if MARK in answer]


def test_what_is_a_persons_alone_is_refused_to_every_agent(loop: asyncio.Runner, walk: Walk) -> None:
    """Whatever does not say that agents may call it: also to one of the same project."""
    heard = loop.run(walk.routes(walk.stage.neighbour, only=lambda ask: ask.route.grant is Grant.PERSON))
    assert {answer.number for answer in heard} == {403}


def test_an_agent_beside_them_reads_the_project_but_not_what_is_for_others(loop: asyncio.Runner, walk: Walk) -> None:
    """Neither what another prints, nor what is between it and the person."""
    heard = loop.run(walk.routes(walk.stage.neighbour, only=lambda ask: ask.reads))
    called = loop.run(walk.called(walk.stage.neighbour))
    found = {word for words in (*(answer.words for answer in heard), *called) for word in WORD.findall(words)}
    assert {"busy", "landed", "line", "said", "question"} <= found
    assert not found & set(PRIVATE), {
        str(answer.ask) for answer in heard if set(WORD.findall(answer.words)) & set(PRIVATE)
    }

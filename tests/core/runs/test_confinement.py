"""Whether a run is kept in a sandbox, and in which."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from windlass.core.errors import BadInput, Unavailable
from windlass.core.nouns.agent import Agent, Confinement, Permissions
from windlass.core.nouns.project import Project
from windlass.core.runs.provider import Provider
from windlass.core.runs.sandbox import SandboxKeeper, decide_sandbox, enclosure, require, require_hold, wanted
from windlass.core.runs.workdir import Site
from windlass.core.settings.schema import SandboxSettings

AUTO, ON, OFF = Confinement.AUTO, Confinement.ON, Confinement.OFF
WORKS = SandboxKeeper("bubblewrap")
BROKEN = SandboxKeeper("bubblewrap", "It is not installed.", "Install it.")


def an_agent(**more: object) -> Agent:
    return Agent(name="swift-otter", project="p1", provider="any", **more)  # type: ignore[arg-type]  # fields of an agent


@pytest.mark.parametrize(
    ("agent", "setting", "result"),
    [(AUTO, AUTO, AUTO), (AUTO, OFF, OFF), (AUTO, ON, ON), (OFF, ON, OFF), (ON, OFF, ON)],
)
def test_the_agents_own_word_counts_more(agent: Confinement, setting: Confinement, result: Confinement) -> None:
    """It was said for this piece of work; the setting is for all."""
    assert wanted(an_agent(sandbox=agent), SandboxSettings(mode=setting)) is result


@pytest.mark.parametrize(
    ("mode", "warden", "keeper"),
    [
        (AUTO, WORKS, "bubblewrap"),
        (AUTO, BROKEN, ""),
        (ON, WORKS, "bubblewrap"),
        (ON, BROKEN, "bubblewrap"),
        (OFF, WORKS, ""),
    ],
)
def test_what_has_to_keep_a_run(mode: Confinement, warden: SandboxKeeper, keeper: str) -> None:
    """With `on` it is never started without one, also if there was none when it was asked for."""
    assert decide_sandbox(mode, warden) == keeper


def test_on_without_one_is_refused() -> None:
    """With the reason, and what to do; the other words are content."""
    with pytest.raises(Unavailable, match="not installed") as refusal:
        require(ON, BROKEN)
    assert refusal.value.hint == "Install it."
    require(ON, WORKS)
    require(AUTO, BROKEN)
    require(OFF, BROKEN)


@pytest.mark.parametrize(
    ("reads", "keeper", "may", "refused"),
    [
        (False, "", Permissions.READ, True),
        (True, "", Permissions.READ, False),
        (False, "bubblewrap", Permissions.READ, False),
        (False, "", Permissions.EDIT, False),
    ],
)
def test_reading_is_held_by_flags_or_by_a_sandbox(reads: bool, keeper: str, may: Permissions, refused: bool) -> None:
    """Who has neither is not started; one of the user's own is told where flags would stand."""
    provider = Provider(name="mine", summary="", argv=lambda _: (), reads=reads, own=True)
    with pytest.raises(BadInput, match="can't be held to reading") if refused else nullcontext() as error:
        require_hold(an_agent(permissions=may), provider, keeper)
    assert not error or "[providers.mine.permissions]" in error.value.hint


def test_a_run_gets_its_own_and_no_more() -> None:
    """Our folder and the user's checkout are hidden; one that may only read writes nothing but its signal."""

    def around(permissions: Permissions) -> tuple[str, ...]:
        return enclosure(
            home="/wl",
            site=Site(an_agent(permissions=permissions), (Project(id="p1", name="p", path="/repo", main="main"),)),
            provider=Provider(name="any", summary="", argv=lambda _: (), folders=(".any",)),
            places=("/wl/worktrees/x",),
            readable=("/wl/hub",),
            writable=("/wl/git",),
            settings=SandboxSettings(writable=("~/cache",)),
        ).writable

    assert around(Permissions.EDIT) == ("/wl/worktrees/x", "/wl/git", ".any", "~/cache")
    assert around(Permissions.READ) == ("/wl/worktrees/x/.windlass", "/wl/git", ".any", "~/cache")

"""Kill the daemon before and after every persisted effect: the end is the same."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from crash_stage import CrashStage

import sample
from windlass.core.ports import Ports
from windlass.daemon.crash_points import EFFECTS

SHARDS = 8 if sample.long() else 2
pytestmark = [] if sample.long() else [pytest.mark.xdist_group("crash points")]  # they share the undisturbed run
QUESTIONS = {
    "git": {
        "archive",  # what it brings back goes to a person who asked, and is asked for again
        "absence",
        "inspect",
        "locate",
        "branch_taken",
        "files",
        "texts",
        "links",
        "locks",
        "has_worktree",
        "commit_there",
        "worktree_path",
        "reach",
        "environment",
        "landed",
        "diff",
        "diff_between",
        "quick_look",  # what it keeps is thrown away by the next daemon
        "since",
        "clash",
        "keep_spares",  # they save time and nothing else: what is half made is thrown away
        "diff_of",
    },
    "processes": {"find", "alive", "age", "strays", "follow", "forget", "output", "output_shared", "exit_code"}
    | {"values", "sandbox_keeper", "overwrite"},  # redacted twice is redacted
    "workdirs": {"signal", "signal_places", "has_mirrors", "shows"},
    "chats": {"look", "follow", "notification"},
    "setups": set[str](),
    "checks": set[str](),
}
"""What changes nothing that outlives us."""


@contextmanager
def a_stage(crash_at: str = "", steps: str = "") -> Iterator[CrashStage]:
    with tempfile.TemporaryDirectory(prefix="c", dir=os.environ["WINDLASS_TEST_ROOT"]) as folder:
        stage = CrashStage(Path(folder), crash_at=crash_at, steps=steps)
        try:
            yield stage
        finally:
            stage.leave()


@cache
def uncrashed() -> tuple[dict[str, Any], tuple[str, ...]]:
    """The end of an undisturbed run, and the names of all steps it went through, in order."""
    with tempfile.TemporaryDirectory(dir=os.environ["WINDLASS_TEST_ROOT"]) as folder:
        record = Path(folder) / "steps"
        with a_stage(steps=str(record)) as stage:
            stage.play()
            facts = stage.facts()
        return facts, tuple(Counter(record.read_text().splitlines()))


def test_every_effect_of_every_port_has_its_steps() -> None:
    """A port's method is known as an effect, which has steps, or as a question; a new one must choose."""
    kinds = get_type_hints(Ports)
    for port, questions in QUESTIONS.items():
        methods = {name for name in dir(kinds[port]) if not name.startswith("_")}
        assert methods == set(EFFECTS[port]) | questions, port
    assert set(EFFECTS) == set(QUESTIONS)


def test_the_scenario_goes_through_every_effect() -> None:
    """What the crash points do not reach is not proven: each effect happens in the scenario, but for some that are
    proven elsewhere: undoing, beginning anew (tests/git/test_git_renew.py), several repositories, pages that
    people edit (tests/engine/chatfiles/test_page_stories.py), a chat.md too long to be sent (test_chat_floods.py
    there), the output of a run that is long over (tests/engine/runs/test_packing_stories.py), and taking a branch or
    a person's checkout, which leaves a ref until it is asked for again."""
    _, names = uncrashed()
    reached = {name.rsplit(".", 1)[0] for name in names}

    effects = {f"{port}.{effect}" for port, effects in EFFECTS.items() for effect in effects}
    assert effects - reached == {
        *("git.revert", "git.renew", "git.take", "git.branch", "git.checkout", "git.mixed"),
        "git.delete_hub",  # tests/e2e/test_gone.py
        *("workdirs.gather", "chats.keep", "chats.replace", "processes.drop_output"),
    }


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_crash_anywhere_changes_nothing_in_the_end(shard: int) -> None:
    """Killed at a step and started again, the same has landed, been refused, asked, sent back and stopped: once.

    And every promise is kept, as `doctor --check` sees it.
    """
    expected, names = uncrashed()
    for name in sample.CRASH_POINTS.of(names)[shard::SHARDS]:
        with a_stage(crash_at=name) as stage:
            stage.play()

            assert stage.starts > 1, f"the daemon was not killed at {name}"
            assert stage.facts() == expected, f"killed at {name}"
            assert stage.broken() == [], f"killed at {name}"

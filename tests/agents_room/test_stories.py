"""Windlass with the real Claude Code and the real Codex: from a piece of work to main.

All agents of a file are given their work at once, and work side by side; each test looks at its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from crew import CLIS, Crew, crew, lands

pytestmark = [pytest.mark.agents, pytest.mark.xdist_group("stories")]


@pytest.fixture(scope="module")
def team() -> Iterator[Crew]:
    """Every agent of this file, at work."""
    with crew(ANTHROPIC_API_KEY="sk-scripted") as made:
        for cli in CLIS:
            made.give(cli, "free", lands(f"free-{cli}.txt"), "--sandbox", "off")
            made.give(cli, "kept", lands(f"kept-{cli}.txt"), "--sandbox", "on")
        yield made


@pytest.mark.parametrize("cli", CLIS)
class TestLanding:
    @pytest.mark.parametrize(("story", "keeper"), [("free", "unenforced"), ("kept", "bubblewrap")])
    def test_it_edits_commits_and_lands(self, team: Crew, cli: str, story: str, keeper: str) -> None:
        """With its own tools it writes and commits; its signal is believed, and main has the file."""
        name = team.names[f"{story}-{cli}"]
        team.landed(name)
        page = team.page(name)
        [run] = page["runs"]
        assert (run["outcome"], run["trouble"], run["sandbox"]) == ("done", None, keeper)
        assert "signal: done" in run["evidence"]
        assert team.house.git("show", f"main:{story}-{cli}.txt") == "new"

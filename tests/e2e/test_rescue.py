"""Saved work: listed, read and brought back by a person, after a landing and after a failure."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from e2e_stage import Stage, exact, lines, stage

pytestmark = pytest.mark.xdist_group("rescue")  # one worker plays the story, once

KEYS = "number id agent saved_at why commits file_count files landed ref commit base also project"
HARMFUL = "\x1b]52;c;cm0=\x07 caf\N{LATIN SMALL LETTER E WITH ACUTE}"


@dataclass(frozen=True)
class Story:
    """One agent landed and left a file behind; another failed with a file that it had not committed."""

    house: Stage
    landed: str
    failed: str


@pytest.fixture(scope="module")
def story() -> Iterator[Story]:
    with stage(settings="[limits]\nreminders = 0\nretries = 0\n") as house:
        left = f"printf '%s\\n' '{HARMFUL}' > left.txt"
        view = house.land("Add b", lines("echo bee > b.txt", "git add -A", "git commit -qm b", left))
        house.event("agent.retired", view["agent"]["name"])
        failed = house.work("Fail", lines("echo half > half.txt", "windlass agent fail 'Too hard.'"))
        house.event("task.failed")
        yield Story(house, view["agent"]["name"], failed)


def test_what_main_does_not_have_is_listed(story: Story) -> None:
    """Newest first, with the agent, when, how much and why; programs get stable keys."""
    items = story.house.wl("rescue", "list", "--json").value
    assert [exact(KEYS, item) for item in items] == [True, True, True]
    assert [item["id"] for item in items] == [f"{story.failed}/r2", f"{story.landed}/1", f"{story.landed}/r1"]
    assert [item["number"] for item in items] == [3, 2, 1]
    assert [item["files"] for item in items] == [["half.txt"], ["left.txt"], ["left.txt"]]
    assert [item["commits"] for item in items] == [0, 0, 0]
    shown = story.house.wl("rescue", "list").out
    assert "its worktree was removed" in shown
    assert f"windlass rescue show {story.failed}/r2" in shown


def test_a_list_can_be_limited_to_the_project_here(story: Story) -> None:
    """Another repository has nothing saved."""
    other = story.house.folder / "other"
    if not other.exists():
        other.mkdir()
        story.house.git("init", "-q", cwd=other)
        story.house.git("commit", "-q", "--allow-empty", "-m", "Begin", cwd=other)
    assert story.house.wl("rescue", "list", "--here", "--json", cwd=other).value == []
    assert len(story.house.wl("rescue", "list", "--here", "--json").value) == 3


def test_it_is_shown_harmless_on_a_terminal_and_exact_in_a_pipe(story: Story) -> None:
    """Escapes are escaped for eyes; git gets the very bytes, and can apply them."""
    house = story.house
    seen = house.on_terminal("rescue", "show", f"{story.landed}/1", NO_COLOR="1")
    assert "+\\x1b]52;c;cm0=\\x07 caf" in seen
    assert "\x1b]52" not in seen
    assert f"windlass rescue restore {story.landed}/1" in seen
    diff = house.raw("rescue", "show", f"{story.landed}/1")
    subprocess.run(["git", "apply", "-"], cwd=house.repo, input=diff, check=True)
    assert (house.repo / "left.txt").read_text() == f"{HARMFUL}\n"
    (house.repo / "left.txt").unlink()


def test_a_number_a_name_and_a_ref_mean_the_same(story: Story) -> None:
    """All three are in the list."""
    item = story.house.wl("rescue", "list", "--json").value[1]
    shown = [story.house.wl("rescue", "show", str(item[key]), "--json").value for key in ("number", "id", "ref")]
    assert shown[0] == shown[1] == shown[2]
    assert "left.txt" in shown[0]["diff"]


def test_a_landed_agents_file_comes_back_as_a_branch(story: Story) -> None:
    """The branch is new; a second time it is refused, with the way out; nothing else of the person's moves."""
    house, name = story.house, f"rescue/{story.landed}-1"
    before = house.git("status", "--porcelain", "--branch"), house.git("rev-parse", "main")
    told = house.wl("rescue", "restore", f"{story.landed}/1").out
    assert f"on branch {name}" in told
    assert house.git("show", f"{name}:left.txt") == HARMFUL
    assert (house.git("status", "--porcelain", "--branch"), house.git("rev-parse", "main")) == before
    again = house.wl("rescue", "restore", f"{story.landed}/1", code=4)
    assert "--branch NAME" in again.err
    house.wl("rescue", "restore", f"{story.landed}/1", "--branch", "main", code=4)
    assert house.git("rev-parse", "main") == before[1]
    made = house.wl("rescue", "restore", f"{story.landed}/1", "--branch", "mine", "--json").value
    assert house.git("rev-parse", "mine") == made["commit"]


def test_a_failed_agents_file_comes_back_into_a_folder(story: Story) -> None:
    """Into one that is not there yet; its worktree stays as it is, and nothing saved is removed."""
    house = story.house
    house.wl("rescue", "restore", f"{story.failed}/r2", "--to", "../back")
    assert (house.folder / "back/half.txt").read_text() == "half\n"
    assert (house.folder / "back/README.md").exists()
    house.wl("rescue", "restore", f"{story.failed}/r2", "--to", "../back", code=4)
    assert [worktree.name for worktree in house.worktrees()] == [story.failed]
    assert len(house.wl("rescue", "list", "--json").value) == 3


def test_a_retired_agents_page_names_what_brings_its_files_back(story: Story) -> None:
    """The ref, and the command; one that still has its worktree has neither."""
    shown = story.house.wl("show", story.landed).out
    assert f"refs/windlass/rescue/{story.landed}/1/tree" in shown
    assert f"windlass rescue restore {story.landed}/1" in shown
    assert story.house.agent(story.failed)["rescue"] is None


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("show", "99"), 3, "Nothing is saved as 99."),
        (("show", "refs/heads/main"), 3, "Nothing is saved as"),
        (("restore", "../../x"), 3, "Nothing is saved as"),
        (("show", "\x1b[2J"), 2, "names nothing"),
        (("restore", "1", "--branch", "a", "--to", "b"), 2, "Choose --branch or --to"),
        (("restore", "1", "--to", " "), 2, "--to is empty"),
        (("restore", "1", "--branch", "--upload-pack=x"), 2, "is not the name of a branch"),
        (("restore", "1", "--to", "no/such/place"), 3, "There is no folder"),
        (("frobnicate",), 2, "No such command"),
    ],
)
def test_bad_input_is_refused_and_makes_nothing(story: Story, words: tuple[str, ...], code: int, sentence: str) -> None:
    """One sentence, the right exit code, and no branch or folder."""
    before = story.house.git("for-each-ref"), sorted(story.house.repo.iterdir())
    told = story.house.wl("rescue", *words, code=code)
    assert sentence in told.err
    assert (story.house.git("for-each-ref"), sorted(story.house.repo.iterdir())) == before


def test_an_agent_may_look_but_not_restore(house: Stage) -> None:
    """What it would restore goes into the person's repository, so only a person decides that."""
    tells = "windlass rescue list; windlass rescue restore 1; echo ended $?; windlass doctor --check; echo $?; exit 1"
    name = house.work("Try it", tells)
    house.event("run.crashed", "r1")
    said = house.wl("logs", name, "--run", "1").out
    assert "Main has all that is saved." in said
    assert "An agent may not do that" in said
    assert "ended 5" in said
    assert said.splitlines()[-1] == "5"

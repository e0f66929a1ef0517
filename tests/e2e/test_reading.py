"""All that can be read about one landed change: each command, for people and for programs."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e_stage import Stage, exact, lines, stage

pytestmark = pytest.mark.xdist_group("reading")  # one worker plays the story, once

PRINTED = b"caf\xc3\xa9 \x1b[31mred\x1b[0m\r\n\xff\x00 half a line"
LIST = "name instance source status evidence age_seconds task provider model permissions sandbox run cost_usd"
QUEUE = "id branch task agent state reason candidate checks"


class Story:
    """One agent whose change has landed; it wrote down how it found the world."""

    def __init__(self, house: Stage) -> None:
        self.house = house
        self.seen = house.flag("seen")
        self.seen.mkdir()
        command = lines(
            f"env -0 > '{self.seen}/env'",
            f"cat > '{self.seen}/stdin'",
            f"cp \"$WINDLASS_PROMPT\" '{self.seen}/prompt'",
            f"pwd > '{self.seen}/pwd'",
            f"git branch --show-current > '{self.seen}/branch'",
            "printf 'caf\\303\\251 \\033[31mred\\033[0m\\r\\n\\377\\000 half a line'",
            "printf 'bee\\n' > b.txt",
            "git add -A",
            "git commit -q -m 'Add b'",
        )
        self.before = house.git("rev-parse", "main")
        words = ("--brief", "It must buzz.", "--wait", "--json")
        self.view = house.wl("work", "Add b", "--command", command, *words).value
        self.name = str(self.view["agent"]["name"])
        house.event("agent.retired", self.name)

    @property
    def variables(self) -> dict[str, str]:
        """The agent's environment."""
        text = (self.seen / "env").read_text()
        return dict(part.split("=", 1) for part in text.split("\0") if part)

    def noted(self, what: str) -> str:
        return (self.seen / what).read_text()


@pytest.fixture(scope="module")
def story() -> Iterator[Story]:
    with stage(checks="test -e b.txt") as house:
        yield Story(house)


# ── lists ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_list_has_stable_keys(story: Story) -> None:
    """`list --json` is an array of objects with these keys; only the end may grow."""
    [item] = story.house.wl("list", "--all", "--json").value
    assert exact(f"{LIST} task_title project unpriced_runs", item)
    assert (item["name"], item["status"], item["source"], item["provider"]) == (
        story.name,
        "completed",
        "work",
        "command",
    )
    assert (item["task"], item["run"], item["cost_usd"]) == ("t1", "r1", 0.0)
    assert item["age_seconds"] >= 0


def test_a_finished_agent_is_listed_only_on_request(story: Story) -> None:
    """Without `--all` the list has those at work; each list says how old its facts are."""
    assert story.house.wl("list", "--json").value == []
    assert "No agent is at work." in story.house.wl("list").out
    shown = story.house.wl("ls", "--all").out
    assert story.name in shown
    assert "c1 landed" in shown
    assert shown.splitlines()[-1].startswith("as of ")


def test_show_adds_runs_session_worktree_and_usage(story: Story) -> None:
    """`show --json` has the list's keys, and all that belongs to the agent."""
    shown = story.house.wl("show", story.name, "--json").value
    assert set(f"{LIST} runs session worktree usage branch questions reports change".split()) <= shown.keys()
    [run] = shown["runs"]
    keys = "id number cause outcome reason evidence trouble model sandbox exit_code pid session base"
    assert exact(f"{keys} started_at ended_at usage", run)
    assert (run["outcome"], run["exit_code"], run["cause"]) == ("done", 0, "task")
    assert "1 commit on work/" in "; ".join(run["evidence"])
    assert shown["change"]["state"] == "landed"


def test_show_says_it_in_words(story: Story) -> None:
    """A person sees the task, the branch, the run and what to type next."""
    shown = story.house.wl("show", story.name).out
    for words in (story.name, "completed", "Add b", f"work/{story.name}", "exit code 0", "windlass receipt c1"):
        assert words in shown


def test_queue_has_stable_keys(story: Story) -> None:
    """`queue --json` is an array of objects with these keys; the landed ones come with `--all`."""
    assert story.house.wl("queue", "--json").value == []
    [item] = story.house.wl("queue", "--all", "--json").value
    assert exact(f"{QUEUE} title returns undoes hold rank paused age_seconds", item)
    assert (item["id"], item["branch"], item["task"], item["agent"]) == ("c1", f"work/{story.name}", "t1", story.name)
    assert (item["state"], item["candidate"]) == ("landed", story.house.git("rev-parse", "main"))
    assert exact("command tree passed exit_code seconds reason sandbox", item["checks"][0])


def test_a_list_can_be_limited_to_the_project_here(story: Story) -> None:
    """Another repository has no agents and no changes of its own."""
    other = story.house.folder / "other"
    story.house.git("clone", "-q", str(story.house.repo), str(other))
    assert story.house.wl("list", "--all", "--here", "--json", cwd=other).value == []
    assert story.house.wl("queue", "--all", "--here", "--json", cwd=other).value == []
    assert len(story.house.wl("list", "--all", "--here", "--json").value) == 1


# ── the proof ────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_receipt_agrees_with_git(story: Story) -> None:
    """Every fact of the receipt can be found in the person's own repository."""
    git, receipt = story.house.git, story.house.wl("receipt", "c1", "--json").value
    keys = (
        "change title agent task main before after tree moved_to tested_tree tested_with commit_count commits"
        " file_count files checks tests failed_before landed_at undo undone_by"
    )
    assert exact(keys, receipt)
    assert (receipt["change"], receipt["title"], receipt["main"]) == ("c1", "Add b", "main")
    assert (receipt["agent"], receipt["task"]) == (story.name, "t1")
    assert (receipt["before"], receipt["after"]) == (story.before, git("rev-parse", "main"))
    assert receipt["tree"] == git("rev-parse", "main^{tree}")
    assert receipt["commits"] == git("rev-list", "main^1..main^2").split()
    assert receipt["files"] == ["b.txt"]
    assert abs(time.time() - receipt["landed_at"]) < 300
    assert receipt["undo"] == "windlass undo c1"
    [check] = receipt["checks"]
    assert (check["command"], check["passed"], check["exit_code"]) == ("test -e b.txt", True, 0)
    assert (receipt["moved_to"], receipt["tested_with"]) == (receipt["after"], [])
    assert check["tree"] == receipt["tree"] == receipt["tested_tree"], "they passed on the very tree that main has"


def test_the_receipt_is_one_page_for_people(story: Story) -> None:
    """It names who, what, the proof, and the command that undoes it."""
    shown = story.house.wl("receipt", "c1").out
    for words in ("Add b", story.name, "test -e b.txt: passed", "b.txt", "windlass undo c1"):
        assert words in shown


def test_the_branch_is_shown_in_the_persons_repository(story: Story) -> None:
    """`work/<name>` is there with the agent's own commit, which is by the person."""
    branch = f"work/{story.name}"
    assert story.house.git("log", "-1", "--format=%s %an %ae", branch) == "Add b Test Person person@example.com"
    assert story.house.git("rev-parse", branch) == story.house.git("rev-parse", "main^2")


def test_the_landing_names_its_origin(story: Story) -> None:
    """The merge commit says which change, agent and task it came from."""
    message = story.house.git("log", "-1", "--format=%B", "main")
    assert message.splitlines()[0] == "Land c1: Add b"
    assert f"Agent: {story.name}" in message
    assert "Task: t1" in message


def test_the_worktree_is_removed_after_landing(story: Story) -> None:
    """What is on main needs no second copy; nothing but the empty folder of the project stays."""
    assert not Path(story.noted("pwd").strip()).exists()
    assert story.house.worktrees() == []


def test_diff_shows_what_landed(story: Story) -> None:
    """After landing it is what main got, and git can read it."""
    shown = story.house.wl("diff", story.name).out
    assert shown.rstrip("\n") == story.house.git("diff", story.before, "main")
    assert story.house.wl("diff", story.name, "--json").value["diff"] == shown


# ── output and events ────────────────────────────────────────────────────────────────────────────────────────


def test_raw_logs_are_the_very_bytes(story: Story) -> None:
    """Escapes, half characters and a missing line end are as they were printed."""
    assert story.house.raw("logs", story.name, "--raw") == PRINTED
    assert story.house.raw("logs", story.name, "-f", "--raw") == PRINTED


def test_logs_for_people_obey_nothing(story: Story) -> None:
    """What a terminal would obey is shown as text."""
    shown = story.house.raw("logs", story.name)
    assert b"\x1b" not in shown
    assert "café".encode() in shown
    assert shown.endswith(b"half a line\n")


def test_logs_for_programs_carry_the_bytes(story: Story) -> None:
    """Each line has the run, its number, the offset, the time, the bytes and the text."""
    rows = [json.loads(line) for line in story.house.wl("logs", story.name, "--json").out.splitlines()]
    assert all(exact("run number offset time raw text said", row) for row in rows)
    assert rows[0]["offset"] == 0


def test_logs_tell_when_and_begin_where_one_wants(story: Story) -> None:
    """With --times each line has its time; --since leaves out what is older."""
    timed = story.house.wl("logs", story.name, "--times").out.splitlines()
    assert all(re.match(r"\d\d:\d\d:\d\d  ", each) for each in timed)
    assert story.house.wl("logs", story.name, "--since", "1h").out == story.house.wl("logs", story.name).out
    assert story.house.wl("logs", story.name, "--since", "0.001s").out == ""


def test_a_run_that_is_not_there_is_not_found(story: Story) -> None:
    """`logs --run 9` says how many runs there are."""
    assert "it has 1" in story.house.wl("logs", story.name, "--run", "9", code=3).err


def test_watch_numbers_every_event_without_a_gap(story: Story) -> None:
    """From the first on, `seq` counts by one; each line has the same four keys."""
    count = len(story.house.events())
    events = _watched(story.house, count)
    assert [event["seq"] for event in events] == list(range(1, count + 1))
    assert all(list(event)[:4] == ["seq", "time", "kind", "subject"] for event in events)
    assert [event["time"] for event in events] == sorted(event["time"] for event in events)


def test_watch_tells_the_whole_story(story: Story) -> None:
    """Every step from the order to the retirement is one event, in this order."""
    kinds = [event["kind"] for event in story.house.events()]
    steps = (
        "project.added task.added run.starting run.started run.output run.finished task.submitted change.queued "
        "change.staged change.tested change.landed agent.retired"
    )
    assert [kind for kind in kinds if kind in steps.split() and kind != "run.output"] == steps.replace(
        "run.output ", ""
    ).split()
    assert "run.output" in kinds


def test_events_tell_where_output_is_not_what_it_was(story: Story) -> None:
    """The bytes are kept once: the event has run, offset and length."""
    output = [event for event in story.house.events() if event["kind"] == "run.output"]
    assert sum(each["length"] for each in output) == len(PRINTED)
    assert all("red" not in json.dumps(each) for each in output)


def _watched(house: Stage, count: int) -> list[Any]:
    watcher = house.begin("watch", "--since", "0")
    assert watcher.stdout
    return [json.loads(watcher.stdout.readline()) for _ in range(count)]


# ── what an agent finds ──────────────────────────────────────────────────────────────────────────────────────


def test_an_agent_is_told_who_and_where_it_is(story: Story) -> None:
    """Its name, run, project, prompt and signal file are in its environment, and it stands in its worktree."""
    variables = story.variables
    assert variables["WINDLASS_AGENT"] == story.name
    assert variables["WINDLASS_RUN"] == "r1"
    assert variables["WINDLASS_PROJECT"] == str(story.house.repo)
    assert variables["WINDLASS_HOME"] == str(story.house.state)
    worktree = story.noted("pwd").strip()
    assert variables["WINDLASS_SIGNAL"] == f"{worktree}/.windlass/output/signal.json"
    assert story.noted("branch").strip() == f"work/{story.name}"


def test_the_prompt_comes_by_file_and_by_standard_input(story: Story) -> None:
    """Both are the same, and have the title, the brief and how to say that it is done."""
    prompt = story.noted("prompt")
    assert story.noted("stdin") == prompt
    for words in ("# Add b", "It must buzz.", "signal.json", f"work/{story.name}"):
        assert words in prompt


def test_a_commands_environment_is_the_persons(story: Story) -> None:
    """It has the person's PATH and home, and none of git's variables that would lead it elsewhere."""
    variables = story.variables
    assert variables["HOME"] == story.house.environment["HOME"]
    assert variables["PATH"] == story.house.environment["PATH"]
    assert not {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"} & variables.keys()

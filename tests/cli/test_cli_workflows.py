"""validate, examples and migrate: no daemon is asked, and none is started."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typing_room import Keyboard

GOOD = """\
name: review
context:
params:
  base: {default: main}
agents:
  reviewer: {model: acme/large, system_prompt: You review.}
setup:
  - shell: git diff ${{ params.base }}
    as: diff
kickoff: "@reviewer ${{ diff }}"
"""
OLD = "agents:\n  coder: {role: Codes}\ntasks:\n  - send: Fix it.\n    to: coder\n"


@pytest.fixture
def keyboard(tmp_path: Path) -> Iterator[Keyboard]:
    """In an empty folder; in the end, nothing was made in the home."""
    folder = tmp_path / "here"
    folder.mkdir()
    yield Keyboard(tmp_path / "home", folder)
    assert not (tmp_path / "home").exists()


def put(keyboard: Keyboard, name: str, text: str) -> Path:
    path = keyboard.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


class TestValidate:
    def test_says_what_it_found(self, keyboard: Keyboard) -> None:
        """A good file: who takes part, what is prepared, what can be said to it, and who begins."""
        put(keyboard, "review.yaml", GOOD)
        done = keyboard.type("validate", "review.yaml")

        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == (
            "review.yaml: review is fine.\n"
            "  agents   reviewer\n"
            "  context  .windlass/context/default/channel.md, .windlass/context/default/notes.md\n"
            "  setup    1 command, giving diff\n"
            "  params   --base (string)\n"
            "  kickoff  @reviewer\n"
            "  gate     what they commit wants to land\n"
        )

    def test_says_all_that_is_wrong_with_all_files(self, keyboard: Keyboard) -> None:
        """One line for each problem, as compilers do; the exit code is 1 if there is any."""
        put(keyboard, "a.yaml", GOOD.replace("model", "modle").replace("diff }", "dif }"))
        put(keyboard, "b.yaml", GOOD)
        put(keyboard, ".windlass/workflows/c.yaml", "")
        done = keyboard.type("validate", "a.yaml", "b.yaml", "c")

        assert done.returncode == 1
        assert [line.partition(" Known")[0] for line in done.stdout.splitlines() if not line.startswith("  ")] == [
            "a.yaml:6:14: error: agents.reviewer.modle: there is no such key. Did you mean model?",
            "a.yaml:10:21: error: kickoff: nothing is called dif. Did you mean diff?",
            "b.yaml: review is fine.",
            ".windlass/workflows/c.yaml:1:1: error: it is empty. `windlass examples review` shows one to begin with.",
        ]

    def test_for_programs(self, keyboard: Keyboard) -> None:
        """The same as JSON, with places as numbers."""
        put(keyboard, "a.yaml", GOOD.replace("model", "modle"))
        put(keyboard, "b.yaml", GOOD)
        done = keyboard.type("validate", "a.yaml", "b.yaml", "--json")
        bad, good = json.loads(done.stdout)["files"]

        assert done.returncode == 1
        assert bad == {
            "file": "a.yaml",
            "ok": False,
            "problems": [
                {
                    "file": "a.yaml",
                    "line": 6,
                    "column": 14,
                    "field": "agents.reviewer.modle",
                    "words": "there is no such key.",
                    "remedy": "Did you mean model?",
                    "gravity": "error",
                }
            ],
        }
        assert (good["ok"], good["name"], good["addressed"]) == (True, "review", ["reviewer"])
        assert good["setup"][0]["shell"] == 'git diff "${WINDLASS_VALUE_1}"'

    def test_parameters_are_tried(self, keyboard: Keyboard) -> None:
        """Arguments after two dashes are checked against the workflow's parameters."""
        put(keyboard, "review.yaml", GOOD)
        assert keyboard.type("validate", "review.yaml", "--", "--base", "dev").returncode == 0
        done = keyboard.type("validate", "review.yaml", "--", "--bsae", "dev")

        assert done.returncode == 2
        assert done.stderr == (
            "windlass: There is no parameter --bsae. Did you mean base?\n"
            "Parameters: --base STRING. They stand after `--`.\n"
        )

    def test_what_is_not_there(self, keyboard: Keyboard) -> None:
        """A name or file that is not there is told with the near miss."""
        done = keyboard.type("validate", "reveiw")
        assert (done.returncode, done.stderr) == (
            3,
            "windlass: No workflow is called 'reveiw'.\nDid you mean review?\n",
        )

    def test_a_hostile_file_steers_no_terminal(self, keyboard: Keyboard) -> None:
        """Nothing that stands in a file is printed as it is."""
        put(keyboard, "a.yaml", GOOD.replace("reviewer:", '"\\e[2J\\u202e":'))
        done = keyboard.type("validate", "a.yaml")
        assert done.returncode == 1
        assert "\x1b" not in done.stdout
        assert "\u202e" not in done.stdout


class TestExamples:
    def test_lists_them(self, keyboard: Keyboard) -> None:
        """With what each does, who takes part, and what it wants to know."""
        done = keyboard.type("examples")
        assert done.returncode == 0
        assert "Reviews what this branch changes" in done.stdout
        listed = json.loads(keyboard.type("examples", "--json").stdout)["items"]
        assert {each["name"] for each in listed} == {
            "review",
            "review-and-fix",
            "fix-and-land",
            "plan-and-build",
            "write-tests",
        }
        assert all(each["summary"].endswith(".") and each["agents"] for each in listed)

    def test_one_can_be_shown_and_written(self, keyboard: Keyboard) -> None:
        """The written file is the shown one; it is found by its name, and never overwritten."""
        shown = keyboard.type("examples", "review").stdout
        written = keyboard.type("examples", "review", "--write", ".windlass/workflows/review.yaml")

        assert written.returncode == 0
        assert (keyboard.folder / ".windlass/workflows/review.yaml").read_text() == shown
        assert keyboard.type("validate", "review").stdout.startswith(".windlass/workflows/review.yaml: review is fine")
        again = keyboard.type("examples", "review", "--write", ".windlass/workflows")
        assert (again.returncode, again.stderr.splitlines()[0]) == (
            4,
            "windlass: .windlass/workflows/review.yaml is there already.",
        )

    @pytest.mark.parametrize(
        ("words", "code", "said"),
        [
            (("reveiw",), 3, "Did you mean review?"),
            (("--write", "x.yaml"), 2, "Which of them?"),
            (("review", "--write", "review.txt"), 2, "does not end in .yaml"),
        ],
    )
    def test_slips(self, keyboard: Keyboard, words: tuple[str, ...], code: int, said: str) -> None:
        """Each with what to do."""
        done = keyboard.type("examples", *words)
        assert done.returncode == code
        assert said in done.stderr


class TestMigrate:
    def test_shows_or_writes(self, keyboard: Keyboard) -> None:
        """The difference on standard output, what to know on the other; --write changes the file."""
        path = put(keyboard, "old.yaml", OLD)
        path.chmod(0o640)
        shown = keyboard.type("migrate", "old.yaml")

        assert shown.returncode == 0
        assert shown.stdout.startswith("--- a/old.yaml\n+++ b/old.yaml\n@@")
        assert shown.stderr.splitlines()[-1] == "old.yaml is unchanged; --write changes it."
        assert path.read_text() == OLD
        assert keyboard.type("migrate", "old.yaml", "--write").returncode == 0
        assert path.stat().st_mode & 0o777 == 0o640
        assert keyboard.type("validate", "old.yaml").returncode == 0
        assert keyboard.type("migrate", "old.yaml").stderr == "old.yaml has the current format already.\n"
        assert [each.name for each in keyboard.folder.iterdir()] == ["old.yaml"]

    def test_for_programs(self, keyboard: Keyboard) -> None:
        """The same as JSON, with what is still wrong afterwards."""
        put(keyboard, "old.yaml", OLD.replace("role: Codes", ""))
        answer = json.loads(keyboard.type("migrate", "old.yaml", "--json").stdout)

        assert (answer["changes"], answer["written"]) == (True, False)
        assert "+kickoff: |" in answer["diff"]
        assert "agents.coder.system_prompt: is missing." in answer["problems"][0]


@pytest.mark.parametrize(("old", "new"), [("up", "start"), ("down", "stop"), ("ps", "list")])
def test_old_commands_answer_with_the_new_one(keyboard: Keyboard, old: str, new: str) -> None:
    """They are not there, but whoever types them learns what to type."""
    done = keyboard.type(old, "workflow.yaml")
    assert done.returncode == 2
    assert done.stderr.startswith(f"windlass: {old} is called {new} now.\n")


def test_names_and_files_are_completed(keyboard: Keyboard) -> None:
    """Names of workflows first; where there is none, the shell's own files."""
    put(keyboard, ".windlass/workflows/revise.yaml", GOOD)

    def completed(words: str) -> list[str]:
        count = str(len(words.split(" ")) - 1)
        answer = keyboard.type(_WINDLASS_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=count)
        return answer.stdout.splitlines()

    assert completed("windlass validate rev") == ["plain,review", "plain,review-and-fix", "plain,revise"]
    assert completed("windlass validate ./x") == ["file,./x"]
    assert completed("windlass examples wr") == ["plain,write-tests"]

"""Workflow files of version 1, brought into the form of today."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from windlass.core.errors import BadInput
from windlass.core.messages.mentions import mentions
from windlass.core.workflows.workflow import Workflow
from windlass.library.migration import MigratedFile, migrate
from windlass.library.workflows import load

AGENTS = """\
# Our workflow.
name: big  # as in big
agents:
  reviewer: {model: acme/large, system_prompt: You review.}
  coder: {model: acme/large, system_prompt: You code.}
  tester: {model: acme/large, system_prompt: You test.}

"""
SOURCE = """\
tasks:
  - shell: gh pr diff
    as: diff
  - send: "Review: ${{ diff }}"
    to: reviewer
    as: review
  - send: "Fix issues: ${{ review }}"
    to: coder
"""


def migrated(folder: Path, text: str) -> MigratedFile:
    path = folder / "old.yaml"
    path.write_text(text)
    return migrate(path, "old.yaml")


def workflow(folder: Path, made: MigratedFile) -> Workflow:
    loaded = load(folder / "old.yaml", text=made.new)
    assert [str(problem) for problem in loaded.problems] == []
    assert loaded.workflow is not None
    return loaded.workflow


class TestMigrate:
    def test_the_example_of_the_source_document(self, tmp_path: Path) -> None:
        """Commands become setup, messages the kickoff; the first reader begins, and passes it on."""
        made = migrated(tmp_path, AGENTS + SOURCE)

        assert made.new == AGENTS + (
            "context:\n\n"
            "setup:\n"
            "  - shell: gh pr diff\n"
            "    as: diff\n\n"
            "kickoff: |\n"
            "  @reviewer Review: ${{ diff }}\n\n"
            "  @reviewer begins; once reviewer is done, reviewer mentions @coder, for this: "
            "Fix issues: (what reviewer answered)\n"
        )
        spoken = mentions(workflow(tmp_path, made).kickoff.spoken, ["reviewer", "coder", "tester"])
        assert (spoken.addressed, spoken.all) == (("reviewer",), ("reviewer", "coder"))

    def test_comments_and_what_is_around_stay(self, tmp_path: Path) -> None:
        """Above commands, above messages, beside the key, and after the steps."""
        steps = (
            "tasks:  # the steps\n  # get it\n"
            "  - shell: |  # long\n      git log \\\n        --oneline\n\n    as: log\n\n"
            "  # say it\n  - send: Look at ${{ log }}\n    to: tester\n  # end\n\n# about limits\nlimits:\n  runs: 2\n"
        )
        made = migrated(tmp_path, AGENTS + steps)

        assert made.new == AGENTS + (
            "context:\n\n"
            "setup:\n  # get it\n  - shell: |  # long\n      git log \\\n        --oneline\n\n    as: log\n\n"
            "# the steps\n# say it\n# end\nkickoff: |\n  @tester Look at ${{ log }}\n\n"
            "# about limits\nlimits:\n  runs: 2\n"
        )
        assert workflow(tmp_path, made).limits.runs == 2

    def test_only_the_first_reader_is_woken(self, tmp_path: Path) -> None:
        """However many follow, and whatever the messages look like."""
        steps = (
            "context:\ntasks:\n- send: |\n    First.\n\n    - a list\n\n    ```\n    code\n    ```\n  to: coder\n"
            "- {send: Second., to: reviewer, as: second}\n- {send: 'Third: ${{ second }} $${{ x }}', to: tester}\n"
            "- {send: Fourth., to: tester}\n"
        )
        made = workflow(tmp_path, migrated(tmp_path, AGENTS + steps))

        assert mentions(made.kickoff.spoken, [agent.name for agent in made.agents]).addressed == ("coder",)
        assert "Third: (what reviewer answered) ${{ x }}" in made.kickoff.render({})

    def test_what_has_no_likeness_is_explained(self, tmp_path: Path) -> None:
        """With its line: waiting, commands between messages, unknown keys, and messages to nobody by name."""
        steps = (
            "tasks:\n  - send: Review.\n  - wait_mention: coder\n  - wait_mention\n  - shell: npm test\n    as: out\n"
            "  - send: See ${{ out }}\n    to: coder\n    retries: 3\n  - sleep\n"
        )
        made = migrated(tmp_path, AGENTS + steps)

        assert [note.partition(", because")[0].partition(": whoever")[0] for note in made.notes] == [
            "line 9: this message was to nobody by name; now it is to reviewer.",
            "line 10: wait_mention is left out",
            "line 11: wait_mention is left out",
            "line 12: setup runs before any agent, so reviewer is asked to run this command.",
            "line 14: retries is left out; nothing is like it now.",
            "line 17: this step is left out: it is neither shell nor send.",
            "context: is new",
        ]
        assert "See (what `npm test` printed)" in workflow(tmp_path, made).kickoff.render({})

    def test_the_difference_can_be_applied(self, tmp_path: Path) -> None:
        """By git, byte for byte, also without a newline at the end."""
        made = migrated(tmp_path, (AGENTS + SOURCE).rstrip("\n"))
        subprocess.run(("git", "apply", "-"), input=made.diff("old.yaml"), text=True, cwd=tmp_path, check=True)

        assert (tmp_path / "old.yaml").read_text() == made.new

    def test_the_form_of_today_stays(self, tmp_path: Path) -> None:
        """Nothing changes, and nothing is said."""
        made = migrated(tmp_path, AGENTS + "tasks:\n  plan: {brief: Plan., agent: coder}\n")
        assert (made.changes, made.diff("x"), made.notes) == (False, "", ())

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            (SOURCE + "kickoff: x\n", "has steps of version 1 and kickoff, too."),
            ("tasks: [{shell: x}]\n", "has its steps in one line"),
            ("tasks:\n\t- x\n", "old.yaml:2:1: error: a tab"),
            (SOURCE + SOURCE, "stands here a second time"),
        ],
    )
    def test_what_cannot_be_converted_is_said(self, tmp_path: Path, text: str, words: str) -> None:
        """Instead of making something that nobody meant."""
        with pytest.raises(BadInput) as caught:
            migrated(tmp_path, text)
        assert words in str(caught.value)

"""Workflow files, good, broken and hostile; most of them lie in `workflows/`, with the words that are expected."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from windlass.core.files.params import ParamKind
from windlass.core.nouns.agent import Permissions, ToolKind
from windlass.core.workflows.workflow import Workflow, WorktreeChoice
from windlass.library.workflows import LARGEST, load, shipped

FILES = Path(__file__).parent / "workflows"
GOOD = sorted((FILES / "good").glob("*.yaml"))
BROKEN = sorted((FILES / "broken").glob("*.yaml"))
BITS = (
    "\n",
    "\t",
    ": ",
    "- ",
    "[",
    "}",
    "&a ",
    "*a",
    "<<: ",
    "'",
    '"',
    "|\n",
    "${{",
    "}}",
    "@",
    "#",
    "!!x ",
    "? ",
    "no",
    "\0",
)
SMALL = 'agents:\n  reviewer: {system_prompt: You review.}\nkickoff: "@reviewer hello"\n'


def words(path: Path) -> list[str]:
    return [str(problem) for problem in load(path, shown=path.name).problems]


def good(name: str) -> Workflow:
    workflow = load(FILES / "good" / f"{name}.yaml").workflow
    assert workflow is not None
    return workflow


def written(folder: Path, text: str | bytes, name: str = "flow.yaml") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def filled(workflow: Workflow) -> None:
    """Fill in every text in the order of a start. A name that nothing has would be a fault of ours."""
    values = workflow.values("one") | {f"params.{param.name}": "x" for param in workflow.params}
    for step in workflow.setup:
        assert {name for name in step.shell.script()[1].values() if not name.startswith("env.")} <= set(values)
        values[step.name] = "x"
    for text in (workflow.kickoff, *(task.brief for task in workflow.tasks)):
        env = {reference.name: "x" for reference in text.references if reference.name.startswith("env.")}
        text.render(values | env)


@pytest.mark.parametrize("path", [*GOOD, *shipped().values()], ids=lambda path: path.stem)
def test_a_good_file_has_no_problem(path: Path) -> None:
    """Every workflow of the source document, unchanged, and every one that we ship: not even a warning."""
    assert words(path) == []
    made = load(path).workflow
    assert made is not None
    filled(made)


@pytest.mark.parametrize("path", BROKEN, ids=lambda path: path.stem)
def test_a_broken_file_is_explained_word_by_word(path: Path) -> None:
    """Every problem at once, with file, line, column, field and remedy; and there is no workflow to run."""
    assert words(path) == path.with_suffix(".txt").read_text().splitlines()
    assert load(path).workflow is None


def test_there_are_many_ways_to_be_wrong() -> None:
    """The corpus does not shrink, and every file of it has its words."""
    assert len(BROKEN) >= 90
    assert [each for each in BROKEN if not each.with_suffix(".txt").read_text().strip()] == []


class TestValues:
    def test_every_key_arrives(self) -> None:
        """What a file says is what the values hold."""
        made = good("everything")
        planner, coder, runner = made.agents

        assert (planner.tools, planner.triggers, planner.handoff_to) == (
            (ToolKind.READ, ToolKind.SEARCH, ToolKind.WEB),
            ("plan", "design"),
            ("coder", "human"),
        )
        assert planner.system_prompt == "You plan. See notes.md for more.\n"
        assert (planner.model, planner.permissions) == ("acme/large", Permissions.READ)
        assert (coder.permissions, coder.role, coder.provider) == (Permissions.FULL, "Writes code", "acme")
        assert (coder.persistent, coder.worktree, coder.tools) == (
            True,
            WorktreeChoice.OWN,
            (ToolKind.EDIT, ToolKind.SHELL),
        )
        assert (runner.tools, runner.worktree) == (None, WorktreeChoice.PROJECT)
        assert (runner.command, runner.provider) == ('./run.sh "$WINDLASS_PROMPT"', "command")
        assert [(each.name, each.seconds) for each in made.setup] == [("log", 90.0), ("", 5400.0)]
        assert (made.limits.runs, made.limits.seconds, made.limits.hops, made.limits.wakes) == (2, 7200.0, 10, 5)
        assert not made.gate

    def test_params_keep_their_words(self) -> None:
        """`no` and `12:30` are words where words are wanted; a default has one form."""
        params = {param.name: param for param in good("everything").params}

        assert params["depth"].choices == ("no", "yes", "12:30")
        assert params["depth"].kind is ParamKind.CHOICE
        assert (params["fast"].default, params["base"].default, params["goal"].default) == ("false", "", None)
        assert {name for name, each in params.items() if each.required} == {"goal"}

    def test_tasks_come_after_what_they_need(self) -> None:
        """Whatever their order in the file."""
        assert [(task.name, task.needs, task.title) for task in good("everything").tasks] == [
            ("plan", (), "The plan"),
            ("build", ("plan",), ""),
        ]

    def test_a_prompt_can_be_a_file(self) -> None:
        """One word that ends in .md is a file beside the workflow's; its text is the prompt."""
        reviewer = good("source-basic").agents[0]
        assert (reviewer.system_prompt, reviewer.prompt_file) == ("You are the reviewer.\n", "prompts/reviewer.md")

    @pytest.mark.parametrize(
        ("context", "channel", "document"),
        [
            ("", "", ""),
            ("context: false", "", ""),
            ("context: {channel: false, document: false}", "", ""),
            ("context:", "channel.md", "notes.md"),
            ("context: ~", "channel.md", "notes.md"),
            ("context: true", "channel.md", "notes.md"),
            ("context: {}", "channel.md", "notes.md"),
            ("context: {dir: here}", "channel.md", "notes.md"),
            ("context: {channel: }", "channel.md", ""),
            ("context: {document: true}", "", "notes.md"),
            ("context: {channel: false}", "", "notes.md"),
            ("context: {document: {file: a.md}}", "", "a.md"),
            ("context: {channel: {}, document: {file: a.md}}", "channel.md", "a.md"),
        ],
    )
    def test_context_in_all_its_forms(self, tmp_path: Path, context: str, channel: str, document: str) -> None:
        """Absent or false: nothing is shared. Empty or true: both. Else what is selected."""
        made = load(written(tmp_path, f"{SMALL}{context}\n")).workflow

        assert made is not None
        shared = (made.context.channel, made.context.document) if made.context else ("", "")
        assert shared == (channel, document)

    def test_where_the_context_is(self) -> None:
        """In its own folder for each instance, unless the file says otherwise."""
        assert good("source-basic").values("pr-7")["context.channel"] == ".windlass/context/pr-7/channel.md"
        assert good("source-context-custom").values("pr-7")["context.document"] == "my-context/workspace.md"
        assert "context.channel" not in good("source-context-absent").values("pr-7")

    def test_the_file_gives_the_name(self, tmp_path: Path) -> None:
        """Where the file does not say one, it is called what the file is called."""
        made = load(written(tmp_path, SMALL, "fix-it.yaml")).workflow
        assert made is not None
        assert made.name == "fix-it"
        assert words(written(tmp_path, SMALL, "Fix It.yaml"))[0].startswith("Fix It.yaml:1:1: error: name: is missing")


class TestReading:
    def test_a_mark_at_the_beginning_and_other_line_ends(self, tmp_path: Path) -> None:
        """A byte order mark and CRLF change nothing, and neither do they move a place."""
        assert words(written(tmp_path, b"\xef\xbb\xbf" + SMALL.replace("\n", "\r\n").encode())) == []
        moved = SMALL.replace("hello", "${{ x }}").replace("\n", "\r\n")
        assert words(written(tmp_path, moved))[0].startswith("flow.yaml:3:21: error: kickoff: nothing is called x.")

    def test_not_a_text(self, tmp_path: Path) -> None:
        """What is no UTF-8, too large, a folder, a pipe or nothing at all is said, and nothing blocks."""
        os.mkfifo(tmp_path / "pipe.yaml")
        (tmp_path / "folder.yaml").mkdir()
        latin = written(tmp_path, SMALL.encode() + b"# caf\xe9\n", "latin.yaml")
        large = written(tmp_path, SMALL + "# x" * (LARGEST // 3), "large.yaml")

        assert words(latin) == ["latin.yaml:4:1: error: it is not UTF-8. Save it as UTF-8."]
        assert words(large) == ["large.yaml:1:1: error: it has more than 200,000 bytes."]
        assert words(tmp_path / "pipe.yaml") == ["pipe.yaml:1:1: error: it is a pipe."]
        assert words(tmp_path / "folder.yaml") == ["folder.yaml:1:1: error: it is a folder."]
        assert words(tmp_path / "none.yaml") == ["none.yaml:1:1: error: there is no such file."]

    def test_a_prompt_is_never_read_through_a_link(self, tmp_path: Path) -> None:
        """Nor one that is too large."""
        (tmp_path / "secret.txt").write_text("secret")
        (tmp_path / "link.md").symlink_to("secret.txt")
        written(tmp_path, b"x" * 200_001, "large.md")
        two = "agents:\n  a: {system_prompt: link.md}\n  b: {system_prompt: large.md}\nkickoff: '@a hello'\n"

        found = words(written(tmp_path, two))

        assert "it is a symbolic link, which is not followed." in found[0]
        assert "it has more than 200,000 bytes." in found[1]

    def test_a_prompt_may_lie_elsewhere_in_the_repository(self, tmp_path: Path) -> None:
        """A workflow in its own folder names what is beside that folder, but nothing above the repository."""
        repo = tmp_path / "repo"
        (repo / ".git").mkdir(parents=True)
        (repo / ".git/HEAD").write_text("ref: refs/heads/main\n")
        (repo / "flows").mkdir()
        written(repo, "You review.", "reviewer.md")
        written(tmp_path, "secret", "above.md")
        inside = SMALL.replace("You review.", "../reviewer.md")
        assert words(written(repo / "flows", inside)) == []
        assert "is outside of the repository" in words(written(repo / "flows", inside.replace("../", "../../")))[0]

    def test_variables_that_are_not_set_are_worth_a_word(self, tmp_path: Path) -> None:
        """Only where the environment is known, and as a warning: it may be set where the workflow is started."""
        path = written(tmp_path, SMALL.replace("hello", "${{ env.NOWHERE }}"))
        found = load(path, shown="x.yaml", environment={"HOME"})

        assert [str(problem) for problem in found.problems] == [
            "x.yaml:3:21: warning: kickoff: the variable NOWHERE is not set in the environment here."
        ]
        assert found.workflow is not None
        assert words(path) == []

    def test_providers_that_nobody_knows_are_worth_a_word(self, tmp_path: Path) -> None:
        """Only where they are known, and as a warning: the project's settings may have more."""
        path = written(tmp_path, SMALL.replace("{", "{provider: acne, "))
        found = load(path, shown="x.yaml", providers=("acme", "other")).problems

        assert "no provider is called acne here. Did you mean acme?" in str(found[0])

    @pytest.mark.parametrize(
        "bomb",
        [
            "[" * 50_000,
            "{a: " * 20_000,
            "- " * 50_000,
            "x: &a [" + "*a, " * 10_000 + "]\n",
            "".join(f"k{i}: &k{i} [{', '.join([f'*k{i - 1}'] * 50) if i else 'x'}]\n" for i in range(40)),
            "<<: *a\n" * 1000,
            "x-a: &a {b: c}\nx-b:\n" + "  <<: *a\n" * 15_000,
            "? " * 30_000,
            f"x-p: &p '{'${{ ' * 10_000}'\nx-q: [" + "*p, " * 18_000 + "]\n",
            "kickoff: '" + "@bob${{ abc }} " * 12_000 + "'\n",
            "agents:\n" + "".join(f"  agent-{i}: {{handoff_to: [agnet-{i}]}}\n" for i in range(4000)),
            "agents: {a: {role: x, handoff_to: [" + "bb, " * 9_000 + "]}}\n",
            "".join(f"kickof-{i}: x\n" for i in range(10_000)),
            "tasks:\n" + "".join(f"  t{i}: {{brief: x, needs: [t{i + 1}]}}\n" for i in range(5000)),
        ],
        ids=lambda bomb: repr(bomb[:12]),
    )
    def test_nothing_takes_long(self, tmp_path: Path, bomb: str) -> None:
        """Whatever is nested or refers to itself is refused in a moment."""
        began = time.process_time()
        assert words(written(tmp_path, bomb)) != []
        assert time.process_time() - began < 5

    def test_a_long_text_is_not_multiplied(self, tmp_path: Path) -> None:
        """However few its aliases are."""
        many = f"x-p: &p '{'x' * 100_000}'\nx-q: [{'*p, ' * 50}]\n"
        assert "there is too much of it" in words(written(tmp_path, many + SMALL))[0]
        assert words(written(tmp_path, many.replace("*p, " * 50, "*p") + SMALL)) == []

    def test_what_is_said_has_an_end(self, tmp_path: Path) -> None:
        """A file that is wrong everywhere is not worth a thousand lines."""
        assert len(words(written(tmp_path, "".join(f"kickof-{i}: x\n" for i in range(1000))))) == 100

    def test_warnings_hide_no_error(self, tmp_path: Path) -> None:
        """However many there are, what comes after them is looked at."""
        text = SMALL.replace("hello", "${{ env.NOWHERE }} " * 300 + "${{ nothing }}")
        loaded = load(written(tmp_path, text), environment=())

        assert "nothing is called nothing." in str(loaded.problems[-1])
        assert (loaded.workflow, len(loaded.problems)) == (None, 101)

    @given(st.data())
    @settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_whatever_stands_there_is_read_or_refused(self, tmp_path: Path, data: st.DataObject) -> None:
        """A good file with a piece cut out and another put in: a workflow, or problems within it; never a fault."""
        text = data.draw(st.sampled_from(GOOD)).read_text()
        start = data.draw(st.integers(0, len(text)))
        end = start + data.draw(st.integers(0, 20))
        bit = data.draw(st.sampled_from(BITS) | st.text(max_size=5))
        changed = text[:start] + bit + text[end:]
        path = written(tmp_path, changed.encode("utf-8", "surrogatepass"))

        loaded = load(path)

        errors = [problem for problem in loaded.problems if problem.gravity == "error"]
        assert (loaded.workflow is None) == bool(errors)
        if loaded.workflow:
            filled(loaded.workflow)
        assert all(1 <= problem.line <= changed.count("\n") + changed.count("\r") + 2 for problem in loaded.problems)

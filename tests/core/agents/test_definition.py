"""Agent files as values: what counts, what is refused, and what of it is told to whom."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

import pytest

from windlass.core.agents.definition import Definition, Folder, Found, define, filled, gather, homes
from windlass.core.files.problems import FileProblem, Gravity, Notes
from windlass.core.files.tree import Items, Keys, Leaf, Node
from windlass.core.nouns.agent import Confinement, Permissions

OURS = Folder(path=".windlass/agents")
THEIRS = Folder(
    path=".other/agents", provider="other", means={"description": "role"}, unheeded=("tools",), unset=("inherit",)
)


def text(words: str, line: int) -> Leaf:
    return Leaf(words, (line, 1))


GOOD = {"name": text("coder", 2), "role": text("Senior developer", 3)}


def read(folder: Folder = OURS, body: str = "", /, **more: Node) -> Found:
    return define_all(folder, GOOD | more, body)


def define_all(folder: Folder, entries: Mapping[str, Node], body: str = "") -> Found:
    head = Keys(tuple((Leaf(key, value.at), value) for key, value in entries.items()))
    return define(folder, head, body, Notes("a.md"))


def problem(folder: Folder = OURS, /, **more: Node) -> FileProblem:
    made, problems = read(folder, **more)
    assert made is None
    return problems[0]


def an_agent(name: str, *targets: str, file: str = "") -> Definition:
    return Definition(name=name, role="x", file=file or f"{name}.md", handoff_to=targets, handoff_line=5, line=2)


class TestDefine:
    def test_every_field_is_read(self) -> None:
        """As the file says it."""
        made, problems = read(
            OURS,
            "\n# Coder\n\nDo it.\n",
            triggers=Items((text("code", 4), text("fix", 4)), (4, 1)),
            handoff_to=text("reviewer, tester", 5),
            persistent=text("true", 6),
            provider=text("scripted", 7),
            model=text("big", 8),
            permissions=text("read", 9),
            sandbox=text("on", 10),
        )

        assert list(problems) == []
        assert made == Definition(
            name="coder",
            role="Senior developer",
            file="a.md",
            line=2,
            body="# Coder\n\nDo it.",
            triggers=("code", "fix"),
            handoff_to=("reviewer", "tester"),
            handoff_line=5,
            persistent=True,
            provider="scripted",
            provider_line=7,
            model="big",
            permissions=Permissions.READ,
            sandbox=Confinement.ON,
        )

    @pytest.mark.parametrize("name", ["Coder", "my agent", "-x", "x_y", "", "a" * 64, "ä"])
    def test_a_bad_name_is_refused_where_it_stands(self, name: str) -> None:
        """Lower-case letters, digits, hyphens."""
        assert problem(name=text(name, 7)).line == 7

    @pytest.mark.parametrize("name", ["server", "human", "system", "developer", "user", "all", "main"])
    def test_reserved_names_are_refused(self, name: str) -> None:
        """They mean someone else."""
        assert "reserved" in problem(name=text(name, 2)).words

    def test_name_and_role_must_be_there(self) -> None:
        """Both are missed at once."""
        made, problems = define_all(OURS, {}, "Do it.")

        assert made is None
        assert [(each.field, each.words) for each in problems] == [("name", "is missing."), ("role", "is missing.")]

    @pytest.mark.parametrize(
        ("key", "entry", "words"),
        [
            ("role", text(" \n ", 3), "role: is empty"),
            ("role", Keys((), (3, 1)), "role: must be a text"),
            ("role", text("x" * 5000, 3), "5000 characters"),
            ("persistent", text("maybe", 4), "true or false, not 'maybe'"),
            ("permissions", text("fulll", 4), "read, edit or full, not 'fulll'. Did you mean full?"),
            ("sandbox", text("off", 4), "sandbox: can't be off here"),
            ("sandbox", Items((text("on", 4),), (4, 1)), "sandbox: must be a text"),
            ("triggers", Keys((), (4, 1)), "triggers: must be a list"),
        ],
    )
    def test_a_value_that_does_not_fit_is_named(self, key: str, entry: Node, words: str) -> None:
        """And the agent is not used: what was meant as a limit must not vanish."""
        found = problem(**{key: entry})

        assert words in str(found)
        assert (found.file, found.line, found.gravity) == ("a.md", entry.at[0], Gravity.ERROR)

    def test_an_unknown_key_is_a_warning_with_the_near_miss(self) -> None:
        """The agent is used all the same."""
        made, problems = read(persistant=text("true", 6))

        assert made is not None
        assert [(each.line, each.gravity) for each in problems] == [(6, Gravity.WARNING)]
        assert "so it is ignored. Did you mean persistent?" in str(problems[0])


class TestOtherForms:
    def test_their_description_is_our_role(self) -> None:
        """Unless the file has a role of ours, too."""
        entries = {"name": text("coder", 2), "description": text("Use it\n  for code.", 3)}
        made, problems = define_all(THEIRS, entries)
        both, _ = define_all(THEIRS, entries | {"role": text("Ours", 4)})

        assert made and both and not problems
        assert (made.role, both.role) == ("Use it for code.", "Ours")

    def test_what_limits_an_agent_there_and_not_here_is_said(self) -> None:
        """Nobody believes in a limit that is not applied; their other keys are their business."""
        made, problems = read(THEIRS, tools=text("Read", 5), color=text("red", 6))

        assert made is not None
        assert [(each.line, each.gravity) for each in problems] == [(5, Gravity.WARNING)]
        assert "tools: is not applied" in str(problems[0])

    def test_a_model_counts_only_for_the_provider_that_was_meant(self) -> None:
        """That of the file, or that of the folder; with neither, for all."""
        theirs, _ = read(THEIRS, model=text("big", 4))
        named, _ = read(provider=text("scripted", 4), model=text("big", 5))
        free, _ = read(model=text("big", 4))
        nothing, _ = read(THEIRS, model=text("inherit", 4))

        assert theirs and named and free and nothing
        assert [theirs.model_for("other"), theirs.model_for("scripted")] == ["big", ""]
        assert [named.model_for("other"), named.model_for("scripted")] == ["", "big"]
        assert [free.model_for("other"), nothing.model_for("other")] == ["big", ""]


class TestGather:
    def test_the_first_of_two_with_one_name_counts(self) -> None:
        """The other one is reported, with where the first stands."""
        roster = gather([(an_agent("coder", file="one.md"), []), (an_agent("coder", file="two.md"), [])])

        assert [definition.file for definition in roster.definitions] == ["one.md"]
        assert [(each.file, each.line) for each in roster.problems] == [("two.md", 2)]
        assert "one.md:2" in roster.problems[0].words

    def test_an_unknown_target_is_reported_and_left_out(self) -> None:
        """The agent itself stays, and so do its other targets; a person can always be handed something."""
        roster = gather(
            [
                (an_agent("coder", "reviewr", "tester", "human", "coder"), []),
                (an_agent("tester"), []),
                (an_agent("reviewer"), []),
            ]
        )

        kept = roster.find("coder")
        assert kept and kept.handoff_to == ("tester", "human")
        assert [each.line for each in roster.problems] == [5, 5]
        assert "Did you mean reviewer?" in roster.problems[0].words
        assert "itself" in roster.problems[1].words

    def test_a_bad_file_takes_nobody_down(self) -> None:
        """Its problem is kept beside the others."""
        bad = FileProblem(file="bad.md", line=3, words="no")

        roster = gather([(None, [bad]), (an_agent("coder"), [])])

        assert [definition.name for definition in roster.definitions] == ["coder"]
        assert roster.problems == (bad,)


def test_only_the_workplace_is_filled_in() -> None:
    """Other braces stay as they were written, and what is filled in is not looked at again."""
    body = "In {workplace_name} at {workplace_path}: {description} {{x}} {"

    assert filled(body, name="{workplace_path}", path="/w") == "In {workplace_path} at /w: {description} {{x}} {"


def test_an_agent_of_another_project_gets_an_instance() -> None:
    """The plain name first, then the project's, made fit for an address."""
    ids = [*islice(homes("coder", "My Web-Shöp!"), 3)]

    assert ids == ["coder", "coder@my-web-sh-p", "coder@my-web-sh-p-2"]
    assert "coder@project" in islice(homes("coder", "…"), 2)

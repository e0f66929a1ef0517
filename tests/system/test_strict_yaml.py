"""The one reader of YAML: a tree of texts with places, or problems with places."""

from __future__ import annotations

from windlass.core.files.problems import Notes
from windlass.core.files.tree import Items, Keys, Leaf, Node
from windlass.system.strict_yaml import read_yaml


def read(text: str, *, largest: int = 1000, aliases: bool = False) -> tuple[Node | None, list[str]]:
    notes = Notes("x.yaml")
    tree = read_yaml(text, notes, largest=largest, aliases=aliases)
    return tree, [str(problem) for problem in notes.problems]


def test_a_scalar_is_the_text_as_written() -> None:
    """YAML's guesses (no, 012, 12:30, null) are words, each with its place; quotes are remembered."""
    tree, problems = read("a: [no, 012, 12:30]\nb: null\nc: 'x'\n")

    assert problems == []
    assert tree == Keys(
        (
            (Leaf("a", (1, 1)), Items((Leaf("no", (1, 5)), Leaf("012", (1, 9)), Leaf("12:30", (1, 14))), (1, 4))),
            (Leaf("b", (2, 1)), Leaf("null", (2, 4))),
            (Leaf("c", (3, 1)), Leaf("x", (3, 4), plain=False)),
        ),
        (1, 1),
    )


def test_aliases_are_refused_unless_they_are_wanted() -> None:
    """Where they are wanted, they are written out, and merge keys with them."""
    text = "a: &a {b: c}\nd: *a\ne: {<<: *a, f: g}\n"

    assert read(text) == (None, ["x.yaml:2:4: error: aliases (*name) are not read here. Write the text again."])
    tree, problems = read(text, aliases=True)
    assert problems == []
    assert isinstance(tree, Keys)
    merged = tree.entries[2][1]
    assert isinstance(merged, Keys)
    assert [(key.text, value) for key, value in merged.entries] == [
        ("f", Leaf("g", (3, 16))),
        ("b", Leaf("c", (1, 11))),
    ]


def test_every_place_of_a_value_is_known() -> None:
    """Each `${{` of a text has its line and column, also in a block of several lines."""
    tree, _ = read("a: |\n  one ${{ x }}\n  ${{ y }}\n")

    assert isinstance(tree, Keys)
    value = tree.entries[0][1]
    assert isinstance(value, Leaf)
    assert value.spots == ((2, 7), (3, 3))


def test_a_text_that_is_too_long_is_not_parsed() -> None:
    """The limit counts characters."""
    assert read("a: bc", largest=4) == (None, ["x.yaml:1:1: error: it has 5 characters; at most 4 are read."])


def test_a_key_that_is_there_twice_is_noted_and_the_first_one_counts() -> None:
    """The note names the line of the first."""
    tree, problems = read("a: b\na: c\n")

    assert problems == ["x.yaml:2:1: error: a: stands here a second time; the first is in line 1. Keep one of them."]
    assert tree == Keys(((Leaf("a", (1, 1)), Leaf("b", (1, 4))),), (1, 1))


def test_nothing_is_nothing() -> None:
    """An empty text, and one of comments only, have no tree and no problem."""
    assert read("") == read("# only this\n") == (None, [])

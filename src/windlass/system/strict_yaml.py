"""The one reader of YAML: agent files' heads, workflows and scripts. It returns a tree with places.

The reader is strict: a scalar is the text as written (`no` is a word, `12:30` too), each key is there once, no tag is
obeyed, and depth, size and the number of parts have limits. Scripted agents start through this module, so it imports
little.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from windlass.core.files.problems import Notes
from windlass.core.files.tree import TOP, Items, Keys, Leaf, Node, Place
from windlass.system.yaml_errors import explain

DEEPEST = 12
MOST = 20_000
"""Parts of a tree, with every alias written out."""
LONGEST = 2_000_000
"""Characters of all its texts, with every alias written out."""

_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MERGE = "<<"
_TAGS = {f"tag:yaml.org,2002:{part}" for part in "bool float int map merge null seq str timestamp value".split()}
"""Tags that YAML gives to each part by itself, and that change nothing as we read it."""


class _Refused(Exception):
    """The text can't be read at all: the reason, the place and the remedy."""

    def __init__(self, at: Place, words: str, remedy: str = "") -> None:
        super().__init__(words)
        self.at = at
        self.remedy = remedy


def read_yaml(text: str, notes: Notes, *, largest: int, aliases: bool = False) -> Node | None:
    """The tree of a text of at most so many characters; None if the text is empty or can't be read.

    Every problem is noted. Aliases (*name) are refused, or written out up to a limit.
    """
    try:
        _check_characters(text, largest)
        _check_shape(text, aliases=aliases)
        top = yaml.compose(text, Loader=_LOADER)
        return _TreeBuilder(text, notes, bounded=aliases).node(top, "", ()) if top else None
    except _Refused as error:
        notes.refuse(error.at, "", str(error), error.remedy)
    except yaml.YAMLError as error:
        at, words, remedy = explain(error, text)
        notes.refuse(at, "", words, remedy)
    return None


def _check_characters(text: str, largest: int) -> None:
    if len(text) > largest:
        raise _Refused(TOP, f"it has {len(text)} characters; at most {largest} are read.")
    if found := _UNPRINTABLE.search(text):
        line = len(_BREAK.findall(text, 0, found.start())) + 1
        column = found.start() - max(text.rfind("\n", 0, found.start()), text.rfind("\r", 0, found.start()))
        raise _Refused((line, column), f"the character {found[0]!a} can't stand in YAML.", "Remove it.")


def _check_shape(text: str, *, aliases: bool) -> None:
    """Refuse deep nesting, aliases and a second document, before any tree is built."""
    depth = documents = 0
    for event in yaml.parse(text, Loader=_LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        documents += isinstance(event, yaml.DocumentStartEvent)
        if depth > DEEPEST:
            raise _Refused(_place(event.start_mark), f"it is nested more than {DEEPEST} deep.")
        if documents > 1:
            words = "a second document begins here; a file has only one."
            raise _Refused(_place(event.start_mark), words, "Put it into a file of its own, or remove the `---`.")
        if isinstance(event, yaml.AliasEvent) and not aliases:
            raise _Refused(_place(event.start_mark), "aliases (*name) are not read here.", "Write the text again.")


class _TreeBuilder:
    """Turns YAML's nodes into our tree, with aliases and merge keys written out."""

    def __init__(self, text: str, notes: Notes, *, bounded: bool) -> None:
        self._lines = _BREAK.split(text)
        self._notes = notes
        self._bounded = bounded
        self._parts = self._characters = 0
        self._leaves: dict[int, Leaf] = {}

    def node(self, node: Any, path: str, above: tuple[int, ...]) -> Node:
        self._parts += 1
        at = _place(node.start_mark)
        if id(node) in above:
            raise _Refused(at, f"{path} contains itself, through an alias.", "Write the text again instead of *name.")
        self._characters += len(node.value) if isinstance(node, yaml.ScalarNode) else 0
        if self._bounded and (self._parts > MOST or self._characters > LONGEST):
            raise _Refused(at, f"there is too much of it, with every alias written out, at {path}.", "Write less.")
        if node.tag not in _TAGS:
            self._notes.refuse(at, path, f"tags such as {node.tag} are not read.", "Leave the tag out.")
        if isinstance(node, yaml.MappingNode):
            return Keys(tuple(self._entries(node, path, (*above, id(node)))), at)
        if isinstance(node, yaml.SequenceNode):
            inside = (*above, id(node))
            return Items(tuple(self.node(item, f"{path}[{i}]", inside) for i, item in enumerate(node.value)), at)
        return self._leaf(node, at)

    def _leaf(self, node: Any, at: Place) -> Leaf:
        """One leaf for a scalar and all its aliases."""
        if id(node) not in self._leaves:
            spots = tuple(self._spots(node)) if "${{" in node.value else ()
            self._leaves[id(node)] = Leaf(str(node.value), at, not node.style, spots)
        return self._leaves[id(node)]

    def _spots(self, node: Any) -> Iterator[Place]:
        """The place of each `${{` in the file, in the order of the text."""
        start, end = node.start_mark, node.end_mark
        for number in range(start.line, min(end.line + 1, len(self._lines))):
            first = start.column if number == start.line else 0
            last = end.column if number == end.line else len(self._lines[number])
            for found in re.finditer(r"\$\{\{", self._lines[number][:last]):
                if found.start() >= first:
                    yield number + 1, found.start() + 1

    def _entries(self, node: Any, path: str, above: tuple[int, ...]) -> Iterator[tuple[Leaf, Node]]:
        seen = dict[str, Place]()
        merged = list[tuple[Leaf, Node]]()
        for key, value in node.value:
            at = _place(key.start_mark)
            if not isinstance(key, yaml.ScalarNode):
                self._notes.refuse(at, path, "a key must be a word.")
                continue
            below = f"{path}.{key.value}" if path else key.value
            if key.value == _MERGE and not key.style:
                merged += self._merged(value, path, above)
            elif key.value in seen:
                first = seen[key.value]
                words = f"stands here a second time; the first is in line {first[0]}."
                self._notes.refuse(at, below, words, "Keep one of them.")
            else:
                seen[key.value] = at
                yield self._leaf(key, at), self.node(value, below, above)
        for leaf, found in merged:
            if leaf.text not in seen:
                seen[leaf.text] = leaf.at
                yield leaf, found

    def _merged(self, node: Any, path: str, above: tuple[int, ...]) -> list[tuple[Leaf, Node]]:
        """The entries that `<<` brings in; the mapping's own keys win, then those of the first source."""
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        found = list[tuple[Leaf, Node]]()
        for source in sources:
            keys = self.node(source, path, above)
            if isinstance(keys, Keys):
                found += keys.entries
            else:
                words = "`<<` takes keys with values from elsewhere, such as *name."
                self._notes.refuse(_place(source.start_mark), path, words)
        return found


def _place(mark: Any) -> Place:
    return (mark.line + 1, mark.column + 1) if mark else TOP

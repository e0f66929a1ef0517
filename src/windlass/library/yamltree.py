"""YAML as a tree with places, read strictly: scalars as they are written, each key once, and bounded in every way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from windlass.core.files.section import Notes
from windlass.core.files.tree import TOP, Items, Keys, Leaf, Node, Place
from windlass.library.yamlerrors import explain

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
"""What YAML gives to each part by itself, and what changes nothing as we read it."""


class _Refused(Exception):
    """What can't be read at all: the reason, the place and the remedy."""

    def __init__(self, at: Place, words: str, remedy: str = "") -> None:
        super().__init__(words)
        self.at = at
        self.remedy = remedy


def tree(text: str, notes: Notes) -> Node | None:
    """The one document of a text. What is wrong with it is noted; None: it can't be read, or is empty."""
    try:
        _check_letters(text)
        _check_shape(text)
        top = yaml.compose(text, Loader=_LOADER)
        return _Trees(text, notes).made(top, "", ()) if top else None
    except _Refused as error:
        notes.refuse(error.at, "", str(error), error.remedy)
    except yaml.YAMLError as error:
        at, words, remedy = explain(error, text)
        notes.refuse(at, "", words, remedy)
    return None


def _check_letters(text: str) -> None:
    if found := _UNPRINTABLE.search(text):
        line = len(_BREAK.findall(text, 0, found.start())) + 1
        column = found.start() - max(text.rfind("\n", 0, found.start()), text.rfind("\r", 0, found.start()))
        raise _Refused((line, column), f"the character {found[0]!a} can't stand in YAML.", "Remove it.")


def _check_shape(text: str) -> None:
    """Before any tree is built: what is nested deeply, or is more than one document, is never read."""
    depth = documents = 0
    for event in yaml.parse(text, Loader=_LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        documents += isinstance(event, yaml.DocumentStartEvent)
        if depth > DEEPEST:
            raise _Refused(_place(event.start_mark), f"it is nested more than {DEEPEST} deep.")
        if documents > 1:
            words = "a second document begins here; one file is one workflow."
            raise _Refused(_place(event.start_mark), words, "Put it into a file of its own, or remove the `---`.")


class _Trees:
    """Makes our tree of YAML's, with aliases written out and merge keys carried out."""

    def __init__(self, text: str, notes: Notes) -> None:
        self._lines = _BREAK.split(text)
        self._notes = notes
        self._parts = self._characters = 0
        self._leaves: dict[int, Leaf] = {}

    def made(self, node: Any, path: str, above: tuple[int, ...]) -> Node:
        self._parts += 1
        at = _place(node.start_mark)
        if id(node) in above:
            raise _Refused(at, f"{path} contains itself, through an alias.", "Write the text again instead of *name.")
        self._characters += len(node.value) if isinstance(node, yaml.ScalarNode) else 0
        if self._parts > MOST or self._characters > LONGEST:
            raise _Refused(at, f"there is too much of it, with every alias written out, at {path}.", "Write less.")
        if node.tag not in _TAGS:
            self._notes.refuse(at, path, f"tags such as {node.tag} are not read.", "Leave the tag out.")
        if isinstance(node, yaml.MappingNode):
            return Keys(tuple(self._entries(node, path, (*above, id(node)))), at)
        if isinstance(node, yaml.SequenceNode):
            inside = (*above, id(node))
            return Items(tuple(self.made(each, f"{path}[{i}]", inside) for i, each in enumerate(node.value)), at)
        return self._leaf(node, at)

    def _leaf(self, node: Any, at: Place) -> Leaf:
        """Made once for all aliases of it."""
        if id(node) not in self._leaves:
            self._leaves[id(node)] = self._made_leaf(node, at)
        return self._leaves[id(node)]

    def _made_leaf(self, node: Any, at: Place) -> Leaf:
        return Leaf(str(node.value), at, not node.style, tuple(self._spots(node)) if "${{" in node.value else ())

    def _spots(self, node: Any) -> Iterator[Place]:
        """Where each `${{` stands in the file. They are in the same order there."""
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
                yield self._leaf(key, at), self.made(value, below, above)
        for leaf, found in merged:
            if leaf.text not in seen:
                seen[leaf.text] = leaf.at
                yield leaf, found

    def _merged(self, node: Any, path: str, above: tuple[int, ...]) -> list[tuple[Leaf, Node]]:
        """What `<<` brings in; keys of its own, and of what is merged first, win."""
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        found = list[tuple[Leaf, Node]]()
        for source in sources:
            made = self.made(source, path, above)
            if isinstance(made, Keys):
                found += made.entries
            else:
                words = "`<<` takes keys with values from elsewhere, such as *name."
                self._notes.refuse(_place(source.start_mark), path, words)
        return found


def _place(mark: Any) -> Place:
    return (mark.line + 1, mark.column + 1) if mark else TOP

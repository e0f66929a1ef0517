"""A script's text as steps, or everything that is wrong with it, by line and column.

Scalars are read by what a step needs, not by what YAML guesses: `say: no` says "no". Nothing is imported here that the
player does not need: every scripted agent starts through this module.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import yaml

from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput
from windlass.providers.script.steps import STEPS, StepForm, Wrong

LARGEST = 1_000_000
DEEPEST = 12
MOST_SHOWN = 20

_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class ScriptStep(NamedTuple):
    """One thing to do, with all its settings by name."""

    verb: str
    values: dict[str, Any]
    line: int


class Script(NamedTuple):
    """What to do in each run."""

    name: str
    runs: tuple[tuple[ScriptStep, ...], ...]

    def steps(self, number: int) -> tuple[ScriptStep, ...]:
        """What to do in the run of this number; the last list repeats."""
        return self.runs[min(max(number, 1), len(self.runs)) - 1]


def parse(text: str, name: str) -> Script:
    """The script, or one BadInput that names every problem."""
    reader = _Reader(name)
    try:
        runs = reader.script(text.removeprefix("\ufeff"))
    except yaml.MarkedYAMLError as error:
        reader.refuse(error.problem_mark or error.context_mark, _words(error, text))
        runs = ()
    except _Stop:
        runs = ()
    if reader.problems:
        raise BadInput(_listed(reader.problems), hint=f"The steps are: {', '.join(STEPS)}.")
    return Script(name, runs)


class _Stop(Exception):
    """It makes no sense to read on."""


class _Reader:
    """Walks the YAML nodes of a script and collects what is wrong."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.problems: list[str] = []

    def refuse(self, mark: Any, words: str) -> None:
        where = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        self.problems.append(f"{self.name}{where}: {words}")

    def stop(self, mark: Any, words: str) -> _Stop:
        self.refuse(mark, words)
        return _Stop()

    def script(self, text: str) -> tuple[tuple[ScriptStep, ...], ...]:
        self._check_text(text)
        self._check_shape(text)
        top = yaml.compose(text, Loader=_LOADER)
        if isinstance(top, yaml.SequenceNode) and top.value:
            return (self._steps(top),)
        if isinstance(top, yaml.MappingNode):
            return self._runs(top)
        raise self.stop(
            top and top.start_mark, "it has no steps. Write a list of them, or `runs:` with a list per run."
        )

    def _check_text(self, text: str) -> None:
        if len(text) > LARGEST:
            raise self.stop(None, f"it has {len(text)} characters; at most {LARGEST} are read.")
        if found := _UNPRINTABLE.search(text):
            line = text.count("\n", 0, found.start())
            column = found.start() - (text.rfind("\n", 0, found.start()) + 1)
            raise self.stop(yaml.Mark("", 0, line, column, None, 0), f"the character {found[0]!a} can't stand in YAML.")

    def _check_shape(self, text: str) -> None:
        """Before any tree is built: what is nested too deeply or refers to itself is never read."""
        depth = 0
        for event in yaml.parse(text, Loader=_LOADER):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth > DEEPEST:
                raise self.stop(event.start_mark, f"it is nested more than {DEEPEST} deep.")
            if isinstance(event, yaml.AliasEvent):
                raise self.stop(event.start_mark, "aliases (*name) are not read; write the text again.")
            if getattr(event, "tag", None) not in (None, "!"):
                raise self.stop(event.start_mark, f"tags such as {event.tag} are not read.")

    def _runs(self, top: Any) -> tuple[tuple[ScriptStep, ...], ...]:
        pairs = self._pairs(top)
        for key, (key_node, _) in pairs.items():
            if key != "runs":
                self.refuse(key_node.start_mark, f"there is no key {key}; a script is a list of steps, or has `runs:`.")
        lists = pairs["runs"][1] if "runs" in pairs else None
        if lists is None or not isinstance(lists, yaml.SequenceNode) or not lists.value:
            raise self.stop(top.start_mark, "`runs:` must be a list with a list of steps for each run.")
        return tuple(self._steps(each) for each in lists.value)

    def _steps(self, node: Any) -> tuple[ScriptStep, ...]:
        if not isinstance(node, yaml.SequenceNode):
            self.refuse(node.start_mark, "here must be a list of steps.")
            return ()
        return tuple(step for each in node.value if (step := self._step(each)))

    def _step(self, node: Any) -> ScriptStep | None:
        if isinstance(node, yaml.ScalarNode):
            return self._filled(node.value, node, yaml.ScalarNode("", "", node.end_mark, node.end_mark))
        if not isinstance(node, yaml.MappingNode) or not node.value:
            self.refuse(node.start_mark, "a step is one word with its value, such as `say: Hello`.")
            return None
        pairs = self._pairs(node)
        verb, (key_node, value) = next(iter(pairs.items()))
        for other, (extra, _) in list(pairs.items())[1:]:
            self.refuse(
                extra.start_mark, f"{other} stands beside {verb}; a step has one key, and each step its own dash."
            )
        return self._filled(verb, key_node, value)

    def _filled(self, verb: str, key_node: Any, value: Any) -> ScriptStep | None:
        form = STEPS.get(verb)
        if form is None:
            self.refuse(key_node.start_mark, f"there is no step {verb}. {near_miss(verb, STEPS)}".strip())
            return None
        return ScriptStep(verb, self._values(verb, form, value), key_node.start_mark.line + 1)

    def _values(self, verb: str, form: StepForm, node: Any) -> dict[str, Any]:
        if form.whole:
            taken: dict[str, Any] = self._taken(verb, form.whole, node)
            return taken
        if not isinstance(node, yaml.MappingNode):
            key = form.listed if isinstance(node, yaml.SequenceNode) else form.short
            if _absent(node) and not form.needs:
                return {}
            if not key:
                self.refuse(node.start_mark, f"{verb} {form.usage}.")
                return {}
            return {key: self._one(verb, form, key, node)}
        pairs = self._pairs(node)
        values = {key: self._one(verb, form, key, value, key_node) for key, (key_node, value) in pairs.items()}
        if missing := [need for need in form.needs if need not in values]:
            self.refuse(node.start_mark, f"{verb} needs {' and '.join(missing)}.")
        if form.one_of and len(set(form.one_of) & values.keys()) != 1:
            self.refuse(node.start_mark, f"{verb} needs either {' or '.join(form.one_of)}.")
        return values

    def _one(self, verb: str, form: StepForm, key: str, node: Any, key_node: Any = None) -> Any:
        if key not in form.keys:
            near = near_miss(key, form.keys) or f"It has {', '.join(form.keys) or 'no settings'}."
            self.refuse((key_node or node).start_mark, f"{verb} has no setting {key}. {near}")
            return None
        return self._taken(f"{verb}: {key}" if key_node else verb, form.keys[key], node)

    def _taken(self, what: str, take: Any, node: Any) -> Any:
        """A value as its step wants it."""
        try:
            return take(node, self._pairs)
        except Wrong as wrong:
            self.refuse(wrong.node.start_mark, f"{what} {wrong}.")
            return {}

    def _pairs(self, node: Any) -> dict[str, tuple[Any, Any]]:
        """A mapping's keys with their nodes; each once, and each a word."""
        pairs: dict[str, tuple[Any, Any]] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self.stop(key.start_mark, "a key must be a word.")
            if key.value in pairs:
                self.refuse(key.start_mark, f"{key.value} stands here twice.")
            pairs[key.value] = (key, value)
        return pairs


def _absent(node: Any) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.value == "" and not node.style


def _words(error: yaml.MarkedYAMLError, text: str) -> str:
    """A YAML error as a sentence."""
    problem = (error.problem or "this is not YAML").strip()
    mark = error.problem_mark
    lines = text.splitlines()
    if mark and mark.line < len(lines) and "\t" in lines[mark.line]:
        return f"{problem}; a tab stands in this line: indent with spaces."
    return f"{problem}{f' ({error.context})' if error.context else ''}."


def _listed(problems: list[str]) -> str:
    more = len(problems) - MOST_SHOWN
    return "\n".join((*problems[:MOST_SHOWN], *((f"… and {more} more problems.",) if more > 0 else ())))

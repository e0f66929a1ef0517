"""A script's text as steps, or every problem in it.

Every scripted agent starts through this module, so it imports only what the player needs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput
from windlass.core.files.problems import Notes
from windlass.core.files.section import Section
from windlass.core.files.tree import TOP, Items, Keys, Leaf, Node
from windlass.providers.script.steps import STEPS, StepForm, StepSection
from windlass.system.strict_yaml import read_yaml

LARGEST = 1_000_000
"""Characters of a script."""
MOST_SHOWN = 20


class ScriptStep(NamedTuple):
    """One thing to do, with all its settings by name."""

    verb: str
    values: dict[str, Any]
    line: int


class Script(NamedTuple):
    """The steps of each run."""

    name: str
    runs: tuple[tuple[ScriptStep, ...], ...]

    def steps(self, number: int) -> tuple[ScriptStep, ...]:
        """The steps of the run with this number; the last list repeats."""
        return self.runs[min(max(number, 1), len(self.runs)) - 1]


def parse(text: str, name: str) -> Script:
    """The script. Raises one BadInput that names every problem."""
    notes = Notes(name)
    runs = _runs(read_yaml(text.removeprefix("\ufeff"), notes, largest=LARGEST), notes)
    if notes.errors:
        shown = [str(problem) for problem in notes.in_order()[:MOST_SHOWN]]
        more = [f"… and {notes.errors - MOST_SHOWN} more problems."] if notes.errors > MOST_SHOWN else []
        raise BadInput("\n".join((*shown, *more)), hint=f"The steps are: {', '.join(STEPS)}.")
    return Script(name, runs)


def _runs(top: Node | None, notes: Notes) -> tuple[tuple[ScriptStep, ...], ...]:
    if isinstance(top, Items) and top.items:
        return (_steps(top, notes),)
    if isinstance(top, Keys):
        script = Section(notes, "", top)
        script.only(("runs",))
        lists = script.node("runs")
        if isinstance(lists, Items) and lists.items:
            return tuple(_steps(run, notes) for run in lists.items)
        script.refuse("runs", "must be a list with a list of steps for each run.")
    elif not notes.errors:
        remedy = "Write a list of them, or `runs:` with a list per run."
        notes.refuse(top.at if top else TOP, "", "it has no steps.", remedy)
    return ()


def _steps(run: Node, notes: Notes) -> tuple[ScriptStep, ...]:
    if not isinstance(run, Items):
        notes.refuse(run.at, "", "here must be a list of steps.")
        return ()
    return tuple(step for node in run.items if (step := _step(node, notes)))


def _step(node: Node, notes: Notes) -> ScriptStep | None:
    if isinstance(node, Leaf):
        node = Keys(((node, Leaf("", node.at)),), node.at)
    if not isinstance(node, Keys) or not node.entries:
        notes.refuse(node.at, "", "a step is one word with its value, such as `say: Hello`.")
        return None
    step = StepSection(notes, "", node)
    verb, *others = step
    at = step.key_place(verb)
    for other in others:
        words = f"stands beside {verb}; a step has one key, and each step its own dash."
        step.refuse(other, words, at=step.key_place(other))
    if verb not in STEPS:
        notes.refuse(at, "", f"there is no step {verb}.", near_miss(verb, STEPS))
        return None
    form = STEPS[verb]
    return ScriptStep(verb, form.whole(step, verb) if form.whole else _settings(step, verb, form), at[0])


def _settings(step: Section, verb: str, form: StepForm) -> dict[str, Any]:
    value = step.node(verb)
    if value is None and not form.needs:
        return {}
    if not isinstance(value, Keys) or not form.keys:
        key = form.listed if isinstance(value, Items) else form.short
        if not key:
            step.refuse(verb, form.usage)
            return {}
        at = step.place(verb)
        value = Keys(((Leaf(key, at), value or Leaf("", at)),), at)
    settings = StepSection(step.notes, verb, value)
    settings.only(form.keys)
    settings.require(*form.needs)
    if form.one_of and len(set(form.one_of) & set(settings)) != 1:
        step.refuse(verb, f"needs either {' or '.join(form.one_of)}.")
    return {key: form.keys[key](settings, key) for key in settings if key in form.keys}

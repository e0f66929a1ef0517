"""Converts workflow files of version 1, a list of steps, to the current format. The rest of the file stays."""

from __future__ import annotations

import difflib
import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

from windlass.core.display import harmless
from windlass.core.errors import BadInput
from windlass.core.files.problems import Notes
from windlass.core.files.template import Reference, parse
from windlass.core.files.tree import Items, Keys, Leaf, Node
from windlass.core.workflows.file_tasks import is_first_version
from windlass.library.workflows import LARGEST, text_of
from windlass.system.strict_yaml import read_yaml

_STEP = ("shell", "send", "to", "as", "wait_mention", "timeout")
_WAIT_MENTION = (
    "wait_mention is left out: whoever is mentioned is woken at once, and an instance ends when all are quiet, so "
    "nothing has to wait."
)
_CONTEXT = "context: is new, because agents who pass work on talk in its channel; in version 1 the steps did that."


@dataclass(frozen=True, slots=True)
class MigratedFile:
    """A workflow file in the current format."""

    old: str
    new: str
    notes: tuple[str, ...] = ()
    """Facts that a person should know."""

    @property
    def changes(self) -> bool:
        return self.new != self.old

    def diff(self, file: str) -> str:
        """The changes as a unified diff; "" if there are none."""
        texts = (self.old.splitlines(keepends=True), self.new.splitlines(keepends=True))
        lines = difflib.unified_diff(*texts, f"a/{file}", f"b/{file}")
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def migrate(path: Path, shown: str) -> MigratedFile:
    """Convert a version 1 file to the current format; a current file stays. Raises BadInput if it can't be read."""
    notes = Notes(harmless(shown))
    old = text_of(path, notes)
    top = read_yaml(old, notes, largest=LARGEST, aliases=True) if old is not None else None
    if old is None or notes.errors:
        raise BadInput("\n".join(map(str, notes.problems)), hint="Then try again.")
    keys = {key.text: (key, value) for key, value in top.entries} if isinstance(top, Keys) else {}
    key, tasks = keys.get("tasks", (None, None))
    if key is None or not isinstance(tasks, Items) or not is_first_version(tasks):
        return MigratedFile(old, old)
    if rivals := [name for name in ("setup", "kickoff") if name in keys]:
        raise BadInput(f"{shown} has steps of version 1 and {' and '.join(rivals)}, too.", hint="Keep one of the two.")
    if key.at[1] != 1 or tasks.at[0] == key.at[0]:
        raise BadInput(f"{shown} has its steps in one line, which can't be converted by lines.", hint="Write a list.")
    _, agents = keys.get("agents", (None, None))
    names = [name.text for name, _ in agents.entries] if isinstance(agents, Keys) else []
    return _rewritten(old, [leaf for leaf, _ in keys.values()], key, tasks, names)


@dataclass(slots=True)
class _Steps:
    """The steps, sorted into commands that run before any agent and messages to agents."""

    agents: list[str]
    setup: list[str] = field(default_factory=list)
    """Lines of the old file."""
    comments: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    """Paragraphs."""
    notes: list[str] = field(default_factory=list)
    stands_for: dict[str, str] = field(default_factory=dict)
    """Words in the place of a value that is no longer captured, by its name."""
    first: str = ""
    latest: str = ""


def _rewritten(old: str, keys: list[Leaf], key: Leaf, tasks: Items, agents: list[str]) -> MigratedFile:
    lines = old.split("\n")
    first = key.at[0] - 1
    following = min((leaf.at[0] - 1 for leaf in keys if leaf.at[0] > key.at[0]), default=len(lines))
    last = _content_end(lines, key.at[0], following, edge=r"#|\s*$")  # comments at the edge belong to what follows
    steps = _Steps(agents)
    starts = [*(item.at[0] - 1 for item in tasks.items), last]
    before = first + 1
    for number, node in enumerate(tasks.items):
        until = _content_end(lines, starts[number], starts[number + 1])
        _take(steps, node, lines[before : starts[number]], lines[starts[number] : until])
        before = until
    steps.comments += [line.strip() for line in lines[before:last] if line.strip()]
    if beside := lines[first].partition("#")[2]:
        steps.comments.insert(0, f"#{beside}")
    made = _made(steps, with_context="context" not in [leaf.text for leaf in keys])
    new = "\n".join((*lines[:first], *made, *lines[last:]))
    return MigratedFile(old, new, tuple(dict.fromkeys(steps.notes)))


def _content_end(lines: list[str], start: int, end: int, edge: str = r"\s*#|\s*$") -> int:
    while end > start + 1 and re.match(edge, lines[end - 1]):
        end -= 1
    return end


def _take(steps: _Steps, node: Node, above: list[str], own: list[str]) -> None:
    values = {key.text: value for key, value in node.entries} if isinstance(node, Keys) else {}
    texts = {key: value.text for key, value in values.items() if isinstance(value, Leaf)}
    line = node.at[0]
    comments = [comment.strip() for comment in above if comment.strip()]
    for key in values:
        if key not in _STEP:
            steps.notes.append(f"line {line}: {key} is left out; nothing is like it now.")
    waits = "wait_mention" in values or (isinstance(node, Leaf) and node.text == "wait_mention")
    if waits:
        steps.notes.append(f"line {line}: {_WAIT_MENTION}")
    if "shell" in texts and not steps.first:
        step = textwrap.dedent("\n".join(own)).split("\n")
        steps.setup += [f"  {part}" if part.strip() else "" for part in (*comments, *step)]
        return
    steps.comments += comments
    if "shell" in texts:
        _command(steps, texts, line)
    elif "send" in texts:
        _message(steps, texts, line)
    elif not waits:
        steps.notes.append(f"line {line}: this step is left out: it is neither shell nor send.")


def _command(steps: _Steps, texts: dict[str, str], line: int) -> None:
    """Ask the agent who has just worked to run a command that stands between messages."""
    command = " ".join(_filled(steps, texts["shell"]).split())
    steps.said.append(f"@{steps.first} begins; once {steps.latest} is done, {steps.latest} runs `{command}`.")
    if name := texts.get("as"):
        steps.stands_for[name] = f"(what `{command}` printed)"
    steps.notes.append(f"line {line}: setup runs before any agent, so {steps.latest} is asked to run this command.")


def _message(steps: _Steps, texts: dict[str, str], line: int) -> None:
    to = texts.get("to") or (steps.agents[0] if steps.agents else "")
    if not to:
        steps.notes.append(f"line {line}: this message is to nobody; it is left out.")
        return
    if "to" not in texts:
        steps.notes.append(f"line {line}: this message was to nobody by name; now it is to {to}.")
    text = _filled(steps, texts["send"]).strip()
    if not steps.first:
        steps.first = to
        steps.said.append(f"@{to} {text}")
    elif to == steps.latest:
        steps.said.append(f"@{steps.first} begins; afterwards, {to} goes on: {text}")
    else:
        passed = f"@{steps.first} begins; once {steps.latest} is done, {steps.latest} mentions @{to}, for this: {text}"
        steps.said.append(passed)
    steps.latest = to
    if name := texts.get("as"):
        steps.stands_for[name] = f"(what {to} answered)"


def _filled(steps: _Steps, text: str) -> str:
    """A text with words in the place of values that are no longer captured."""
    template, slips = parse(text)
    if slips or not any(reference.name in steps.stands_for for reference in template.references):
        return text
    return "".join(
        steps.stands_for.get(piece.name, f"${{{{ {piece.name} }}}}")
        if isinstance(piece, Reference)
        else piece.replace("${{", "$${{")
        for piece in template.pieces
    )


def _made(steps: _Steps, *, with_context: bool) -> list[str]:
    made = []
    if with_context:
        made += ["context:", ""]
        steps.notes.append(_CONTEXT)
    if steps.setup:
        made += ["setup:", *steps.setup, ""]
    made += steps.comments
    text = "\n\n".join(steps.said)
    if not text:
        steps.notes.append("No message was sent, so there is no kickoff: write one.")
        return made[:-1] if made and not made[-1] else made
    return [*made, "kickoff: |", *(f"  {part}" if part.strip() else "" for part in text.split("\n"))]

"""Paths that a task declares: which files such a pattern names, and whether two of them can name the same file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from windlass.core.errors import BadInput

MOST, LONGEST = 50, 300
"""Patterns of one task, and characters of one pattern."""
_ANY, _NAME = "any", "name"
"""Any character, and any but a slash; a single character means itself."""
_FORM = "Name files or folders from the top of the repository, such as src/auth or 'src/**/*.py'."


def checked(patterns: Iterable[str]) -> tuple[str, ...]:
    """Check patterns, and return their plain forms, each once. Raises BadInput."""
    found = tuple(dict.fromkeys(map(_checked, patterns)))
    if len(found) > MOST:
        raise BadInput(f"A task declares at most {MOST} paths, not {len(found)}.", hint="Name the folders they are in.")
    return found


def _checked(pattern: str) -> str:
    text = pattern.strip().removeprefix("./").rstrip("/")
    parts = text.split("/")
    if not text or len(text) > LONGEST or not text.isprintable():
        raise BadInput(f"{pattern[:80]!r} is not a path of at most {LONGEST} characters.", hint=_FORM)
    if any(part in ("", ".", "..") for part in parts):
        raise BadInput(f"{pattern[:80]!r} does not stay in the repository.", hint=_FORM)
    return text


def names(pattern: str, path: str) -> bool:
    """Whether a file is one that the pattern names: itself, or in a folder of that name."""
    return _share(_compiled(pattern), _literal(path))


def meet(one: str, other: str) -> bool:
    """Whether there could be a file that both patterns name."""
    return _share(_compiled(one), _compiled(other))


@dataclass(slots=True)
class _Machine:
    """A state machine: the steps from each state by a character, and the skips without one."""

    steps: list[list[tuple[str, int]]] = field(default_factory=lambda: [[]])
    skips: list[list[int]] = field(default_factory=lambda: [[]])
    ends: set[int] = field(default_factory=set)

    def add(self) -> int:
        self.steps.append([])
        self.skips.append([])
        return len(self.steps) - 1

    def one(self, kind: str) -> None:
        """Accept one character."""
        here = len(self.steps) - 1
        self.steps[here].append((kind, self.add()))

    def many(self, kind: str) -> None:
        """Accept any number of characters."""
        here = len(self.steps) - 1
        self.steps[here].append((kind, here))
        self.skips[here].append(self.add())

    def folders(self) -> None:
        """Accept any number of folders, each with its slash."""
        here = len(self.steps) - 1
        inside, after = self.add(), self.add()
        self.skips[here] += [inside, after]
        self.steps[inside] += [(_ANY, inside), ("/", after)]


def _literal(path: str) -> _Machine:
    made = _Machine()
    for letter in path:
        made.one(letter)
    made.ends.add(len(made.steps) - 1)
    return made


def _compiled(pattern: str) -> _Machine:
    made, rest = _Machine(), pattern
    while rest:
        begins = len(rest) == len(pattern) or pattern[-len(rest) - 1] == "/"
        if begins and rest.startswith("**/"):
            made.folders()
        elif rest.startswith("**"):
            made.many(_ANY)
        elif rest[0] == "*":
            made.many(_NAME)
        else:
            made.one(_NAME if rest[0] == "?" else rest[0])
        rest = rest[3 if begins and rest.startswith("**/") else 2 if rest.startswith("**") else 1 :]
    made.ends.add(len(made.steps) - 1)
    made.one("/")
    made.many(_ANY)  # what is in a folder of that name
    made.ends.add(len(made.steps) - 1)
    return made


def _share(one: _Machine, other: _Machine) -> bool:
    """Whether both machines accept a common text. Each pair of states is visited once."""
    seen, todo = {(0, 0)}, [(0, 0)]
    while todo:
        here, there = todo.pop()
        if here in one.ends and there in other.ends:
            return True
        found = [(skip, there) for skip in one.skips[here]] + [(here, skip) for skip in other.skips[there]]
        for kind, onward in one.steps[here]:
            found += [(onward, beyond) for like, beyond in other.steps[there] if _agree(kind, like)]
        fresh = [pair for pair in found if pair not in seen]
        seen.update(fresh)
        todo += fresh
    return False


def _agree(one: str, other: str) -> bool:
    if len(one) == 1 and len(other) == 1:
        return one == other
    return _ANY in (one, other) or "/" not in (one, other)

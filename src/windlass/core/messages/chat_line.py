"""Lines of `chat.md`: `[coder-to-reviewer]: text`, or `[coder-to-reviewer] @ [tester, human]: text`.

Indented lines belong to the message above them; four spaces, or the indentation of the first of them, are taken off. So
any text can be written: what follows its first line is indented, and can't be taken for a message of its own.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile

from windlass.core.address import HUMAN
from windlass.core.errors import BadInput
from windlass.core.runs.output_lines import NOT_TEXT

EVERYONE = "all"
"""Who is told where a line names it; no agent can be called so."""
PEOPLE = frozenset({str(HUMAN), "developer", "user"})
"""Names for the person."""

_HEADER = re.compile(r"\[([^\[\]]{1,300})\](?:[ \t]*@[ \t]*\[([^\[\]]{0,5000})\])?[ \t]*:(.*)", re.DOTALL)
_INDENT = " " * 4
_INDENTED = (b" ", b"\t")
_BLANK = b" \t\r"
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class ChatEntry:
    """One message, as a line and those that belong to it say it."""

    line: int
    """Its first line's number in the file, from 1 on."""
    end: int
    """How many bytes of what was given end with it."""
    digest: str
    """Tells its text from all others."""
    sender: str
    to: tuple[str, ...]
    body: str
    odd: str = ""
    """What is strange about it."""


@dataclass(frozen=True, slots=True)
class ChatProblem:
    """A line that is no message, and why."""

    line: int
    end: int
    digest: str
    reason: str
    stranger: str = ""
    """A name in it that nobody has."""


@dataclass(frozen=True, slots=True)
class Own:
    """What we have written there ourselves."""

    line: int
    end: int
    digest: str


Item = ChatEntry | ChatProblem | Own


class _Unknown(BadInput):
    """Nobody is called so."""


@dataclass(frozen=True)
class Names:
    """Who can be meant in a file."""

    known: Collection[str]
    """Agents, as `name`, `name@instance` or `@instance`."""
    writers: Collection[str] = ()
    """What whoever writes the file is called. Of two ways to read a line, the one that they can say counts."""

    @cached_property
    def senders(self) -> frozenset[str]:
        return PEOPLE.union(self.known, self.writers)

    @cached_property
    def recipients(self) -> frozenset[str]:
        return PEOPLE.union(self.known, (EVERYONE,))


@dataclass(frozen=True, slots=True)
class _Block:
    """A line, and those that belong to it."""

    line: int
    lines: Sequence[bytes]
    end: int


def write_line(sender: str, to: Sequence[str], body: str) -> str:
    """One message, so that it is read as just this message, whatever its text looks like."""
    first, *others = to or (EVERYONE,)
    also = f" @ [{', '.join(others)}]" if others else ""
    head = f"[{sender}-to-{first}]{also}:"
    beginning, *rest = body.split("\n")
    if not beginning or beginning.endswith("\r"):  # then it would seem that all lines end so
        beginning, rest = "", [beginning, *rest]
    inline = f" {beginning}" if beginning else ""
    return "\n".join((head + inline, *(_INDENT + line for line in rest))) + "\n"


def digest_of(text: str) -> str:
    """What tells a line that `write_line` made from all others."""
    return _digest(text.removesuffix("\n").encode("utf-8", "replace").split(b"\n"))


def digests(content: bytes) -> list[tuple[int, str]]:
    """Each message of a text, or what else stands in its place: where it ends, and its digest."""
    whole, newline, _ = content.rpartition(b"\n")
    return [(block.end, _digest(block.lines)) for block in _blocks(whole.split(b"\n"), 1)] if newline else []


def parse(
    content: bytes,
    names: Names,
    *,
    line: int = 1,
    own: Mapping[str, int] | None = None,
    most: int = 1_000_000,
    ended: bool = False,
) -> tuple[list[Item], bool]:
    """What the whole lines of a text say, and whether the last of it may go on with what is still to come.

    An unfinished line is left, and so is the message that it goes on with; but where the text has `ended`, nothing will
    finish it, and it is read as it is. `own` are the digests of what we wrote, and how often we did; of what others
    wrote, we read so many at `most`.
    """
    whole, newline, rest = content.rpartition(b"\n")
    if ended and rest:
        whole, newline, rest = content, b"\n", b""
    blocks = list(_blocks(whole.split(b"\n"), line)) if newline else []
    closed = blocks[: len(blocks) - (rest[:1] in _INDENTED)]
    ours, items = Counter(own), list[Item]()
    for place, block in enumerate(closed, 1):
        items += _read(block, names, ours)
        most -= not isinstance(items[-1], Own)
        if not most and place < len(blocks):
            return items, False
    if items and items[-1].end > len(content):  # it has no newline
        items[-1] = replace(items[-1], end=len(content))
    return items, bool(blocks) and not rest.strip(b"\r")


def _blocks(lines: Sequence[bytes], number: int) -> Iterator[_Block]:
    """Each line that is not indented, with the indented ones below it and the empty ones between them."""
    block: list[bytes] = []
    empty: list[bytes] = []
    first, end, place = number, 0, 0
    for count, line in enumerate(lines, number):
        place += len(line) + 1
        if not line.strip(b"\r"):
            empty.append(line)
            continue
        if block and line[:1] in _INDENTED:
            block += [*empty, line]
            end = place
        elif line.strip(_BLANK):
            if block:
                yield _Block(first, block, end)
            block, first, end = [line], count, place
        empty = []
    if block:
        yield _Block(first, block, end)


def _read(block: _Block, names: Names, ours: Counter[str]) -> Iterator[Item]:
    """A block as a message, unless we wrote it. What someone put below ours is not part of it."""
    length, digest = _own_part(block.lines, ours)
    if not length:
        yield _message(block, names)
        return
    ours[digest] -= 1
    rest = block.lines[length:]
    end = block.end - sum(len(line) + 1 for line in rest)
    yield Own(block.line, end, digest)
    empty = sum(1 for _ in takewhile(lambda line: not line.strip(_BLANK), rest))
    if empty < len(rest):
        yield ChatProblem(
            block.line + length + empty, block.end, _digest(rest), "is indented, and no message of yours is above it"
        )


def _own_part(lines: Sequence[bytes], ours: Counter[str]) -> tuple[int, str]:
    """How many of the lines are ours, from the first on."""
    if ours:
        for length, digest in enumerate(_digests(lines), 1):
            if ours[digest] > 0:
                return length, digest
    return 0, ""


def _digests(lines: Iterable[bytes]) -> Iterator[str]:
    """What tells the first line from all others, the first two, the first three …"""
    so_far = hashlib.blake2b(digest_size=8)
    for line in lines:
        so_far.update(line.removesuffix(b"\r") + b"\n")
        yield so_far.hexdigest()


def _digest(lines: Iterable[bytes]) -> str:
    return [*_digests(lines)][-1]


def _message(block: _Block, names: Names) -> Item:
    digest = _digest(block.lines)
    try:
        lines, odd = _decode(block)
        sender, to, text = _header(lines[0], names)
        body = _body(text, lines[1:])
    except _Unknown as error:
        name = str(error)
        return ChatProblem(block.line, block.end, digest, f"names {_shown(name)}, and nobody is called so", name)
    except BadInput as error:
        return ChatProblem(block.line, block.end, digest, str(error))
    return ChatEntry(block.line, block.end, digest, sender, to, body, odd)


def _decode(block: _Block) -> tuple[list[str], str]:
    """The lines as text. Where the first ends with a carriage return, all do."""
    content = b"\n".join(block.lines)
    try:
        text, odd = content.decode(), ""
    except UnicodeDecodeError:
        text, odd = content.decode("utf-8", "replace"), NOT_TEXT
    lines = (text.removeprefix("\N{BYTE ORDER MARK}") if block.line == 1 else text).split("\n")
    return [line.removesuffix("\r") for line in lines] if lines[0].endswith("\r") else lines, odd


def _body(text: str, lines: Sequence[str]) -> str:
    """What stands beside the names, and below."""
    rest = _dedented(lines)
    body = "\n".join((text, *rest) if text or not rest else rest)
    if not body.strip():
        raise BadInput("says nothing")
    return body


def _dedented(lines: Sequence[str]) -> list[str]:
    sample = next((line for line in lines if line.strip()), _INDENT)
    spaces = sum(1 for _ in takewhile(" ".__eq__, sample[: len(_INDENT)]))
    indent = " " * spaces if spaces else "\t"
    return [line[len(indent) :] if line.startswith(indent) else line.lstrip(" \t") for line in lines]


def _header(line: str, names: Names) -> tuple[str, tuple[str, ...], str]:
    """Sender, recipients and the text beside them."""
    found = _HEADER.fullmatch(line)
    if line[:1] in (" ", "\t"):
        raise BadInput("is indented, and no message is above it")
    if not found:
        raise BadInput(f"is no message: {_shown(line)}")
    sender, first = _pair(found[1].strip(), names)
    others = [part.strip().removeprefix("@") for part in (found[2] or "").split(",") if part.strip()]
    for other in others:
        if other not in names.recipients:
            raise _Unknown(other)
    to = tuple(dict.fromkeys(_person(other) for other in (first, *others)))
    return _person(sender), to, found[3].removeprefix(" ")


def _pair(words: str, names: Names) -> tuple[str, str]:
    """Who speaks to whom. A name may contain `-to-`, so every way to read it is tried."""
    ways = [(words[: at.start()], words[at.start() + 4 :]) for at in re.finditer("(?=-to-)", words)]
    if not ways:
        raise BadInput(f"does not say who speaks to whom: {_shown(f'[{words}]')}")
    fitting = [(one, other) for one, other in ways if one in names.senders and other in names.recipients]
    likely = [way for way in fitting if way[0] in names.writers] if len(fitting) > 1 else fitting
    if len(likely) == 1:
        return likely[0]
    if fitting:
        read = ", or from ".join(f"{one} to {other}" for one, other in likely or fitting)
        raise BadInput(f"can be read in several ways: from {read}")
    raise _Unknown(next((other for one, other in ways if one in names.senders), ways[0][0]))


def _person(name: str) -> str:
    return str(HUMAN) if name in PEOPLE else name


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}\N{HORIZONTAL ELLIPSIS}")

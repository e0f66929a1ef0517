"""Whom a text mentions with `@name`, and whom of them it addresses.

Code, quotes, e-mail addresses, links and package names mention nobody, and neither does `\\@name`. A paragraph (or an
item of a list) that begins with mentions addresses those, also with the list right below it; any other one addresses
all whom it mentions.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

_LINE = re.compile(r"\r\n?|\n")
_MARKERS = r"[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*"
_FENCE = re.compile(rf"{_MARKERS}(?P<fence>`{{3,}}(?=[^`]*$)|~{{3,}})")
_QUOTE = re.compile(rf"{_MARKERS}>")
_BLOCK = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)]|(?P<heading>#{1,6}))(?=[ \t])")
_TICKS = re.compile("`+")
_LINK = re.compile(r"://\S*")
_AT = re.compile(r"@+(?P<name>[\w-]*(?:@+[\w-]*)*)")
_BETWEEN = re.compile(r"(?:[\s,;:&+*_(\[\])]|and\b|or\b)*")
"""What may stand before a leading mention, and between two."""

_HIDDEN = "\0"
"""In the place of what mentions nobody. It is no space, so that a paragraph that begins with code does not seem to
begin with what follows."""


@dataclass(frozen=True, slots=True)
class Mentions:
    """Names, in order of appearance, each once."""

    all: tuple[str, ...] = ()
    """All who are mentioned: they get the message."""
    addressed: tuple[str, ...] = ()
    """Those of them to whom it speaks: they are woken by it."""


def mentions(text: str, known: Collection[str]) -> Mentions:
    """Who of the known is mentioned: `name`, or `name@instance` where that is known."""
    if "@" not in text:
        return Mentions()
    names, named, addressed = frozenset(known), dict[str, None](), dict[str, None]()
    speaks = False
    for paragraph, goes_on in _paragraphs(text):
        found, leading = _mentioned(_visible(paragraph), names)
        named.update(dict.fromkeys(found))
        addressed.update(dict.fromkeys(leading or ([] if goes_on and speaks else found)))
        speaks = speaks if goes_on else bool(leading)
    return Mentions(tuple(named), tuple(addressed))


def strangers(text: str, known: Collection[str]) -> tuple[str, ...]:
    """Names that stand there like mentions, and that nobody has."""
    words = {word.rstrip("-_") for word in mentioned_words(text)}
    return mentions(text, {word for word in words if word and word not in known}).all


def mentioned_words(text: str) -> set[str]:
    """All that stands behind an `@`, with the dashes at its end and without; not all of it mentions someone."""
    words = {at["name"] for at in _AT.finditer(text)} if "@" in text else set()
    return words | {word.rstrip("-_") for word in words}


def _paragraphs(text: str) -> Iterator[tuple[str, bool]]:
    """The text between blank lines, quotes and confinement; items of a list and headings each for themselves.

    Of each, also whether it is an item of the list right below a paragraph.
    """
    lines: list[str] = []
    fence, heads, goes_on, below = "", False, False, False
    for line in _LINE.split(text):
        opened = None if fence else _FENCE.match(line)
        starts = None if fence else _BLOCK.match(line)
        ends = fence or opened or not line.strip() or _QUOTE.match(line)
        if lines and (ends or starts or heads):
            yield "\n".join(lines), goes_on
            lines = []
        if not ends:
            item = bool(starts and not starts["heading"])
            below = below if item or lines else not starts
            goes_on = goes_on if lines else below and item
            lines.append(line[starts.end() :] if starts else line)
        else:
            below = False
        heads = bool(starts and starts["heading"])
        fence = (opened["fence"] if opened else fence) if not _closes(line, fence) else ""
    yield "\n".join(lines), goes_on


def _closes(line: str, fence: str) -> bool:
    """Whether a line ends the fence that is open."""
    bare = line.strip() if fence else ""
    return bool(fence) and len(bare) >= len(fence) and not bare.strip(fence[0])


def _visible(paragraph: str) -> str:
    """The paragraph without its code and links."""
    return _LINK.sub(_HIDDEN, _without_code(paragraph))


def _without_code(paragraph: str) -> str:
    """Code is what stands between two equally long runs of backticks; a backslash makes the first one plain."""
    runs = [ticks.span() for ticks in _TICKS.finditer(paragraph)]
    ends: dict[int, list[int]] = {}
    for number in reversed(range(len(runs))):
        ends.setdefault(runs[number][1] - runs[number][0], []).append(number)
    parts, done, number = [], 0, 0
    while number < len(runs):
        start, end = runs[number]
        opening = start + _escaped(paragraph, start)
        later = ends.get(end - opening, [])
        while later and later[-1] <= number:
            later.pop()
        if opening < end and later:
            parts += [paragraph[done:opening], _HIDDEN]
            number = later[-1]
            done = runs[number][1]
        number += 1
    return "".join((*parts, paragraph[done:]))


def _escaped(text: str, place: int) -> bool:
    """Whether an odd number of backslashes stands before a place."""
    start = place
    while start and text[start - 1] == "\\":
        start -= 1
    return (place - start) % 2 == 1


def _mentioned(paragraph: str, known: frozenset[str]) -> tuple[list[str], list[str]]:
    """All whom a paragraph mentions, and those with whom it begins."""
    found, leading, led = [], [], 0
    for at in _AT.finditer(paragraph):
        name = _name(paragraph, at, known)
        begins = _BETWEEN.fullmatch(paragraph, led, at.start()) if led >= 0 else None
        led = at.end() if begins else -1
        if name:
            found.append(name)
            if begins:
                leading.append(name)
    return found, leading


def _name(text: str, at: re.Match[str], known: frozenset[str]) -> str:
    """The name that is mentioned there; nothing if nobody is."""
    name = at["name"] if at["name"] in known else at["name"].rstrip("-_")
    free = at.start("name") == at.start() + 1 and not _joined(text, at.start()) and not _goes_on(text, at.end())
    return name if free and name in known else ""


def _joined(text: str, at: int) -> bool:
    """Whether the `@` belongs to what stands before it: an e-mail address, a path, or a backslash."""
    if at and text[at - 1] in "\\/":
        return text[at - 1] == "/" or _escaped(text, at)
    start = at
    while start and text[start - 1] in "._+%-":
        start -= 1
    return start > 0 and text[start - 1].isalnum()


def _goes_on(text: str, end: int) -> bool:
    """Whether the name is only a part: of a package (`@name/core`), of a host or a dotted name (`@name.org`)."""
    after = text[end : end + 2]
    return after[:1] == "/" or (after[:1] == "." and after[1:].isalnum())

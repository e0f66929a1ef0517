"""Reviews: comments on a change, which of them still block it, and how a reviewer's report is read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from windlass.core.address import HUMAN
from windlass.core.display import one_name
from windlass.core.errors import BadInput, NotAllowed
from windlass.core.nouns.change import Change
from windlass.core.nouns.message import Kind, Message, Opinion
from windlass.core.render import fenced

BLOCKING = "[BLOCKING]"
LONGEST = 20_000
"""Characters of one comment."""
LONGEST_PATH = 1000
MOST_LINES = 100_000_000
EXCERPT = 100

_HEAD = re.compile(r"\[(BLOCKING|SUGGESTION|RESOLVED)\]", re.IGNORECASE)
_PLACE = re.compile(r"`?(?=[^\s:]*[./])([^\s:`\0]{1,500}):(\d{1,8})`?:?\s+")
_SETTLED = re.compile(r"(m[1-9]\d{0,17})\b[.:,]?\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A comment on a change."""

    body: str
    file: str = ""
    line: int = 0
    blocking: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The comments in a reviewer's last words, and the ids of those that it settles."""

    comments: tuple[Comment, ...] = ()
    settled: tuple[str, ...] = ()


def compose(body: str, *, file: str = "", line: int = 0, blocking: bool = False) -> Comment:
    """A comment as it was typed; `[BLOCKING]` at its head makes it one that blocks."""
    words = body.strip()
    marked = words.upper().startswith(BLOCKING)
    while words.upper().startswith(BLOCKING):  # said twice it is said once
        words = words[len(BLOCKING) :].lstrip(" :\n")
    if not words:
        raise BadInput("The comment has no words.", hint='Say what you see: windlass change comment c3 "…"')
    if len(words) > LONGEST:
        raise BadInput(f"The comment has more than {LONGEST} characters.", hint="Say it shorter.")
    if not 0 <= line <= MOST_LINES or (line and not file):
        raise BadInput("A line is a number in a file.", hint="Write --file PATH --line N.")
    if len(file) > LONGEST_PATH or one_name(file) != file:
        raise BadInput("That is no path of a file.", hint="Write it as `git diff` does, such as src/login.py.")
    return Comment(body=words, file=file, line=line, blocking=blocking or marked)


def read_report(words: str) -> Report:
    """The comments in a reviewer's last words: a paragraph for each that begins with `[BLOCKING]` or `[SUGGESTION]`,
    perhaps with `path:line`; and `[RESOLVED] m12`."""
    comments, settled = [], []
    for mark, rest in _marked(words):
        if mark == "RESOLVED":
            found = _SETTLED.match(rest)
            settled += [found[1]] if found else []
        else:
            place = _PLACE.match(rest)
            file, line = (place[1], int(place[2])) if place else ("", 0)
            text = (rest[place.end() :] if place else rest)[:LONGEST]
            try:
                comments.append(compose(text, file=file, line=line, blocking=mark == "BLOCKING"))
            except BadInput:
                continue  # a mark without words says nothing
    return Report(comments=tuple(comments), settled=tuple(settled))


def _marked(words: str) -> Iterable[tuple[str, str]]:
    """Each paragraph that begins with a mark; one ends where an empty line or the next mark is."""
    mark, part = "", list[str]()
    for line in [*words.splitlines(), ""]:
        text = line.strip().lstrip("-*• ").strip()
        begins = _HEAD.match(text)
        if mark and (begins or not text):
            yield mark, "\n".join(part).lstrip(" :")
            mark = ""
        if begins:
            mark, part = begins[1].upper(), [text[begins.end() :]]
        elif mark:
            part.append(text)


def open_blocking(said: Iterable[Message]) -> list[Message]:
    """Blocking comments that nobody who may has settled, in order. `said`: all messages of a change's channel."""
    messages = list(said)
    settled = {message.reply_to for message in messages if message.kind is Kind.ANSWER}
    comments = (message for message in messages if message.kind is Kind.COMMENT and message.id not in settled)
    return [comment for comment in comments if comment.remark and comment.remark.blocking]


def is_reviewed(change: Change, said: Iterable[Message]) -> bool:
    """Whether a review of the change as it is now has ended."""
    remarks = (message.remark for message in said if message.remark)
    return any(remark.opinion is not None and remark.head == change.head for remark in remarks)


def objection(change: Change, said: Sequence[Message], *, wanted: bool, reviewers: Sequence[str] = ()) -> str:
    """Why reviews keep a change from landing, or nothing. `wanted`: it must be reviewed. `reviewers`: those at it."""
    if blocking := open_blocking(said):
        more = f" (and {len(blocking) - 1} more)" * (len(blocking) > 1)
        return f"{blocking[0].id} by {blocking[0].sender} blocks it: {excerpt(blocking[0].body)}{more}"
    if reviewers:
        return f"{', '.join(reviewers)} reviews it"
    return "it waits for its review" if wanted and not is_reviewed(change, said) else ""


def opinion(reviewer: str, said: Iterable[Message]) -> Opinion:
    """A review's opinion: its reviewer's open comments count, not the words."""
    open_ones = [comment for comment in open_blocking(said) if comment.sender == reviewer]
    return Opinion.CHANGES if open_ones else Opinion.APPROVE


def brought_again(change: Change, comment: Message, said: Iterable[Message]) -> bool:
    """Whether its author has brought the change again since this comment was last passed on or answered."""
    about = (message.remark for message in said if comment.id in (message.id, message.reply_to))
    return change.turn > max((remark.turn for remark in about if remark), default=0)


def rounds(comment: Message, said: Iterable[Message], author: str) -> int:
    """How often the author's answer to a comment was passed on."""
    return sum(message.reply_to == comment.id and message.sender == author for message in said)


def check_comment(who: str, change: Change, *, reviews: bool, blocking: bool) -> None:
    """Raise NotAllowed unless a person, a reviewer, or the author without blocking comments."""
    if who == str(HUMAN) or (reviews and who != change.agent):
        return
    if who != change.agent:
        hint = f"A person may ask for it: `windlass review {change.id}`."
        raise NotAllowed(f"{who} does not review {change.id}.", hint=hint)
    if blocking:
        raise NotAllowed(f"{who} wrote {change.id}, and can't block it.", hint="Repair it, or signal an error.")


def check_settling(who: str, change: Change, comment: Message) -> None:
    """Raise NotAllowed unless a comment is settled by who made it, or by a person."""
    if who == str(HUMAN):
        return
    if who == change.agent:
        raise NotAllowed(
            f"{who} wrote {change.id}, so it can't settle what was said about it.",
            hint=f'Answer it: `windlass change comment {change.id} --reply {comment.id} "…"`.',
        )
    if who != comment.sender:
        raise NotAllowed(f"{comment.id} is {comment.sender}'s, who settles it, or a person.")


def excerpt(text: str) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= EXCERPT else f"{line[:EXCERPT].rstrip()}…"


def place_of(message: Message) -> str:
    """Where a comment points to: `src/login.py:12`."""
    remark = message.remark
    if remark is None or not remark.file:
        return ""
    return f"{remark.file}:{remark.line}" if remark.line else remark.file


def review_brief(change: Change, main: str, said: Sequence[Message]) -> str:
    """A reviewer's brief about a change."""
    lines = [
        f"Review the change {change.id}: {change.title}",
        "",
        f"- by: {change.agent or 'a person'}",
        f"- its commits: `git log --oneline origin/{main}..HEAD`",
        f"- its difference: `git diff origin/{main}...HEAD`",
        f"- to comment: `windlass change comment {change.id} …`",
    ]
    if open_ones := open_blocking(said):
        lines += ["", "These comments are open:"]
    for comment in open_ones:
        lines += ["", f"{comment.id} by {comment.sender} {place_of(comment)}".rstrip(), "", fenced(comment.body)]
    return "\n".join(lines)


def passed_on(change: Change, comment: Message, answer: str) -> str:
    """Tell a reviewer that the author has brought the change again."""
    moved = comment.remark is not None and comment.remark.head != change.head
    commits = "There are new commits: look at them." if moved else "There is no new commit."
    said = answer.strip() or "(The author said nothing.)"
    head = f"The author has answered your comment {comment.id} on {change.id}. {commits}"
    settle = f"If that settles it: `windlass change resolve {change.id} {comment.id}`. If not, say what is missing."
    return f"{head}\n\n{fenced(said)}\n\n{settle}"


def asked_person(change: Change, comment: Message, answer: str, why: str) -> str:
    """Ask a person about a blocking comment that nobody else will settle."""
    said = f" The author says: {excerpt(answer)}" if answer.strip() else ""
    return (
        f"{comment.id} by {comment.sender} still blocks {change.id} ({change.title}){why}: {excerpt(comment.body)}"
        f"{said} `windlass change resolve {change.id} {comment.id}` accepts it"
        + (f'; `windlass answer {change.agent} "…"` sends it back.' if change.agent else ".")
    )

"""What the commands that talk share: sending once, waiting across restarts, and how messages look."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import click

from windlass.cli.arguments import Channel, Reader, SaidId
from windlass.cli.commands.watch import RETRY_SECONDS, when_back
from windlass.cli.connection.client import Client, NotRunning, OutOfReach, inside_a_run, repository
from windlass.cli.connection.http import Gone, watch_outlet
from windlass.cli.output import Row, block, bold, dim, one_line, say, say_json, tell
from windlass.core.errors import NotFound, TimedOut, Unavailable

LONGEST_SHOWN = 4000
"""Characters of a message that are shown to someone who only looks."""
AWAY = 60.0
"""Seconds that a command inside a run waits for a daemon that is away."""
UNSEEN = "nothing was looked at"
SLICE = 20.0
"""Seconds that one request waits at most: a daemon that leaves meanwhile is asked again."""

to_option = click.option(
    "--to", multiple=True, type=Reader(), metavar="WHOM", help="name, name@instance or @instance; may be repeated."
)
key_option = click.option("--key", metavar="KEY", help="Your own id for it: the same again is not said twice.")
everyone_option = click.option(
    "--all", "everyone", is_flag=True, help="Everyone in the project; from a run, in its channel. Nobody is started."
)
as_option = click.option(
    "--from", "--as", "sender", type=Reader(), metavar="NAME", help="Inside a run: your own name, and no other."
)
channel_option = click.option(
    "--channel",
    type=Channel(),
    metavar="CHANNEL",
    help="main, @instance, task/t12 or change/c3. Default: where you are.",
)
since_option = click.option(
    "--since", type=SaidId(), metavar="ID", help="Only what was said after this message, such as m12."
)
limit_option = click.option(
    "--limit", type=click.IntRange(min=1, max=10_000), metavar="N", help="At most so many, the newest. Default: 20."
)

oldest_option = click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help="At most so many, the oldest first."
)
full_option = click.option("--full", is_flag=True, help="Show long messages whole.")


def place() -> str | None:
    """The repository that we stand in; inside a run the daemon knows the project by itself."""
    return None if inside_a_run() else repository()


def project_place() -> str | None:
    """The same, where it must be some project's."""
    found = place()
    if found is None and not inside_a_run():
        raise NotFound("This folder belongs to no project.", hint="Change to one that does, or run `windlass init`.")
    return found


# ── sending ──────────────────────────────────────────────────────────────────────────────────────────────────


def post(daemon: Client, **message: Any) -> Row | None:
    """Say something once, also where the daemon leaves meanwhile. None: it was left for the daemon, which is away."""
    keyed = bool(message.get("key"))
    message["key"] = message.get("key") or os.urandom(10).hex()
    message["path"] = place()
    if inside_a_run() and not keyed and _can_be_left(message):  # a file has no keys: it would be heard twice
        try:
            return _sent(message, daemon.only_if_running())
        except (NotRunning, OutOfReach):
            if _leave(message):
                return None
        except Gone:  # whether it was heard is unknown; the key lets us say it again
            return _again(partial(_sent, message, daemon.only_if_running()))
    return retried(daemon, partial(_sent, message), "it was NOT sent")


def begin(daemon: Client, **question: Any) -> Row:
    """Ask something once, also where the daemon leaves meanwhile."""
    question["key"] = question.get("key") or os.urandom(10).hex()
    question["path"] = place()

    def ask(client: Client) -> Row:
        begun: Row = client.post("conversations", **question)
        if begun.get("hint"):
            tell(one_line(begun["hint"]))
        return begun

    return retried(daemon, ask, "it was NOT asked")


def retried(daemon: Client, ask: Callable[[Client], Row], lost: str) -> Row:
    """Do what counts once however often it is done, also where the daemon leaves meanwhile."""
    try:
        return reach(daemon, ask, lost)
    except Gone:
        return _again(partial(ask, daemon.only_if_running() if inside_a_run() else daemon))


def reach(daemon: Client, ask: Callable[[Client], Row], lost: str) -> Row:
    """Ask the daemon. Inside a run one that is away is waited for; in the end it is said what was `lost`."""
    if not inside_a_run():
        return ask(daemon)
    client, deadline, told = daemon.only_if_running(), time.monotonic() + AWAY, False
    while True:
        try:
            return ask(client)
        except NotRunning as error:
            if time.monotonic() > deadline:
                raise Unavailable(
                    f"The daemon is away, and was not back in {AWAY:.0f} s: {lost}.",
                    hint="Go on working, and do it again later.",
                ) from error
            if not told:
                tell(f"windlass: the daemon is away; waiting for it, at most {AWAY:.0f} s.")
            told = True
            watch_outlet(RETRY_SECONDS)


def unrepeated(daemon: Client, ask: Callable[[Client], Row], lost: str) -> Row:
    """Do what would count twice if it were done again."""
    try:
        return reach(daemon, ask, lost)
    except Gone as error:
        raise Unavailable(
            "The daemon went away, and it is not known whether it has done that.",
            hint="Look when it is back, before you do it again.",
        ) from error


def _sent(message: Row, daemon: Client) -> Row:
    answer = daemon.post("messages", **message)
    sent: Row = answer["message"]
    if answer.get("hint"):
        tell(one_line(answer["hint"]))
    return sent


def _again(send: Callable[[], Row]) -> Row:
    deadline = time.monotonic() + SLICE

    def ask() -> Row:
        try:
            return send()
        except (NotRunning, Gone) as error:
            if time.monotonic() > deadline:
                raise Unavailable(
                    "The daemon went away, and it is not known whether it has heard that.",
                    hint="Look with `windlass peek` when it is back, before you say it again.",
                ) from error
            raise

    return when_back(ask)


def _can_be_left(message: Row) -> bool:
    """Whether a line in a chat can say it: only a plain message to someone by name."""
    bound = any(message.get(each) for each in ("all", "handoff", "reply_to", "channel"))
    return bool(message.get("to")) and not bound


def _leave(message: Row) -> bool:
    """Write it into the chat of our worktree, which the daemon reads when it is back; False if there is none."""
    me, signal = os.environ.get("WINDLASS_AGENT"), os.environ.get("WINDLASS_SIGNAL")
    if not (me and signal):
        return False
    from windlass.core.messages.chat_line import write_line  # noqa: PLC0415

    file = Path(signal).parent.parent / "chat.md"
    line = "\n" + write_line(me, message["to"], message["body"])
    try:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW), "wb") as chat:  # only where it is read
            chat.write(line.encode("utf-8", "replace"))
    except OSError:
        return False
    return True


def say_sent(sent: Row | None, as_json: bool) -> None:
    """Who has it, and what will happen with each of them."""
    if sent is None:
        if as_json:
            say_json({"status": "left"})
        else:
            say("Left in chat.md: the daemon, which is away, sends it when it is back, or tells you why not.")
    elif as_json:
        say_json(sent)
    else:
        readers = sent["readers"]
        say(f"{bold(sent['id'])} {_addressees(sent)}")
        room = max((len(reader["name"]) for reader in readers), default=0)
        for reader in readers:
            say(f"  {one_line(reader['name']).ljust(room)}  {one_line(reader['outlook'])}")


def _addressees(sent: Row) -> str:
    names = [one_line(each["name"]) for each in sent["readers"]]
    where = f"in {one_line(sent['channel'])}"
    return f"{where} to {', '.join(names)}" if names else f"{where}; nobody is addressed, so nobody is woken"


# ── waiting ──────────────────────────────────────────────────────────────────────────────────────────────────


def wait_for(
    ask: Callable[[Client, float], Any], daemon: Client, seconds: float | None, what: str, *, hint: str
) -> Any:
    """Ask in slices until there is an answer; a daemon that goes is waited for, as long as there is time."""
    deadline = None if seconds is None else time.monotonic() + seconds

    def once(client: Client) -> Any:
        left = SLICE if deadline is None else min(SLICE, deadline - time.monotonic())
        if left <= 0:
            raise TimedOut(f"{what} in {seconds:g} s.", hint=hint)
        return ask(client, left)

    first = Client(daemon.home, start=None if inside_a_run() else daemon.start, waiting=_quiet)
    answer = None
    with suppress(Gone, NotRunning):
        answer = once(first)
    while not answer:
        answer = when_back(partial(once, first.going_on()))
    return answer


def _quiet(_seconds: float) -> None:
    """Whoever waits for a message knows that it may take long."""


# ── showing ──────────────────────────────────────────────────────────────────────────────────────────────────


def say_messages(items: Sequence[Row], none: str, *, full: bool = True) -> None:
    """Each message; where one is very long and not wanted in full, its beginning, and how to see the rest."""
    for item in items:
        text = item["message"]
        say(_headline(item))
        say(block(text if full else text[:LONGEST_SHOWN], "  "))
        if not full and len(text) > LONGEST_SHOWN:
            more = f"{click.get_current_context().command_path} --full"
            say(dim(f"  … {len(text) - LONGEST_SHOWN} characters more: `{more}` shows them."))
    if not items:
        say(none)


def _headline(message: Row) -> str:
    to = ", ".join(map(one_line, message["to"]))
    claims = f" (says that it is {one_line(message['claims'])})" if message.get("claims") else ""
    about = [one_line(message["channel"])]
    about += [message["kind"]] if message["kind"] != "say" else []
    about += [f"in reply to {message['reply_to']}"] if message.get("reply_to") else []
    about += ["direct"] if message.get("direct") else []
    about += [_stands(message)] if message.get("receipt") else []
    about += [f"of {one_line(message['project'])}"] if message.get("project") and not message.get("here") else []
    at = time.strftime("%H:%M:%S", time.localtime(message["time"]))
    head = f"{bold(message['id'])}  {at}  {bold(one_line(message['from']))}{claims}" + (f" → {to}" if to else "")
    return f"{head}  {dim('(' + ', '.join(about) + ')')}"


def _stands(letter: Row) -> str:
    """How far it got with its reader, and why not further."""
    return f"{letter['receipt']}: {one_line(letter['reason'])}" if letter.get("reason") else str(letter["receipt"])


def mail(letter: Row) -> dict[str, Any]:
    """A letter with the keys that `agent list-messages --json` promises."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(letter["time"]))
    return {
        "id": letter["id"],
        "from": letter["from"],
        "to": letter["to"],
        "timestamp": stamp,
        "body": letter["message"],
        "status": letter["receipt"],
        "reason": letter["reason"],
        "channel": letter["channel"],
        "kind": letter["kind"],
        "reply_to": letter["reply_to"],
    }

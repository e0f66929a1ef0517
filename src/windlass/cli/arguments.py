"""Declarations that commands share: examples in the help, options, and arguments that name something."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from windlass.cli import completions
from windlass.cli.connection.client import here
from windlass.core.errors import BadInput

if TYPE_CHECKING:  # no command waits for an import that only names a type
    from click.shell_completion import CompletionItem


class CommandWithExamples(click.Command):
    """A command whose usage errors point to its help. `surplus` says what to do about extra arguments."""

    def __init__(self, *args: Any, surplus: str = "", **options: Any) -> None:
        super().__init__(*args, **options)
        self.surplus = surplus

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Add the context that some of click's own errors lack."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            if self.surplus and "unexpected extra argument" in error.message:
                raise click.UsageError(f"{error.message.rstrip('.')}. {self.surplus}", ctx) from error
            raise


def examples(text: str) -> str:
    """The end of a help page: one example a line."""
    return "\b\nExamples:\n" + "\n".join(f"  {line.strip()}" for line in text.strip().splitlines())


def command(
    name: str, lines: str, *, group: click.Group | None = None, **options: Any
) -> Callable[[Callable[..., Any]], click.Command]:
    """Declare a command whose help ends with these lines as examples."""
    options.setdefault("cls", CommandWithExamples)
    return (group.command if group else click.command)(name, epilog=examples(lines), **options)


def all_of(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Several options or arguments as one decorator, in this order."""

    def decorate(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


# ── arguments that name something ────────────────────────────────────────────────────────────────────────────


def address(value: str) -> str:
    """Check and normalize an address. Raises BadInput, with the near miss where only capitals are wrong."""
    from windlass.core.address import Address  # noqa: PLC0415 - most commands take no name

    try:
        return str(Address.parse(value))
    except BadInput as error:
        small = value.lower()
        with suppress(BadInput):
            error.hint = f"Did you mean {Address.parse(small)}? {error.hint}" if small != value else error.hint
        raise


def agent_name(value: str) -> str:
    """Check the name of one agent. Raises BadInput for an instance."""
    if address(value).startswith("@"):
        raise BadInput(f"{value} names everyone there; one agent is needed here.")
    return value


def _word(value: str) -> str:
    """Refuse an empty name: often a variable that is not set."""
    if not value.strip():
        raise click.BadParameter("it is empty.")
    return value


def _document(value: str) -> str:
    if "/" in value:
        raise BadInput(f"{value!r} is no name for a document.", hint="It has no folders: letters, digits, . _ and -.")
    return _word(value)


def _saved(value: str) -> str:
    if not value.strip() or not value.isprintable():
        raise BadInput(f"{value!r} names nothing that could be saved.", hint="See `windlass rescue list`.")
    return value


def _id_of(noun: str, shown_by: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if not (value.isascii() and value.isalnum()):
            raise BadInput(f"{value[:40]!r} is not the id of a {noun}.", hint=f"Run `{shown_by}` to see the ids.")
        return value

    return check


Offers = Callable[[click.Context], Iterable[completions.Named]]
"""Finds the names that a shell may offer for a word."""


class Name(click.ParamType[str]):
    """An argument that names something: how its value is checked, and which names the shell offers for it."""

    def __init__(self, name: str, offers: Offers, *, check: Callable[[str], str] = str) -> None:
        self.name = name
        self.offers = offers
        self.check = check

    def convert(self, value: Any, _param: click.Parameter | None, _ctx: click.Context | None) -> str:
        return self.check(str(value))

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return completions.offered(ctx, param, incomplete, self.offers(ctx))


def _comments(ctx: click.Context) -> list[completions.Named]:
    change = ctx.params.get("change")
    return completions.known("id", "body", "changes", change, within="comments") if change else []


def _everyone(_ctx: click.Context) -> list[completions.Named]:
    return completions.at_work(everyone=True)


def _readers(_ctx: click.Context) -> list[completions.Named]:
    return [*completions.readers(), *completions.instances(), ("human", "")]


def _said(key: str, title: str) -> list[completions.Named]:
    return completions.known(key, title, "messages", path=here())


_message_id = _id_of("message", "windlass inbox")

WORD = Name("name", lambda _: (), check=_word)
AGENT = Name("name", _everyone, check=agent_name)
AGENT_OR_TEXT = Name("name", _everyone)
ASKABLE = Name("name", lambda _: completions.readers(), check=agent_name)
"""An agent that may only be defined so far."""
READER = Name("whom", _readers, check=address)
"""coder, coder@pr-7, or everyone in @pr-7."""
READER_OR_TEXT = Name("whom", _readers)
STOPPABLE = Name("whom", lambda _: [*completions.at_work(), *completions.instances()], check=address)
"""An agent at work, or everyone in @pr-7."""
CHANNEL = Name("channel", lambda _: [("main", ""), *completions.instances(), *_said("channel", "")])
"""main, @pr-7, task/t12 or change/c3."""
MESSAGE = Name("message", lambda _: completions.known("id", "message", "inbox"), check=_message_id)
SAID_MESSAGE = Name("message", lambda _: _said("id", "message"), check=_message_id)
DOCUMENT = Name("name", lambda _: completions.known("name", "author", "documents", path=here()), check=_document)
COMMENT = Name("comment", _comments, check=_id_of("comment", "windlass change show"))
SAVED_WORK = Name("saved", lambda _: completions.known("id", "why", "rescue", all=1), check=_saved)
"""A number in the list of saved work, a short name such as swift-otter/1, or a ref."""
_CHANGE = Name(
    "change", lambda _: completions.known("id", "title", "queue", all=1), check=_id_of("change", "windlass queue --all")
)

_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


class Duration(click.ParamType[float]):
    """A time such as 90, 90s, 10m or 2h."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = str(value).rstrip("abcdefghijklmnopqrstuvwxyz")
        unit = str(value)[len(number) :] or "s"
        try:
            seconds = float(number) * _UNITS[unit]
        except (ValueError, KeyError):
            self.fail(f"{value!r} is not a time; write 90s, 10m or 2h.", param, ctx)
        if not 0 < seconds < float("inf"):
            self.fail(f"{value!r} is not a time to wait; it must be more than nothing.", param, ctx)
        return seconds


change_argument = click.argument("change", type=_CHANGE)
agent_argument = click.argument("name", type=AGENT)
acked_argument = click.argument("messages", type=MESSAGE, nargs=-1, required=True, metavar="ID…")
json_option = click.option("--json", "as_json", is_flag=True, help="For programs: JSON with stable keys.")
daemon_and_json = all_of(json_option, click.pass_obj)
"""For a command whose first argument is the daemon's client, and that prints its answer as JSON if asked."""
page_options = all_of(
    click.option("--since", type=click.IntRange(min=0), metavar="N", help="Go on after the first N files."),
    click.option("--limit", type=click.IntRange(1, 10_000), metavar="N", help="At most so many files. Default: 100."),
)
here_option = click.option(
    "--here",
    "path",
    is_flag=True,
    callback=lambda _ctx, _param, wanted: here() if wanted else None,
    help="Only what belongs to the project in this folder.",
)

"""What commands share: examples in the help, and arguments that are names."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from windlass.cli import completions
from windlass.cli.connection.client import here
from windlass.core.errors import BadInput

if TYPE_CHECKING:  # no command waits for an import that only names a type
    from click.shell_completion import CompletionItem

json_option = click.option("--json", "as_json", is_flag=True, help="For programs: JSON with stable keys.")
here_option = click.option(
    "--here",
    "path",
    is_flag=True,
    callback=lambda _ctx, _param, wanted: here() if wanted else None,
    help="Only what belongs to the project in this folder.",
)


def command(
    name: str, examples: str, *, group: click.Group | None = None, **options: Any
) -> Callable[[Callable[..., Any]], click.Command]:
    """A command whose help ends with examples."""
    lines = "\n".join(f"  {line.strip()}" for line in examples.strip().splitlines())
    make = group.command if group else click.command
    return make(name, cls=options.pop("cls", Taught), epilog=f"\b\nExamples:\n{lines}", **options)


class Taught(click.Command):
    """A command whose slips say where its examples are."""

    surplus = ""
    """What to do about words that it has no place for."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Some of click's own complaints do not know of which command they are."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            if self.surplus and "unexpected extra argument" in error.message:
                raise click.UsageError(f"{error.message.rstrip('.')}. {self.surplus}", ctx) from error
            raise


def _address(value: str) -> str:
    """Who is meant, as it is written everywhere. Raises BadInput, with the near miss where only capitals are wrong."""
    from windlass.core.address import Address  # noqa: PLC0415 - most commands take no name

    try:
        return str(Address.parse(value))
    except BadInput as error:
        small = value.lower()
        with suppress(BadInput):
            error.hint = f"Did you mean {Address.parse(small)}? {error.hint}" if small != value else error.hint
        raise


class AgentName(click.ParamType[str]):
    """The name of an agent, such as swift-otter."""

    name = "name"

    def convert(self, value: str, _param: click.Parameter | None, _ctx: click.Context | None) -> str:
        if _address(value).startswith("@"):
            raise BadInput(f"{value} names everyone there; one agent is needed here.")
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return completions.offered(ctx, param, incomplete, completions.at_work(everyone=True))


class Askable(AgentName):
    """An agent that may only be defined so far."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return completions.offered(ctx, param, incomplete, completions.readers())


class Reader(click.ParamType[str]):
    """Whom something is for: coder, coder@pr-7, or everyone in @pr-7."""

    name = "whom"

    def convert(self, value: str, _param: click.Parameter | None, _ctx: click.Context | None) -> str:
        return _address(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        found = [*completions.readers(), *completions.instances(), ("human", "")]
        return completions.offered(ctx, param, incomplete, found)


class Stoppable(Reader):
    """Who can be stopped: an agent at work, or everyone in @pr-7."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return completions.offered(ctx, param, incomplete, [*completions.at_work(), *completions.instances()])


class Channel(click.ParamType[str]):
    """Where something is said: main, @pr-7, task/t12 or change/c3."""

    name = "channel"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        said = completions.known("channel", "", "messages", path=here())
        return completions.offered(ctx, param, incomplete, [("main", ""), *completions.instances(), *said])


class MessageId(click.ParamType[str]):
    """The id of a message, such as m12."""

    name = "message"

    def convert(self, value: str, _param: click.Parameter | None, _ctx: click.Context | None) -> str:
        if not (value.isascii() and value.isalnum()):
            raise BadInput(f"{value[:40]!r} is not the id of a message.", hint="Run `windlass inbox` to see the ids.")
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return completions.offered(ctx, param, incomplete, completions.known("id", "message", "inbox"))


class SaidId(MessageId):
    """The id of a message that was said here, to whomever."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        said = completions.known("id", "message", "messages", path=here())
        return completions.offered(ctx, param, incomplete, said)


class Word(click.ParamType[str]):
    """A name of something; an empty one is a slip, such as a variable that is not set."""

    name = "name"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value.strip():
            self.fail("it is empty.", param, ctx)
        return value


class DocumentName(Word):
    """The name of a shared document, such as notes."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if "/" in str(value):
            raise BadInput(
                f"{value!r} is no name for a document.", hint="It has no folders: letters, digits, . _ and -."
            )
        return super().convert(value, param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return completions.offered(
            ctx, param, incomplete, completions.known("name", "author", "documents", path=here())
        )


class ChangeId(click.ParamType[str]):
    """The id of a change, such as c3."""

    name = "change"

    def convert(self, value: str, _param: click.Parameter | None, _ctx: click.Context | None) -> str:
        if not (value.isascii() and value.isalnum()):
            raise BadInput(f"{value!r} is not the id of a change.", hint="Run `windlass queue --all` to see the ids.")
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return completions.offered(ctx, param, incomplete, completions.known("id", "title", "queue", all=1))


class CommentId(click.ParamType[str]):
    """The id of a comment on a change, such as m12."""

    name = "comment"

    def convert(self, value: str, _param: click.Parameter | None, _ctx: click.Context | None) -> str:
        if not (value.isascii() and value.isalnum()):
            raise BadInput(f"{value!r} is not the id of a comment.", hint="Run `windlass change show` to see the ids.")
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        change = ctx.params.get("change")
        found = completions.known("id", "body", "changes", change, within="comments") if change else []
        return completions.offered(ctx, param, incomplete, found)


change_argument = click.argument("change", type=ChangeId())


class SavedWork(click.ParamType[str]):
    """Saved work: its number in the list, its short name such as swift-otter/1, or its ref."""

    name = "saved"

    def convert(self, value: str, _param: click.Parameter | None, _ctx: click.Context | None) -> str:
        if not value.strip() or not value.isprintable():
            raise BadInput(f"{value!r} names nothing that could be saved.", hint="See `windlass rescue list`.")
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return completions.offered(ctx, param, incomplete, completions.known("id", "why", "rescue", all=1))


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

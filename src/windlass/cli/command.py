"""What commands share: examples in the help, and arguments that are names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from windlass.cli.client import Client, here, home
from windlass.core.errors import BadInput, WindlassError

if TYPE_CHECKING:  # no command waits for an import that only names a type
    from click.shell_completion import CompletionItem

COMPLETION_PATIENCE = 0.5
"""Seconds that a shell waits for names; after that there are none."""

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
    return make(name, epilog=f"\b\nExamples:\n{lines}", **options)


class AgentName(click.ParamType[str]):
    """The name of an agent, such as swift-otter."""

    name = "name"

    def convert(self, value: str, _param: click.Parameter | None, _ctx: click.Context | None) -> str:
        from windlass.core.address import Address  # noqa: PLC0415 - most commands take no name

        if not Address.parse(value).name:
            raise BadInput(f"{value} names everyone there; one agent is needed here.")
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return _offered(ctx, param, _completed(incomplete, "name", "task_title", "agents", all=1))


class Askable(AgentName):
    """An agent that may only be defined so far."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return _offered(ctx, param, _everyone(incomplete))


class Reader(click.ParamType[str]):
    """Whom something is for: coder, coder@pr-7, or everyone in @pr-7."""

    name = "whom"

    def convert(self, value: str, _param: click.Parameter | None, _ctx: click.Context | None) -> str:
        from windlass.core.address import Address  # noqa: PLC0415 - most commands take no name

        return str(Address.parse(value))

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        person = _words(incomplete, "human")
        return _offered(ctx, param, [*_everyone(incomplete), *_instances(incomplete), *person])


class Channel(click.ParamType[str]):
    """Where something is said: main, @pr-7, task/t12 or change/c3."""

    name = "channel"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        said = _completed(incomplete, "channel", "", "messages", path=here())
        return _offered(ctx, param, [*_words(incomplete, "main"), *_instances(incomplete), *said])


class MessageId(click.ParamType[str]):
    """The id of a message, such as m12."""

    name = "message"

    def convert(self, value: str, _param: click.Parameter | None, _ctx: click.Context | None) -> str:
        if not (value.isascii() and value.isalnum()):
            raise BadInput(f"{value[:40]!r} is not the id of a message.", hint="Run `windlass inbox` to see the ids.")
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return _offered(ctx, param, _completed(incomplete, "id", "message", "inbox"))


class SaidId(MessageId):
    """The id of a message that was said here, to whomever."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return _offered(ctx, param, _completed(incomplete, "id", "message", "messages", path=here()))


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

    def shell_complete(self, _ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return _completed(incomplete, "name", "author", "documents", path=here())


class ChangeId(click.ParamType[str]):
    """The id of a change, such as c3."""

    name = "change"

    def convert(self, value: str, _param: click.Parameter | None, _ctx: click.Context | None) -> str:
        if not (value.isascii() and value.isalnum()):
            raise BadInput(f"{value!r} is not the id of a change.", hint="Run `windlass queue --all` to see the ids.")
        return value

    def shell_complete(self, _ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return _completed(incomplete, "id", "title", "queue", all=1)


class CommentId(click.ParamType[str]):
    """The id of a comment on a change, such as m12."""

    name = "comment"

    def convert(self, value: str, _param: click.Parameter | None, _ctx: click.Context | None) -> str:
        if not (value.isascii() and value.isalnum()):
            raise BadInput(f"{value!r} is not the id of a comment.", hint="Run `windlass change show` to see the ids.")
        return value

    def shell_complete(self, ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        change = ctx.params.get("change")
        return _completed(incomplete, "id", "body", "changes", change, within="comments") if change else []


change_argument = click.argument("change", type=ChangeId())


class SavedWork(click.ParamType[str]):
    """Saved work: its number in the list, its short name such as swift-otter/1, or its ref."""

    name = "saved"

    def convert(self, value: str, _param: click.Parameter | None, _ctx: click.Context | None) -> str:
        if not value.strip() or not value.isprintable():
            raise BadInput(f"{value!r} names nothing that could be saved.", hint="See `windlass rescue list`.")
        return value

    def shell_complete(self, _ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return _completed(incomplete, "id", "why", "rescue", all=1)


def _offered(ctx: click.Context, param: click.Parameter, found: list[CompletionItem]) -> list[CompletionItem]:
    """Each once, and none that stands there already."""
    given = ctx.params.get(param.name or "")
    there = given if isinstance(given, tuple) else ()
    once: dict[str, CompletionItem] = {}
    for each in found:
        once.setdefault(each.value, each)
    return [each for each in once.values() if each.value not in there]


def _everyone(incomplete: str) -> list[CompletionItem]:
    """Those who are defined here, and those at work."""
    defined = _completed(incomplete, "name", "role", "projects", "agents", within="agents", path=here())
    return [*defined, *_completed(incomplete, "name", "task_title", "agents")]


def _instances(incomplete: str) -> list[CompletionItem]:
    places = (each.value.partition("@")[2] for each in _completed("", "name", "task_title", "agents"))
    return _words(incomplete, *(f"@{each}" for each in places if each))


def _words(incomplete: str, *words: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem  # noqa: PLC0415

    return [CompletionItem(each) for each in words if each.startswith(incomplete)]


def _completed(
    incomplete: str, key: str, title: str, *path: str, within: str = "items", **query: Any
) -> list[CompletionItem]:
    """Names that the daemon knows, if it runs; completing never starts one and never complains."""
    from click.shell_completion import CompletionItem  # noqa: PLC0415

    from windlass.cli.output import one_line  # noqa: PLC0415

    daemon = Client(home(), start=None, waiting=lambda _seconds: None, patience=COMPLETION_PATIENCE)
    try:
        items = daemon.get(*path, **query)[within]
    except (WindlassError, OSError, ValueError, KeyError):
        return []
    return [
        CompletionItem(each[key], help=one_line(each.get(title) or ""))
        for each in items
        if each[key].startswith(incomplete)
    ]


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

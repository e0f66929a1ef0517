"""Settings: read and change them, and name their files."""

from __future__ import annotations

import json
from typing import Any

import click

from windlass.cli.arguments import command, daemon_and_json, examples
from windlass.cli.connection.client import Client, here, repository
from windlass.cli.output import one_line, page, say_answer


def _keys(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    from windlass.core.settings.schema import keys  # noqa: PLC0415

    return [key for key in keys() if key.startswith(incomplete)]


@click.group("config", epilog=examples('windlass config get\nwindlass config set checks.command "make test"'))
def config_command() -> None:
    """Read and change settings. A project's are stronger than those of your home."""


@command("get", "windlass config get\nwindlass config get checks.command", group=config_command)
@click.argument("key", required=False, shell_complete=_keys)
@daemon_and_json
def get_command(daemon: Client, key: str | None, as_json: bool) -> None:
    """Show all settings in force here, or one."""
    values = daemon.get("settings", path=repository())["values"]
    if key is not None and key not in values:
        from windlass.core.settings.schema import check_key  # noqa: PLC0415

        check_key(key)
    if key is None:
        text = "\n".join(page((name, _text(value) or "-") for name, value in values.items()))
    else:
        text = one_line(_text(values.get(key)))
    say_answer(values if key is None else values.get(key), text, as_json=as_json)


@command(
    "set",
    'windlass config set checks.command "make test"\nwindlass config set --home limits.runs 4',
    group=config_command,
)
@click.argument("key", shell_complete=_keys)
@click.argument("value")
@click.option("--home", is_flag=True, help="For all projects, in your home's file.")
@daemon_and_json
def set_command(daemon: Client, key: str, value: str, home: bool, as_json: bool) -> None:
    """Change a setting of this project, or of all with --home."""
    answer = daemon.post("settings", path=here(), key=key, value=value, home=home)
    text = f"{one_line(answer['key'])} = {one_line(_text(answer['value']))}   in {one_line(answer['file'])}"
    say_answer(answer, text, as_json=as_json)


@command("path", "windlass config path", group=config_command)
@daemon_and_json
def path_command(daemon: Client, as_json: bool) -> None:
    """Show the files that settings are read from, the strongest last."""
    files = daemon.get("settings", path=repository())["files"]
    say_answer(files, "\n".join(map(one_line, files)), as_json=as_json)


def _text(value: Any) -> str:
    """A value as one would type it."""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value)

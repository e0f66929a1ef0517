"""Print the reference page of all settings, from the lines that declare them in core/settings/schema.py."""

from __future__ import annotations

import ast
import inspect
import sys
import typing
from dataclasses import MISSING, fields
from itertools import pairwise
from typing import Any

from windlass.core.settings.schema import Settings

HEAD = """\
# Settings

<!-- Made by scripts/docs from src/windlass/core/settings/schema.py. Change it there. -->

Windlass works without any. Where several places say something, the later one in this list wins:

1. what is built in (the defaults below),
2. `~/.windlass/config.toml` (yours, for all projects; `WINDLASS_HOME` moves the folder),
3. `.windlass/config.toml` in the project,
4. the environment: `WINDLASS_PROVIDER` stands for `work.provider`, `WINDLASS_SANDBOX` for `sandbox.mode`,
5. a flag, where the command has one (`windlass work --provider …`).

A project's file comes with its repository, so it can't give agents more than you do: `daemon.*`, `work.environment` and
all of `sandbox.*` that loosens it are refused there.

`windlass config get` shows what is in force, `windlass config set KEY VALUE` writes it, `windlass config path` names
the files. A key that does not exist is refused, with the one you may have meant.
"""


def page() -> str:
    """The whole page as Markdown."""
    sections = [_section(*_table(name, kind)) for name, kind in typing.get_type_hints(Settings).items()]
    return "\n".join((HEAD, *sections))


def _table(name: str, kind: Any) -> tuple[str, type[Any]]:
    """The table of a group of settings; one with names of your own has a word for them."""
    inner = typing.get_args(kind)
    return (f"{name}.NAME", inner[-1]) if inner else (name, kind)


def _section(name: str, kind: type[Any]) -> str:
    words = _explanations(kind)
    rows = [f"| `{name}.{field.name}` | {_value(field.default)} | {words[field.name]} |" for field in fields(kind)]
    return "\n".join((f"## [{name}]", str(kind.__doc__), "", "| key | default | meaning |", "|---|---|---|", *rows, ""))


def _explanations(kind: type[Any]) -> dict[str, str]:
    """The text below each field, which Python itself does not keep."""
    body = next(
        node.body
        for node in ast.parse(inspect.getsource(sys.modules[kind.__module__])).body
        if isinstance(node, ast.ClassDef) and node.name == kind.__name__
    )
    found: dict[str, str] = {}
    for field, text in pairwise(body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                found[name] = " ".join(words.split())
    return found


def _value(default: Any) -> str:
    if default is MISSING:  # made anew for each: an empty table
        return "none"
    match default:
        case "" | ():
            return "none"
        case bool():
            return f"`{str(default).lower()}`"
        case int():
            return f"`{default}`"
        case float():
            return f"`{default:g}`"
    return f'`"{default}"`'


if __name__ == "__main__":
    sys.stdout.write(page())

"""Examples: show the workflows that come with Windlass, or write one into a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from windlass.cli.arguments import Name, command, json_option
from windlass.cli.output import Column, block, bold, dim, one_line, say, say_answer, say_json, table
from windlass.core.errors import BadInput, Conflict, NotFound

_EXAMPLES = (
    Column("NAME", lambda row: row["name"], style=bold),
    Column("WHAT IT DOES", lambda row: row["summary"], gives=True),
    Column("AGENTS", lambda row: ", ".join(row["agents"]), gives=True, spare=True),
    Column("PARAMETERS", lambda row: " ".join(f"--{param}" for param in row["params"]), spare=True),
)


def _offered(_ctx: click.Context) -> list[tuple[str, str]]:
    from windlass.library.workflows import shipped  # noqa: PLC0415

    return [(name, _summary(path.read_text("utf-8"))) for name, path in shipped().items()]


@command(
    "examples",
    """
    windlass examples                        which there are
    windlass examples review                 show one
    windlass examples review --write .windlass/workflows/review.yaml      make it your own
    """,
)
@click.argument("name", required=False, type=Name("name", _offered))
@click.option("--write", metavar="PATH", type=click.Path(), help="Write it into this file, or into this folder.")
@json_option
def examples_command(name: str | None, *, write: str | None, as_json: bool) -> None:
    """Show the workflows that come with Windlass. Yours, of the same name in .windlass/workflows, come before them."""
    from windlass.core.did_you_mean import near_miss  # noqa: PLC0415
    from windlass.library.workflows import shipped  # noqa: PLC0415

    known = shipped()
    if name is None:
        if write is not None:
            raise BadInput("Which of them?", hint="Run `windlass examples` to see the names.")
        rows = [_row(example, path) for example, path in known.items()]
        more = dim("\nwindlass examples NAME shows one; with --write PATH it is yours to change.")
        say_answer({"items": rows}, "\n".join((*table(_EXAMPLES, rows), more)), as_json=as_json)
        return
    if name not in known:
        raise NotFound(
            f"No example is called {name!r}.", hint=near_miss(name, known) or f"There are {', '.join(known)}."
        )
    text = known[name].read_text("utf-8")
    written = _written(text, name, Path(write)) if write is not None else ""
    if as_json:
        say_json(_row(name, known[name]) | {"text": text, "written": written})
    elif written:
        say(f"{one_line(written)} is written. Change it as you like, then: windlass validate {one_line(written)}")
    else:
        say(block(text))


def _row(name: str, path: Path) -> dict[str, Any]:
    from windlass.library.workflows import load  # noqa: PLC0415

    workflow = load(path).workflow
    return {
        "name": name,
        "summary": _summary(path.read_text("utf-8")),
        "agents": [agent.name for agent in workflow.agents] if workflow else [],
        "params": [param.name for param in workflow.params] if workflow else [],
    }


def _summary(text: str) -> str:
    """The first comment of a workflow."""
    return text.partition("\n")[0].lstrip("# ")


def _written(text: str, name: str, given: Path) -> str:
    path = given / f"{name}.yaml" if given.is_dir() else given
    if path.suffix not in (".yaml", ".yml"):
        raise BadInput(f"{path} does not end in .yaml.", hint=f"Write `windlass examples {name} --write {path}.yaml`.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise Conflict(f"{path} is there already.", hint="Remove it first, or write another file.") from error
    return str(path)

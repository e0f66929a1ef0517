"""Workflow files: what is wrong with them, and those of version 1 in the form of today."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windlass.cli.arguments import command, json_option
from windlass.cli.output import block, bold, one_line, page, say, say_json, say_problem, tell

if TYPE_CHECKING:  # no command waits for an import that only names a type
    from click.shell_completion import CompletionItem

    from windlass.core.workflows.workflow import Workflow
    from windlass.library.workflows import Loaded

PARAMETERS = "windlass.parameters"
"""Where a command keeps what stands after `--`."""


class WithParameters(click.Command):
    """A command that takes a workflow's own parameters after `--`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            ctx.meta[PARAMETERS] = args[args.index("--") + 1 :]
            args = args[: args.index("--")]
        return super().parse_args(ctx, args)


class WorkflowFile(click.ParamType[str]):
    """A workflow: the path of its file, or its name."""

    name = "file"

    def shell_complete(self, _ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Names that are known here, then files."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415

        from windlass.library.workflows import own, shipped  # noqa: PLC0415

        names = sorted({**shipped(), **own(Path.cwd())})
        found = [CompletionItem(name, help="workflow") for name in names if name.startswith(incomplete)]
        return found or [CompletionItem(incomplete, type="file")]


@command(
    "validate",
    """
    windlass validate review.yaml                 all that is wrong, each with its line and column
    windlass validate review                      .windlass/workflows/review.yaml, or the shipped one
    windlass validate .windlass/workflows/*.yaml --json
    windlass validate review.yaml -- --base main  and whether it can be started with these parameters
    """,
    cls=WithParameters,
)
@click.argument("given", metavar="FILE...", nargs=-1, required=True, type=WorkflowFile())
@json_option
@click.pass_context
def validate_command(ctx: click.Context, /, *, given: tuple[str, ...], as_json: bool) -> None:
    """Say what is wrong with workflow files, all at once, or what they hold. Nothing is run; exit 1 for an error."""
    from windlass.core.files.params import bind  # noqa: PLC0415
    from windlass.library.workflows import find, load  # noqa: PLC0415

    here = Path.cwd()
    paths = {each: find(each, here) for each in given}
    providers = _providers()
    found = {
        each: load(path, shown=shown_path(path, here), providers=providers, environment=os.environ)
        for each, path in paths.items()
    }
    arguments = ctx.meta.get(PARAMETERS)
    if arguments is not None:
        for loaded in found.values():
            if loaded.workflow:
                bind(loaded.workflow.params, arguments)
    if as_json:
        say_json({"files": [_plain(shown_path(paths[each], here), loaded) for each, loaded in found.items()]})
    else:
        for each, loaded in found.items():
            _say(shown_path(paths[each], here), loaded)
    if any(each.workflow is None for each in found.values()):
        ctx.exit(1)


@command(
    "migrate",
    """
    windlass migrate old.yaml              the difference, and nothing is changed
    windlass migrate old.yaml --write      change the file
    windlass migrate old.yaml | git apply
    """,
)
@click.argument("given", metavar="FILE", type=click.Path(dir_okay=False))
@click.option("--write", is_flag=True, help="Change the file, instead of showing what would change.")
@json_option
def migrate_command(given: str, *, write: bool, as_json: bool) -> None:
    """Bring a workflow of version 1, a list of steps, into the form of today: setup and kickoff.

    Commands before the first message become setup. The first message becomes the kickoff; what followed it is said
    there, too, and agents pass it on by mentioning one another. Comments stay.
    """
    from windlass.library.migration import migrate  # noqa: PLC0415
    from windlass.library.workflows import find, load, replace_text  # noqa: PLC0415

    here = Path.cwd()
    path = find(given if "/" in given else f"./{given}", here)
    shown = shown_path(path, here)
    made = migrate(path, shown)
    left = load(path, shown=shown, text=made.new).problems
    if write and made.changes:
        replace_text(path, made.new)
    if as_json:
        answer = {"file": shown, "changes": made.changes, "written": write and made.changes}
        answer |= {"diff": made.diff(shown), "notes": list(made.notes), "problems": [str(each) for each in left]}
        say_json(answer)
        return
    if made.changes and not write:
        say(block(made.diff(shown)))
    for note in (*made.notes, *(f"still to do: {each}" for each in left)):
        tell(f"note: {one_line(note)}")
    tell(f"{one_line(shown)} {_ENDINGS[write if made.changes else None]}")


_ENDINGS = {
    True: "is written.",
    False: "is unchanged; --write changes it.",
    None: "has the form of today already.",
}


def _providers() -> set[str]:
    """What the providers are called that are here: ours, and those in the user's settings."""
    from windlass.cli.connection.client import home  # noqa: PLC0415
    from windlass.daemon.settings import SettingsFiles  # noqa: PLC0415
    from windlass.providers import load  # noqa: PLC0415

    ours = {name for each in load().all() for name in (each.name, *each.aliases)}
    return ours | set(SettingsFiles(Path(home())).at("").providers)


def shown_path(path: Path, here: Path) -> str:
    """A path as the user would type it here."""
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _say(file: str, loaded: Loaded) -> None:
    for problem in loaded.problems:
        say_problem(problem)
    if loaded.workflow:
        say(f"{one_line(file)}: {bold(loaded.workflow.name)} is fine.")
        say("\n".join(f"  {each}" for each in page(_facts(loaded.workflow))))


def _facts(workflow: Workflow) -> list[tuple[str, object]]:
    from windlass.core.messages.mentions import mentions  # noqa: PLC0415

    names = [agent.name for agent in workflow.agents]
    captured = [each.name for each in workflow.setup if each.name]
    shared = _shared(workflow).values()
    return [
        ("agents", ", ".join(names)),
        ("context", ", ".join(shared) or "none: the agents can't talk to one another"),
        ("setup", _counted(len(workflow.setup), "command") + (f", giving {', '.join(captured)}" if captured else "")),
        ("params", ", ".join(f"--{param.name} ({param.kind})" for param in workflow.params) or "none"),
        ("tasks", ", ".join(task.name for task in workflow.tasks)),
        ("kickoff", ", ".join(f"@{each}" for each in mentions(workflow.kickoff.spoken, names).addressed)),
        ("gate", "what they commit wants to land" if workflow.gate else "what they commit stays on its branch"),
    ]


def _shared(workflow: Workflow) -> dict[str, str]:
    """The files of what its agents share, in the instance that is meant where none is said."""
    from windlass.core.workflows.instance import DEFAULT_INSTANCE  # noqa: PLC0415

    values = workflow.values(DEFAULT_INSTANCE).items()
    return {name.removeprefix("context."): file for name, file in values if name.startswith("context.")}


def _counted(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def _plain(file: str, loaded: Loaded) -> dict[str, Any]:
    answer: dict[str, Any] = {"file": file, "ok": loaded.workflow is not None}
    answer["problems"] = [problem._asdict() for problem in loaded.problems]
    return answer | (_contents(loaded.workflow) if loaded.workflow else {})


def _contents(workflow: Workflow) -> dict[str, Any]:
    """What a workflow holds, for programs."""
    from windlass.core import codec  # noqa: PLC0415
    from windlass.core.messages.mentions import mentions  # noqa: PLC0415

    names = [agent.name for agent in workflow.agents]
    return {
        "name": workflow.name,
        "agents": [codec.plain(agent) for agent in workflow.agents],
        "setup": [
            {"shell": each.shell.script()[0], "as": each.name, "seconds": each.seconds} for each in workflow.setup
        ],
        "params": [codec.plain(param) for param in workflow.params],
        "tasks": [{"name": task.name, "agent": task.agent, "needs": list(task.needs)} for task in workflow.tasks],
        "limits": codec.plain(workflow.limits),
        "context": _shared(workflow),
        "addressed": list(mentions(workflow.kickoff.spoken, names).addressed),
        "gate": workflow.gate,
    }

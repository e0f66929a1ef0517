"""Workflow files: validate them, and convert those of version 1."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windlass.cli.arguments import command, json_option
from windlass.cli.output import block, bold, count, one_line, page, say, say_json, say_problem, tell

if TYPE_CHECKING:  # no command waits for an import that only names a type
    from click.shell_completion import CompletionItem

    from windlass.core.workflows.workflow import Workflow
    from windlass.library.workflows import Loaded

PARAMETERS = "windlass.parameters"
"""Where a command keeps the arguments after `--`."""


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
    """Show all problems in workflow files, or their contents. Nothing is run; exit 1 for an error."""
    from windlass.core.files.params import bind  # noqa: PLC0415
    from windlass.library.workflows import find, load  # noqa: PLC0415

    paths = {name: find(name, Path.cwd()) for name in given}
    providers = _providers()
    found: list[tuple[str, Loaded]] = []
    for path in paths.values():
        shown = _shown(path)
        found.append((shown, load(path, shown=shown, providers=providers, environment=os.environ)))
    arguments = ctx.meta.get(PARAMETERS)
    for _, loaded in found:
        if loaded.workflow and arguments is not None:
            bind(loaded.workflow.params, arguments)
    if as_json:
        say_json({"files": [_plain(file, loaded) for file, loaded in found]})
    else:
        for file, loaded in found:
            _say(file, loaded)
    if any(loaded.workflow is None for _, loaded in found):
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
    """Convert a version 1 workflow, a list of steps, to the current format: setup and kickoff.

    Commands before the first message become setup. The first message becomes the kickoff; what followed it is said
    there, too, and agents pass it on by mentioning one another. Comments stay.
    """
    from windlass.library.migration import migrate  # noqa: PLC0415
    from windlass.library.workflows import find, load, replace_text  # noqa: PLC0415

    path = find(given if "/" in given else f"./{given}", Path.cwd())
    shown = _shown(path)
    made = migrate(path, shown)
    left = load(path, shown=shown, text=made.new).problems
    if write and made.changes:
        replace_text(path, made.new)
    if as_json:
        answer = {"file": shown, "changes": made.changes, "written": write and made.changes}
        answer |= {"diff": made.diff(shown), "notes": list(made.notes), "problems": [str(problem) for problem in left]}
        say_json(answer)
        return
    if made.changes and not write:
        say(block(made.diff(shown)))
    for note in (*made.notes, *(f"still to do: {problem}" for problem in left)):
        tell(f"note: {one_line(note)}")
    unwritten = "is unchanged; --write changes it." if made.changes else "has the current format already."
    tell(f"{one_line(shown)} {'is written.' if write and made.changes else unwritten}")


def _providers() -> set[str]:
    """The names of all providers: ours, and those in the user's settings."""
    from windlass.cli.connection.client import home  # noqa: PLC0415
    from windlass.daemon.settings import SettingsFiles  # noqa: PLC0415
    from windlass.providers import load  # noqa: PLC0415

    ours = {name for provider in load().all() for name in (provider.name, *provider.aliases)}
    return ours | set(SettingsFiles(Path(home())).at("").providers)


def _shown(path: Path) -> str:
    """A path as the user would type it here."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _say(file: str, loaded: Loaded) -> None:
    for problem in loaded.problems:
        say_problem(problem)
    if loaded.workflow:
        say(f"{one_line(file)}: {bold(loaded.workflow.name)} is fine.")
        say("\n".join(f"  {line}" for line in page(_facts(loaded.workflow))))


def _facts(workflow: Workflow) -> list[tuple[str, object]]:
    from windlass.core.messages.mentions import mentions  # noqa: PLC0415

    names = [agent.name for agent in workflow.agents]
    captured = [step.name for step in workflow.setup if step.name]
    commands = count(len(workflow.setup), "command") if workflow.setup else "no commands"
    return [
        ("agents", ", ".join(names)),
        ("context", ", ".join(_shared(workflow).values()) or "none: the agents can't talk to one another"),
        ("setup", commands + (f", giving {', '.join(captured)}" if captured else "")),
        ("params", ", ".join(f"--{param.name} ({param.kind})" for param in workflow.params) or "none"),
        ("tasks", ", ".join(task.name for task in workflow.tasks)),
        ("kickoff", ", ".join(f"@{name}" for name in mentions(workflow.kickoff.spoken, names).addressed)),
        ("gate", "what they commit wants to land" if workflow.gate else "what they commit stays on its branch"),
    ]


def _shared(workflow: Workflow) -> dict[str, str]:
    """The shared files of the default instance, by name."""
    from windlass.core.workflows.instance import DEFAULT_INSTANCE  # noqa: PLC0415

    values = workflow.values(DEFAULT_INSTANCE).items()
    return {name.removeprefix("context."): file for name, file in values if name.startswith("context.")}


def _plain(file: str, loaded: Loaded) -> dict[str, Any]:
    answer: dict[str, Any] = {"file": file, "ok": loaded.workflow is not None}
    answer["problems"] = [problem._asdict() for problem in loaded.problems]
    return answer | (_contents(loaded.workflow) if loaded.workflow else {})


def _contents(workflow: Workflow) -> dict[str, Any]:
    """The contents of a workflow, for programs."""
    from windlass.core import codec  # noqa: PLC0415
    from windlass.core.messages.mentions import mentions  # noqa: PLC0415

    names = [agent.name for agent in workflow.agents]
    return {
        "name": workflow.name,
        "agents": [codec.plain(agent) for agent in workflow.agents],
        "setup": [
            {"shell": step.shell.script()[0], "as": step.name, "seconds": step.seconds} for step in workflow.setup
        ],
        "params": [codec.plain(param) for param in workflow.params],
        "tasks": [{"name": task.name, "agent": task.agent, "needs": list(task.needs)} for task in workflow.tasks],
        "limits": codec.plain(workflow.limits),
        "context": _shared(workflow),
        "addressed": list(mentions(workflow.kickoff.spoken, names).addressed),
        "gate": workflow.gate,
    }

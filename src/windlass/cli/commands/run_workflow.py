"""Run and start a workflow: its setup runs here, its agents with the daemon; show what they say meanwhile."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windlass.cli.arguments import WORD, Duration, command, json_option
from windlass.cli.commands.agents import cost_of, given_text
from windlass.cli.commands.work import how_driven
from windlass.cli.commands.workflow_files import PARAMETERS, WithParameters, WorkflowFile
from windlass.cli.commands.workflow_setup import set_up
from windlass.cli.completions import address_of
from windlass.cli.connection.client import Client, here
from windlass.cli.connection.follow import follow
from windlass.cli.output import Row, block, bold, count, dim, one_line, say, say_answer, say_json, tell
from windlass.core.display import age
from windlass.core.errors import BadInput, TimedOut, WindlassError

if TYPE_CHECKING:  # no command waits for an import that only names a type
    from windlass.core.workflows.workflow import Workflow


_instance_option = click.option(
    "--instance", metavar="NAME", type=WORD, help="The name of this instance. Default: default."
)
_verbose_option = click.option("--verbose", is_flag=True, help="Also tell who begins and ends, and what setup keeps.")


@command(
    "run",
    """
    windlass run review.yaml                       returns when all is quiet; exit 0 only if nobody failed
    windlass run review --instance pr-123          .windlass/workflows/review.yaml, or the shipped one
    windlass run review.yaml --timeout 30m --json
    windlass run review.yaml -- --base main        arguments after -- are the workflow's own parameters
    """,
    cls=WithParameters,
)
@click.argument("file", type=WorkflowFile())
@_instance_option
@_verbose_option
@click.option("--timeout", type=Duration(), help="Stop it after this long (exit 7).")
@json_option
@click.pass_context
def run_command(
    ctx: click.Context, /, *, file: str, instance: str | None, verbose: bool, timeout: float | None, as_json: bool
) -> None:
    """Run a workflow: its setup, its kickoff, its agents, until nothing is left to do."""
    deadline = time.monotonic() + timeout if timeout else None
    begun = _begin(ctx, file, instance, as_json=as_json, verbose=verbose, deadline=deadline)
    progress = _InstanceProgress(as_json=as_json, verbose=verbose)
    try:
        view = _follow(ctx.obj, begun, deadline, progress)
    except KeyboardInterrupt:
        _raise_unless_done(_drain(ctx.obj, begun, deadline, progress), begun["instance"])
        raise
    _raise_unless_done(view, begun["instance"])


@command(
    "start",
    """
    windlass start review.yaml                     stays, and tells what is said, until you press Ctrl-C
    windlass start review.yaml --background        returns when the kickoff is delivered
    windlass send "look again" --to reviewer@default
    windlass stop @default
    """,
    cls=WithParameters,
)
@click.argument("file", type=WorkflowFile())
@_instance_option
@_verbose_option
@click.option("--background", is_flag=True, help="Return when it has begun. It goes on without this terminal.")
@json_option
@click.pass_context
def start_command(
    ctx: click.Context, /, *, file: str, instance: str | None, verbose: bool, background: bool, as_json: bool
) -> None:
    """Start a workflow that stays: its agents answer what they are sent, until `windlass stop @NAME`."""
    begun = _begin(ctx, file, instance, as_json=as_json, verbose=verbose, stays=True)
    name = begun["instance"]
    text = f"{bold(begun['workflow'])} has begun as {begun['channel']}."
    text += f"\n  windlass peek --channel @{name}    what is said\n  windlass stop @{name}              end it"
    say_answer(begun, text, as_json=as_json)
    if not background and not as_json:
        progress = _InstanceProgress(as_json=as_json, verbose=verbose)
        try:
            for view in _views(ctx.obj, begun, None, progress):
                progress.show(view)
        except KeyboardInterrupt:
            tell(f"\n@{name} goes on. `windlass stop @{name}` ends it.")
            raise


@command(
    "new",
    """
    windlass new helper --command ./my-agent.sh
    windlass new helper --provider NAME --model NAME --context      --context: it may speak to other agents
    windlass send "Check the notes in the document" --to helper
    windlass peek --to helper
    """,
)
@click.argument("name", type=WORD)
@_instance_option
@click.option("--provider", metavar="NAME", type=WORD, help="Which coding CLI it is. Default: work.provider.")
@click.option("--model", metavar="NAME", type=WORD, help="Which model. Default: its coding CLI's own.")
@click.option("--command", "shell", metavar="CMD", help="This shell command is the agent (provider command).")
@click.option("--role", metavar="TEXT", help="Its purpose, in one line.")
@click.option("--prompt", metavar="TEXT", help="Instructions for each of its runs; - reads standard input.")
@click.option("--context", is_flag=True, help="Let it speak to other agents, and share documents with them.")
@json_option
@click.pass_context
def new_command(ctx: click.Context, /, *, name: str, as_json: bool, **given: Any) -> None:
    """Make an agent that waits to be spoken to. It stays until it is stopped."""
    provider, options = how_driven(ctx, given["provider"], None, given["shell"])
    about = {key: given[key] for key in ("instance", "model", "role")} | {"context": given["context"] or None}
    about["prompt"] = given["prompt"] and given_text(given["prompt"], "--prompt")
    made = ctx.obj.post("agents", path=here(), name=name, provider=provider, options=options, **about)
    text = f'{bold(address_of(made))} is here.\n  windlass send "…" --to {address_of(made)}'
    say_answer(made, text, as_json=as_json)


# ── beginning ────────────────────────────────────────────────────────────────────────────────────────────────


def _begin(
    ctx: click.Context,
    file: str,
    instance: str | None,
    *,
    as_json: bool,
    verbose: bool,
    stays: bool = False,
    deadline: float | None = None,
) -> Row:
    """Check the file, run its setup, and start the instance with the daemon."""
    from windlass.core.files.params import bind  # noqa: PLC0415
    from windlass.library.workflows import find, load  # noqa: PLC0415

    path = find(file, Path.cwd())
    loaded = load(path, shown=file)
    if loaded.workflow is None:
        raise BadInput("\n".join(map(str, loaded.problems)))
    workflow = loaded.workflow
    given = bind(workflow.params, ctx.meta.get(PARAMETERS, []))
    values = {f"params.{name}": value for name, value in given.items()} | _variables(workflow)
    source = {"path": here(), "file": str(path.resolve())}
    if workflow.setup:  # ask before it runs whether the workflow can start
        instance = ctx.obj.post("instances", **source, instance=instance, check=True)["instance"]
        values |= workflow.values(instance)
    for step in workflow.setup:
        output = set_up(step, values, quiet=as_json, verbose=verbose, deadline=deadline)
        if step.name:
            values[step.name] = output
    return dict(ctx.obj.post("instances", **source, instance=instance, values=values, stays=stays or None))


def _variables(workflow: Workflow) -> dict[str, str]:
    """The environment variables that the workflow's texts use. Raises BadInput for those that are not set."""
    templates = [workflow.kickoff, *(step.shell for step in workflow.setup), *(task.brief for task in workflow.tasks)]
    references = {reference.name for template in templates for reference in template.references}
    names = {name.removeprefix("env.") for name in references if name.startswith("env.")}
    if missing := sorted(names - os.environ.keys()):
        raise BadInput(f"{workflow.file} needs {', '.join(missing)}, which is not set here.", hint="Export it first.")
    return {f"env.{name}": os.environ[name] for name in names}


# ── following ────────────────────────────────────────────────────────────────────────────────────────────────


def _drain(daemon: Client, begun: Row, deadline: float | None, progress: _InstanceProgress) -> Row:
    """Let the agents finish their runs; another Ctrl-C, however soon, stops them."""
    name = begun["instance"]
    try:
        tell("\nThose who are at work end what they do; press Ctrl-C again to stop them.")
        daemon.post("instances", name, "drain", path=here())
        return _follow(daemon, begun, deadline, progress)
    except KeyboardInterrupt:
        daemon.post("instances", name, "stop", path=here())
        tell(f"\n@{name} was stopped. {_where(name)}")
        raise


def _follow(daemon: Client, begun: Row, deadline: float | None, progress: _InstanceProgress) -> Row:
    """Show each step of an instance to its end, and return the last. Past the deadline, stop it and raise TimedOut."""
    view, name = begun, begun["instance"]
    try:
        for view in _views(daemon, begun, deadline, progress):
            progress.show(view)
    except TimedOut as error:
        daemon.post("instances", name, "stop", path=here())
        raise TimedOut(f"@{name} was not done in time, and was stopped.", hint=_where(name)) from error
    progress.end(view)
    return view


def _raise_unless_done(view: Row, name: str) -> None:
    """Raise the error that the exit code needs, unless all agents ended well and all changes landed."""
    if not view["ended"]:
        topic = "queue" if any(change["state"] == "held" for change in view["changes"]) else "questions"
        hint = f"`windlass {topic}` shows more; it goes on by itself when that is settled."
        raise WindlassError(f"@{name} waits for you: {'; '.join(view['waiting'])}", hint=hint)
    if view["ending"] == "timeout":
        raise TimedOut(f"@{name} was stopped: {view['reason']}.", hint=_where(name))
    if view["ending"] == "stopped":
        raise WindlassError(f"@{name} was {view['reason']}.", hint=_where(name))
    if view["failed"]:
        raise WindlassError(f"Not everyone ended well: {'; '.join(view['failed'])}", hint=_where(name))
    for change in view["changes"]:
        if change["state"] != "landed":
            raise WindlassError(f"{change['id']} is {change['state']}: {change['reason']}", hint=_where(name))


def _where(name: str) -> str:
    return f"`windlass peek --channel @{name}` shows what was said."


def _views(daemon: Client, begun: Row, deadline: float | None, progress: _InstanceProgress) -> Iterator[Row]:
    """Yield each step of an instance until it ends or waits for a person; no message comes twice."""

    def ask() -> Iterable[Row]:
        words = ("instances", begun["instance"], "wait")
        return daemon.stream(*words, path=here(), since=progress.since, deadline=deadline)

    return follow(ask, lambda view: bool(view["ended"]) or view["motion"] == "waiting")


class _InstanceProgress:
    """Shows what the agents of an instance say: as text while it happens, as JSON only the end."""

    def __init__(self, *, as_json: bool, verbose: bool) -> None:
        self.as_json = as_json
        self.verbose = verbose
        self.since: str | None = None
        self.statuses: dict[str, str] = {}

    def show(self, view: Row) -> None:
        for message in view["messages"]:
            self.since = message["id"]
            if not self.as_json:
                say(f"{bold(one_line(message['from']))}  {block(message['message'])}")
        for agent in view["agents"]:
            name = address_of(agent)
            if self.verbose and not self.as_json and self.statuses.get(name) not in (None, agent["status"]):
                tell(dim(f"{one_line(name)} is {agent['status']}: {one_line(agent['evidence'])}"))
            self.statuses[name] = agent["status"]

    def end(self, view: Row) -> None:
        if self.as_json:
            say_json({**view, "messages": []})
            return
        for name, report in view["reports"].items():
            if report:
                say(f"{bold(one_line(name))}  {block(report)}")
        for name, left in view["left"].items():
            if left:
                say(f"{bold(one_line(name))}  {one_line(left)}; when that is gone, `windlass rescue list` has it.")
        for change in view["changes"]:
            say(f"{change['id']}  {change['state']}  {one_line(change['title'])}")
        for branch in view["unlanded"].values():
            say(f"What was committed stays on {branch}: `windlass queue add {branch}` lands it.")
        cost = cost_of(view)
        counted = f"{count(len(view['reports']), 'agent')}, {count(view['runs'], 'run')}, {age(view['seconds'])}"
        tell(dim(f"{counted}, {'cost unknown' if cost == 'unknown' else cost}" if cost else counted))
        sys.stdout.flush()

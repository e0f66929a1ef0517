"""Run and start: a workflow's setup here, its agents with the daemon, and the live account of what they say."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windlass.cli.arguments import WORD, Duration, command, json_option
from windlass.cli.commands.agents import address, cost_of, given_text
from windlass.cli.commands.work import how_driven
from windlass.cli.commands.workflow_files import PARAMETERS, WithParameters, WorkflowFile
from windlass.cli.commands.workflow_setup import set_up
from windlass.cli.connection.client import Client, here
from windlass.cli.connection.follow import follow
from windlass.cli.output import Row, block, bold, dim, one_line, say, say_json, tell
from windlass.core.display import age
from windlass.core.errors import BadInput, TimedOut, WindlassError

if TYPE_CHECKING:  # no command waits for an import that only names a type
    from windlass.core.workflows.workflow import Workflow


_instance_option = click.option(
    "--instance", metavar="NAME", type=WORD, help="What to call this start of it. Default: default."
)
_verbose_option = click.option("--verbose", is_flag=True, help="Also tell who begins and ends, and what setup keeps.")


@command(
    "run",
    """
    windlass run review.yaml                       returns when all is quiet; exit 0 only if nobody failed
    windlass run review --instance pr-123          .windlass/workflows/review.yaml, or the shipped one
    windlass run review.yaml --timeout 30m --json
    windlass run review.yaml -- --base main        what stands after -- are the workflow's own parameters
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
    teller = _Teller(as_json=as_json, verbose=verbose)
    deadline = time.monotonic() + timeout if timeout else None
    begun = _begin(ctx, file, instance, teller, stays=False, deadline=deadline)
    _follow(ctx.obj, begun, deadline, teller)


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
    teller = _Teller(as_json=as_json, verbose=verbose)
    begun = _begin(ctx, file, instance, teller, stays=True)
    name = begun["instance"]
    if as_json:
        say_json(begun)
    else:
        say(f"{bold(begun['workflow'])} has begun as {begun['channel']}.")
        say(f"  windlass peek --channel @{name}    what is said\n  windlass stop @{name}              end it")
    if not background and not as_json:
        try:
            _watch(ctx.obj, begun, teller)
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
@click.option("--role", metavar="TEXT", help="What it is for, in one line.")
@click.option("--prompt", metavar="TEXT", help="What it is always told; - reads standard input.")
@click.option("--context", is_flag=True, help="Let it speak to other agents, and share documents with them.")
@json_option
@click.pass_context
def new_command(ctx: click.Context, /, *, name: str, as_json: bool, **given: Any) -> None:
    """Make an agent that waits to be spoken to. It stays until it is stopped."""
    provider, options = how_driven(ctx, given["provider"], None, given["shell"])
    made = ctx.obj.post(
        "agents",
        path=here(),
        name=name,
        instance=given["instance"],
        provider=provider,
        model=given["model"],
        role=given["role"],
        prompt=given["prompt"] and given_text(given["prompt"], "--prompt"),
        context=given["context"] or None,
        options=options,
    )
    if as_json:
        say_json(made)
    else:
        say(f'{bold(address(made))} is here.\n  windlass send "…" --to {address(made)}')


# ── beginning ────────────────────────────────────────────────────────────────────────────────────────────────


def _begin(
    ctx: click.Context, file: str, instance: str | None, teller: _Teller, *, stays: bool, deadline: float | None = None
) -> Row:
    """Check the file, run its setup, and hand it to the daemon."""
    from windlass.core.files.params import bind  # noqa: PLC0415
    from windlass.library.workflows import find, load  # noqa: PLC0415

    path = find(file, Path.cwd())
    loaded = load(path, shown=file)
    if loaded.workflow is None:
        raise BadInput("\n".join(map(str, loaded.problems)))
    workflow = loaded.workflow
    given = bind(workflow.params, ctx.meta.get(PARAMETERS, []))
    values = {f"params.{name}": value for name, value in given.items()}
    values |= _variables(workflow)
    source = {"path": here(), "file": str(path.resolve())}
    if workflow.setup:  # it is not run in vain
        instance = ctx.obj.post("instances", **source, instance=instance, check=True)["instance"]
        values |= workflow.values(instance)
    for step in workflow.setup:
        output = set_up(step, values, quiet=teller.as_json, verbose=teller.verbose, deadline=deadline)
        if step.name:
            values[step.name] = output
    return dict(ctx.obj.post("instances", **source, instance=instance, values=values, stays=stays or None))


def _variables(workflow: Workflow) -> dict[str, str]:
    """The variables of the environment that its texts use. Raises BadInput for those that are not set."""
    templates = [workflow.kickoff, *(each.shell for each in workflow.setup), *(task.brief for task in workflow.tasks)]
    named = {each.name for template in templates for each in template.references if each.name.startswith("env.")}
    missing = sorted(each.removeprefix("env.") for each in named if each.removeprefix("env.") not in os.environ)
    if missing:
        raise BadInput(f"{workflow.file} needs {', '.join(missing)}, which is not set here.", hint="Export it first.")
    return {each: os.environ[each.removeprefix("env.")] for each in named}


# ── following ────────────────────────────────────────────────────────────────────────────────────────────────


def _follow(daemon: Client, begun: Row, deadline: float | None, teller: _Teller) -> None:
    """Tell what is said, until all is quiet; end as it ended."""
    try:
        view = _told(daemon, begun, deadline, teller)
    except KeyboardInterrupt:
        view = _drained(daemon, begun, deadline, teller)
        _end_as(view, begun["instance"])
        raise
    _end_as(view, begun["instance"])


def _drained(daemon: Client, begun: Row, deadline: float | None, teller: _Teller) -> Row:
    """Let those at work end; another press, however soon, stops them."""
    name = begun["instance"]
    try:
        tell("\nThose who are at work end what they do; press Ctrl-C again to stop them.")
        daemon.post("instances", name, "drain", path=here())
        return _told(daemon, begun, deadline, teller)
    except KeyboardInterrupt:
        daemon.post("instances", name, "stop", path=here())
        tell(f"\n@{name} was stopped. {_where(name)}")
        raise


def _told(daemon: Client, begun: Row, deadline: float | None, teller: _Teller) -> Row:
    """What it came to, told step by step; what is not done in time is stopped."""
    view, name = begun, begun["instance"]
    try:
        for view in _views(daemon, begun, deadline, teller):
            teller.show(view)
    except TimedOut as error:
        daemon.post("instances", name, "stop", path=here())
        raise TimedOut(f"@{name} was not done in time, and was stopped.", hint=_where(name)) from error
    teller.end(view)
    return view


def _end_as(view: Row, name: str) -> None:
    """Raise what the exit code has to say."""
    if not view["ended"]:
        raise WindlassError(f"@{name} waits for you: {'; '.join(view['waiting'])}", hint=_settle(view))
    if view["ending"] == "timeout":
        raise TimedOut(f"@{name} was stopped: {view['reason']}.", hint=_where(name))
    if view["ending"] == "stopped":
        raise WindlassError(f"@{name} was {view['reason']}.", hint=_where(name))
    if view["failed"]:
        raise WindlassError(f"Not everyone ended well: {'; '.join(view['failed'])}", hint=_where(name))
    bad = [each for each in view["changes"] if each["state"] != "landed"]
    if bad:
        raise WindlassError(f"{bad[0]['id']} is {bad[0]['state']}: {bad[0]['reason']}", hint=_where(name))


def _settle(view: Row) -> str:
    held = any(each["state"] == "held" for each in view["changes"])
    return f"`windlass {'queue' if held else 'questions'}` shows more; it goes on by itself when that is settled."


def _where(name: str) -> str:
    return f"`windlass peek --channel @{name}` shows what was said."


def _watch(daemon: Client, begun: Row, teller: _Teller) -> None:
    """Tell what is said, as long as it stays."""
    for view in _views(daemon, begun, None, teller):
        teller.show(view)


def _views(daemon: Client, begun: Row, deadline: float | None, teller: _Teller) -> Iterator[Row]:
    """Each step of an instance until it ends, or waits for a person; what was told is not told again."""

    def ask() -> Iterable[Row]:
        words = ("instances", begun["instance"], "wait")
        return daemon.stream(*words, path=here(), since=teller.since, deadline=deadline)

    return follow(ask, lambda view: bool(view["ended"]) or view["motion"] == "waiting")


class _Teller:
    """Says who says what: as text while it happens, as JSON only the end."""

    def __init__(self, *, as_json: bool, verbose: bool) -> None:
        self.as_json = as_json
        self.verbose = verbose
        self.since: str | None = None
        self.told: dict[str, str] = {}

    def show(self, view: Row) -> None:
        for each in view["messages"]:
            self.since = each["id"]
            if not self.as_json:
                say(f"{bold(one_line(each['from']))}  {block(each['message'])}")
        for each in view["agents"]:
            name = address(each)
            if self.verbose and not self.as_json and self.told.get(name) not in (None, each["status"]):
                tell(dim(f"{one_line(name)} is {each['status']}: {one_line(each['evidence'])}"))
            self.told[name] = each["status"]

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
        for each in view["changes"]:
            say(f"{each['id']}  {each['state']}  {one_line(each['title'])}")
        for branch in view["unlanded"].values():
            say(f"What was committed stays on {branch}: `windlass queue add {branch}` lands it.")
        agents, cost = len(view["reports"]), cost_of(view)
        counted = f"{_several(agents, 'agent')}, {_several(view['runs'], 'run')}, {age(view['seconds'])}"
        tell(dim(f"{counted}, {'cost unknown' if cost == 'unknown' else cost}" if cost else counted))
        sys.stdout.flush()


def _several(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"

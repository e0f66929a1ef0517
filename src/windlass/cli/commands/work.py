"""Work: give an agent a task, and wait until its change lands."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import click

from windlass.cli.arguments import WORD, Duration, command, json_option
from windlass.cli.commands.agents import described, given_text, held_step
from windlass.cli.connection.client import Client, here
from windlass.cli.connection.follow import follow
from windlass.cli.output import (
    Row,
    bold,
    can_redraw,
    dim,
    one_line,
    paint_state,
    redraw,
    say,
    say_json,
    shorten,
    tell,
    width,
)
from windlass.core.display import age
from windlass.core.errors import BadInput, NotFound, TimedOut, WindlassError
from windlass.core.nouns.agent import Confinement, Permissions

_LONGEST_SCRIPT = 3_000_000
"""Bytes: the path may be a device that never ends."""

wait_timeout_option = click.option(
    "--timeout", type=Duration(), help="With --wait: give up waiting after this long (exit 7)."
)


def deadline_of(ctx: click.Context, timeout: float | None, *, wait: bool) -> float | None:
    """When --timeout is over, on the monotonic clock. Raises UsageError without --wait."""
    if timeout and not wait:
        raise click.UsageError("--timeout says how long to wait, so it needs --wait.", ctx)
    return time.monotonic() + timeout if timeout else None


@command(
    "work",
    """
    windlass work "Fix the login race" --command 'my-agent < "$WINDLASS_PROMPT"'
    windlass work "Fix the login race" --script examples/scripts/hello.yaml
    windlass work "Fix the login race" --command CMD --wait --timeout 30m      exit 0 only when it has landed
    windlass work "Add a changelog" --command ./my-agent.sh      any program can be an agent
    windlass work "Try it out" --script agent.yaml               plays an agent from a script
    windlass work "Fix the login race" --agent coder             an agent with a file in .windlass/agents
    windlass work "Tidy the logins" --paths 'src/auth/**'        what it is to change (see `windlass radar`)
    windlass work "Fix the login race" --provider NAME --model NAME
    windlass work "Split the parser" --mode plan                 a plan in the document `plan`, and no change
    windlass work "Write the lexer" --phase t12                  a part of t12 (see `windlass ask --phase-id`)
    """,
)
@click.argument("title")
@click.option("--brief", metavar="TEXT", help="More about the work; - reads standard input.")
@click.option(
    "--paths",
    multiple=True,
    metavar="PATTERN",
    help="Paths to change: a file, a folder or a pattern such as 'src/**/*.py'. For the radar; may be repeated.",
)
@click.option(
    "--mode",
    type=click.Choice(["execute", "plan", "refine"]),
    help="What is wanted: the work itself (the default), a plan for it, or a plan or text made clearer.",
)
@click.option("--phase", metavar="TASK", type=WORD, help="The task that it belongs to, such as t12.")
@click.option("--agent", metavar="NAME", type=WORD, help="An agent that the repository defines: `windlass agents`.")
@click.option("--provider", metavar="NAME", type=WORD, help="Which coding CLI does it. Default: work.provider.")
@click.option("--model", metavar="NAME", type=WORD, help="Which model. Default: its file's, or its coding CLI's own.")
@click.option(
    "--script",
    metavar="FILE",
    type=click.Path(),
    help="Play the agent from this script (provider scripted; see docs/scripts.md).",
)
@click.option("--command", "shell", metavar="CMD", help="This shell command is the agent (provider command).")
@click.option(
    "--permissions",
    type=click.Choice([str(permission) for permission in Permissions]),
    help="What the agent may do. Default: edit, which is to edit and run inside its worktree.",
)
@click.option(
    "--sandbox",
    type=click.Choice([str(mode) for mode in Confinement]),
    help="Whether it is kept in a sandbox. Default: the setting sandbox.mode.",
)
@click.option("--wait", is_flag=True, help="Return when it has landed or can't go on; exit 0 only when landed.")
@wait_timeout_option
@json_option
@click.pass_context
def work_command(
    ctx: click.Context,
    /,
    *,
    title: str,
    brief: str | None,
    paths: tuple[str, ...],
    sandbox: str | None,
    wait: bool,
    timeout: float | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Give an agent a piece of work. It starts in a worktree of its own, on a branch of its own."""
    deadline = deadline_of(ctx, timeout, wait=wait)
    provider, options = how_driven(ctx, given["provider"], given["script"], given["shell"])
    added = ctx.obj.post(
        "tasks",
        path=here(),
        title=given_text(title, "TITLE").strip(),
        brief=brief and given_text(brief, "--brief"),
        paths=list(paths) or None,
        provider=provider,
        sandbox=sandbox or os.environ.get("WINDLASS_SANDBOX"),  # the daemon may not have this variable
        options=options,
        **{name: given[name] for name in ("mode", "phase", "agent", "model", "permissions")},
    )
    if as_json and not wait:
        say_json(added)
    elif not as_json:
        _say_begun(added)
    if wait:
        _wait(ctx.obj, added, deadline, as_json=as_json)


def how_driven(
    ctx: click.Context, provider: str | None, script: str | None, shell: str | None
) -> tuple[str | None, dict[str, str]]:
    """The provider that --provider, --script or --command choose, and its options."""
    if script is not None and shell is not None:
        raise click.UsageError("Choose --script or --command: an agent is one or the other.", ctx)
    if script is None and shell is None:
        return provider or os.environ.get("WINDLASS_PROVIDER"), {}  # the daemon may not have this variable
    implied, option = ("scripted", "--script") if script is not None else ("command", "--command")
    if provider not in (None, implied):
        raise click.UsageError(f"{option} means the provider {implied}, not {provider}.", ctx)
    if script is not None:
        return implied, {"script": _read(script), "script_name": script}
    return implied, {"command": given_text(shell or "", option)}


def _read(script: str) -> str:
    from pathlib import Path  # noqa: PLC0415

    try:
        with Path(script).open("rb") as file:
            content = file.read(_LONGEST_SCRIPT + 1)
        if len(content) > _LONGEST_SCRIPT:
            raise BadInput(f"The script {script} has more than {_LONGEST_SCRIPT} bytes.")
        return content.decode("utf-8")
    except FileNotFoundError as error:
        raise NotFound(f"There is no script {script}.", hint="--script takes the path of a YAML file.") from error
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise BadInput(f"The script {script} can't be read: {reason}.") from error


def _say_begun(added: Row) -> None:
    agent, task = one_line(added["agent"]), added["task"]
    say(f"{bold(agent)} works on {task['id']}, {one_line(task['title'])}, on branch {added['branch']}.")
    look = f"windlass logs {agent} -f"
    say(f"  {look}    see it work\n  {'windlass queue'.ljust(len(look))}    see it land")
    for note in _notes(added.get("project") or {}):
        say(note)


def _notes(project: Row) -> Iterator[str]:
    """What someone who gives work should know about the project: that it is new, and why nothing would land."""
    if project.get("new"):
        name, main = one_line(project["name"]), one_line(project["main"])
        yield f"{name} is a new project: what passes its checks lands on {main}."
    if not project.get("checks", "?"):
        yield "It has no check command, so changes wait: `windlass init` finds one and asks."
    if project.get("waits"):
        yield f"Nothing lands there now: {one_line(project['waits'])}. `windlass queue` says what waits."


def _wait(daemon: Client, added: Row, deadline: float | None, *, as_json: bool) -> None:
    """Follow a task to its end, and raise unless its change landed."""
    progress = _TaskProgress(added["agent"], as_json=as_json)
    view: Row = added
    try:
        for view in views(daemon, added["task"]["id"], deadline, progress.tick):
            progress.show(view)
    except (TimedOut, KeyboardInterrupt) as error:
        goes_on = f"Run `windlass show {added['agent']}` to see it, `windlass stop {added['agent']}` to end it."
        if isinstance(error, TimedOut):
            raise TimedOut(f"{added['agent']} has not landed in time; it goes on.", hint=goes_on) from error
        tell(f"\n{added['agent']} goes on. {goes_on}")
        raise
    finally:
        progress.end(view)
    if not view.get("landed"):
        raise _not_landed(view)


def views(daemon: Client, task: str, deadline: float | None, tick: Callable[[float], None]) -> Iterator[Row]:
    """Yield each state of a task until it settles."""
    ask = partial(daemon.stream, "tasks", task, "wait", deadline=deadline, waiting=tick)
    return follow(ask, lambda view: bool(view["settled"]))


def _not_landed(view: Row) -> WindlassError:
    """The error for a task that ended without a landing, with what to do next."""
    name, task, change = view["agent"]["name"], view["task"], view.get("change")
    if change and change["state"] in ("held", "closed"):
        hint = held_step(change, name) or f"Run `windlass diff {name}` to see the change."
        return WindlassError(f"{change['id']} is {change['state']}: {change['reason']}", hint=hint)
    if task["state"] == "waiting":
        asked = " ".join(question["question"] for question in view["questions"]) or task["reason"]
        return WindlassError(f"{name} asks: {asked}", hint=f'Run `windlass answer {name} "…"`.')
    if task["state"] == "done":
        return WindlassError(
            f"{name} is done and there was nothing to land.", hint=f"Run `windlass show {name}` for its report."
        )
    return WindlassError(
        f"{task['id']} {task['state']}: {task['reason'] or 'no reason was given'}",
        hint=f"Run `windlass logs {name}` to see what happened.",
    )


class _TaskProgress:
    """Shows the state of a task: one line that changes on a terminal, else a line per state; as JSON only the end."""

    def __init__(self, agent: str, *, as_json: bool) -> None:
        self.agent = agent
        self.as_json = as_json
        self.moving = not as_json and can_redraw(sys.stdout)
        self.began = time.monotonic()
        self.last = ""

    def show(self, view: Row) -> None:
        words = _state(view)
        if self.as_json or words == self.last or view["landed"]:
            return
        self.last = words
        if self.moving:
            self.tick()
        else:
            say(f"{self.agent}  {words}")

    def tick(self, _seconds: float = 0.0) -> None:
        """Redraw the line with the time that has passed."""
        if self.moving and self.last:
            took = age(time.monotonic() - self.began)
            room = (width() or 80) - len(took) - 4
            redraw(sys.stdout, f"{shorten(self.last, room)}  {dim(took)}")

    def end(self, view: Row) -> None:
        if self.moving and self.last:
            redraw(sys.stdout, "")
        if self.as_json:
            say_json(view)
        elif view.get("landed") and view.get("change"):
            change = view["change"]["id"]
            say(f"{paint_state('landed')}  {change}, after {age(time.monotonic() - self.began)}")
            say(f"  windlass receipt {change}    the proof, and how to undo it")


def _state(view: Row) -> str:
    """The state of a task in one line: that of its change, unless the change is back with its author."""
    change, agent = view.get("change"), view["agent"]
    if change and change["state"] != "rejected" and view["task"]["state"] in ("landing", "done"):
        return one_line(described(change))
    if agent["status"] == "running":  # its evidence changes every second
        return "running"
    return one_line(f"{agent['status']}: {agent['evidence']}")

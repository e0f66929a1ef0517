"""The command line: the table of commands, and their exit codes. A command's module is imported when it is used."""

from __future__ import annotations

import gc
import os
import sys
from typing import Any

import click

from windlass import __version__
from windlass.core.errors import (
    BadInput,
    Conflict,
    NotAllowed,
    NotFound,
    TimedOut,
    Unanswered,
    Unavailable,
    WindlassError,
)

EXIT_CODES: dict[type[BaseException], int] = {
    Exception: 1,
    BadInput: 2,
    click.ClickException: 2,
    NotFound: 3,
    Conflict: 4,
    NotAllowed: 5,
    Unavailable: 6,
    OSError: 6,
    TimedOut: 7,
    Unanswered: 8,
    click.Abort: 130,
    KeyboardInterrupt: 130,
    BrokenPipeError: 0,
}
"""0: done; 1: it ran and failed. An error that is not listed has the code of its base class."""

COMPLETE_VARIABLE = "_WINDLASS_COMPLETE"

COMMANDS: dict[str, dict[str, tuple[str, str]]] = {
    "Begin": {
        "demo": ("demo.command", "See the whole of it in a throw-away repository, offline and free."),
        "init": ("commands.init", "Make this repository a project, and say what must pass before a change lands."),
        "work": ("commands.work", "Give an agent a piece of work."),
    },
    "Workflows": {
        "run": ("commands.run_workflow", "Run a workflow, and return when all is quiet."),
        "start": ("commands.run_workflow", "Start a workflow that stays until it is stopped."),
        "new": ("commands.run_workflow", "Make an agent that waits to be spoken to."),
        "validate": ("commands.workflow_files", "Show all problems in workflow files."),
        "examples": ("commands.examples", "Show the workflows that come with Windlass, or write one into a file."),
        "migrate": ("commands.workflow_files", "Convert a version 1 workflow to the current format."),
    },
    "See": {
        "list": ("commands.agents", "Show who is at work, with the evidence."),
        "show": ("commands.agents", "Show all about one agent."),
        "agents": ("commands.agent_files", "Show the agents that this repository defines, and their files' problems."),
        "logs": ("commands.logs", "Show an agent's output."),
        "diff": ("commands.agents", "Show an agent's changes so far."),
        "queue": ("commands.queue", "Show the changes that want to land, in order, and arrange them."),
        "change": ("commands.change", "Show one change and its comments, and comment on it."),
        "radar": ("commands.radar", "Show which agents are about to collide, and on which files."),
        "receipt": ("commands.receipt", "Show the proof of a landed change, and how to undo it."),
        "watch": ("commands.watch", "Print every event of this project as a JSON line."),
    },
    "Talk": {
        "send": ("commands.talk", "Say something to agents."),
        "peek": ("commands.talk", "Show messages."),
        "inbox": ("commands.talk", "Show the messages that someone has not acknowledged."),
        "read": ("commands.talk", "Show your unread messages, and acknowledge them."),
        "ack": ("commands.talk", "Acknowledge messages."),
        "ask": ("commands.ask", "Ask an agent, and wait for its answer."),
        "listen": ("commands.ask", "Wait for the next question to an agent."),
    },
    "Decide": {
        "questions": ("commands.questions", "Show the questions that agents ask people."),
        "answer": ("commands.questions", "Answer an agent's questions."),
        "review": ("commands.review", "Let an agent review a change before it lands."),
        "stop": ("commands.agents", "Stop agents, with all that they started."),
        "undo": ("commands.receipt", "Take a landed change back, through the same checks."),
    },
    "Look after": {
        "providers": ("commands.providers", "Show the installed coding CLIs, and what their agents may do."),
        "config": ("commands.config", "Read and change settings."),
        "gate": ("commands.simulate", "Find out how fast changes would land, with more runners or fewer bad ones."),
        "project": ("commands.project", "Show how each project stands, and forget one."),
        "rescue": ("commands.rescue", "Bring back work that was saved before something was removed."),
        "doctor": ("commands.doctor", "Find out what is wrong, and what to do about it."),
        "daemon": ("commands.daemon", "Start, stop and inspect the background process."),
        "completion": ("commands.completion", "Let your shell complete commands and names."),
    },
    "For agents, inside a run": {
        "agent": ("commands.inside_run", "Report that your work is done, ask, or give up; read your messages."),
        "context": ("commands.context", "Talk to the others, and share documents with them."),
        "mcp": ("mcp_bridge.command", "Serve the agents' tools over standard input and output, as MCP."),
    },
}
"""Every command by topic: its module, and its line of help."""

ALIASES = {"ls": "list"}
RENAMED = {"up": "start", "down": "stop", "ps": "list"}
"""Former names of commands, and their names now."""

ABOUT = """Run many coding agents on one codebase; only what passes the checks reaches main.

\b
Examples:
  windlass demo                            see it work, without an account
  windlass init                            in your repository, once
  windlass work "Fix the login race" --command CMD    CMD starts in a worktree of its own
  windlass list                            who is at work
  windlass queue                           what is about to land
  windlass undo c3                         take a landed change back
"""

ENDING = """\b
Exit codes: 0 done, 1 it ran and failed, 2 bad input or usage, 3 not found, 4 conflict,
5 not allowed, 6 unavailable, 7 timed out, 8 no answer will come, 130 interrupted.
"""


class LazyGroup(click.Group):
    """A group that imports a command when it is used."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return [name for topic in COMMANDS.values() for name in topic]

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = ALIASES.get(cmd_name, cmd_name)
        for topic in COMMANDS.values():
            if name in topic:
                from importlib import import_module  # noqa: PLC0415

                command: click.Command = getattr(import_module(f"windlass.cli.{topic[name][0]}"), f"{name}_command")
                return command
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command. Raises UsageError with its new name, or with near misses."""
        if args[0] in RENAMED and not ctx.resilient_parsing:
            raise click.UsageError(f"{args[0]} is called {RENAMED[args[0]]} now.", ctx)
        unknown = not args[0].startswith("-") and self.get_command(ctx, args[0]) is None
        if unknown and not ctx.resilient_parsing:
            raise click.exceptions.NoSuchCommand(args[0], possibilities=self.list_commands(ctx), ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table, so that help imports none."""
        for topic, commands in COMMANDS.items():
            with formatter.section(topic):
                formatter.write_dl([(name, line) for name, (_, line) in commands.items()])


@click.group(
    cls=LazyGroup,
    help=ABOUT,
    epilog=ENDING,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="windlass", message="%(prog)s %(version)s")
@click.pass_context
def windlass(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
        return
    from windlass.cli.connection.client import Client, home  # noqa: PLC0415
    from windlass.cli.output import waiting_note  # noqa: PLC0415

    ctx.obj = Client(home(), start=_start, waiting=waiting_note("Waiting for the daemon,"))


def _start(home: str) -> None:
    from windlass.cli.connection.launch import start  # noqa: PLC0415
    from windlass.cli.output import waiting_note  # noqa: PLC0415

    start(home, waiting_note("Starting the daemon,"))


def perform(arguments: list[str]) -> int:
    """Run one command line and return its exit code. Every failure becomes a sentence."""
    try:
        with windlass.make_context("windlass", arguments) as context:
            windlass.invoke(context)
        return 0
    except click.exceptions.Exit as ending:
        return ending.exit_code
    except BrokenPipeError:
        return _code(BrokenPipeError)
    except (KeyboardInterrupt, click.Abort) as error:
        return _complain("windlass: interrupted", "", _code(type(error)))
    except click.exceptions.NoArgsIsHelpError as error:
        return _complain(error.format_message(), "", _code(type(error)))
    except click.UsageError as error:
        hint = f"Run `{error.ctx.command_path} --help` for examples." if error.ctx else ""
        return _complain(f"windlass: {error.format_message()}", hint, _code(type(error)))
    except WindlassError as error:
        return _complain(f"windlass: {error}", error.hint, _code(type(error)))
    except Exception as error:  # a bug of ours becomes a sentence, too
        if os.environ.get("WINDLASS_DEBUG"):
            raise
        return _complain(f"windlass: {_sentence(error)}", "Set WINDLASS_DEBUG=1 to see where.", _code(type(error)))


def _code(kind: type[BaseException]) -> int:
    return next(EXIT_CODES[base] for base in kind.__mro__ if base in EXIT_CODES)


def _sentence(error: Exception) -> str:
    """One sentence about an error of the system, or a bug of ours."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    return f"Something unexpected happened: {error!r}."


def _complain(message: str, hint: str, code: int) -> int:
    """Print one sentence and a hint. They may contain an agent's words, so they are made harmless."""
    from windlass.cli.output import block, tell  # noqa: PLC0415

    tell(block(message + (f"\n{hint}" if hint else "")))
    return code


def run() -> None:
    """The entry point. It exits without Python's own cleanup, which would take longer than most commands."""
    gc.disable()
    streams: tuple[Any, ...] = (sys.stdout, sys.stderr)
    for stream in filter(None, streams):
        stream.reconfigure(errors="backslashreplace")  # letters that the terminal's encoding lacks become escapes
    if COMPLETE_VARIABLE in os.environ:
        from click.shell_completion import shell_complete  # noqa: PLC0415

        code: int = shell_complete(windlass, {}, "windlass", COMPLETE_VARIABLE, os.environ[COMPLETE_VARIABLE])
    else:
        code = perform(sys.argv[1:])
    try:
        if sys.stdout:
            sys.stdout.flush()
    except OSError as error:
        code = code or _code(type(error))
    os._exit(code)


if __name__ == "__main__":
    run()

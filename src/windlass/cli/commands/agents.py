"""Agents: list them, show one with its runs and changes, and stop them."""

from __future__ import annotations

import sys
from contextlib import suppress

import click

from windlass.cli.arguments import STOPPABLE, agent_argument, command, daemon_and_json, here_option, json_option
from windlass.cli.completions import address_of
from windlass.cli.connection.client import Client, here, repository
from windlass.cli.output import (
    Column,
    Row,
    ago,
    as_of,
    block,
    bold,
    dim,
    one_line,
    page,
    paint_state,
    say,
    say_answer,
    say_diff,
    say_items,
    say_json,
    say_parts,
    table,
    tell,
)
from windlass.core.display import age, some
from windlass.core.errors import BadInput, NotFound, WindlassError


def cost_of(agent: Row) -> str:
    """The known cost of an agent or an instance; `over` or `unknown` where a run has no price."""
    dollars, unpriced = agent.get("cost_usd"), agent.get("unpriced_runs")
    if not dollars:
        return "unknown" if unpriced else ""
    return f"over ${dollars:.2f}" if unpriced else f"${dollars:.2f}"


_AGENTS = (
    Column("NAME", address_of, style=bold),
    Column(
        "SOURCE",
        lambda row: "(standalone)" if row["source"] in ("work", "new") else row["source"].rpartition("/")[2],
        spare=True,
    ),
    Column("STATUS", lambda row: row["status"], style=paint_state),
    Column("EVIDENCE", lambda row: row["evidence"], gives=True, spare=True),
    Column("AGE", lambda row: age(row["age_seconds"]), spare=True),
    Column("TASK", lambda row: row.get("task_title") or row["task"], gives=True),
    Column("PROVIDER", lambda row: row["provider"], spare=True),
    Column("SANDBOX", lambda row: row.get("sandbox"), spare=True),
    Column("COST", cost_of, spare=True),
)

_RUNS = (
    Column("RUN", lambda run: run["number"]),
    Column("CAUSE", lambda run: run["cause"], spare=True),
    Column("OUTCOME", lambda run: run["outcome"] or "running", style=paint_state),
    Column("EXIT", lambda run: "" if run["exit_code"] is None else run["exit_code"]),
    Column("TOOK", lambda run: ago(run["started_at"], run["ended_at"]) if run["started_at"] else "", spare=True),
    Column("WHY", lambda run: run["reason"] or "; ".join(run["evidence"] or ()), gives=True),
)

_OUTPUT_LINES = 15

_ENDS = "`windlass queue drop {change}` gives it up."
_HELD = {
    "checks": 'Run `windlass config set checks.command "…"`; then it is tested, and lands.',
    "checkout": "Clear what is in the way; then it lands by itself.",
    "trouble": "It is tried again by itself; `windlass doctor` says what is wrong.",
    "review": "`windlass change show {change}` shows what was said, `windlass queue release {change}` lets it land.",
    "guard": f"Look at `windlass change diff {{change}}`; `windlass queue release {{change}}` lets it land, {_ENDS}",
    "human": 'Run `windlass answer {name} "…"` to send it back with your advice, or `windlass stop {name}`.',
}
"""The next step for a person about a held change, by its hold."""
_OWN = f"`windlass queue retry {{change}}` tests it again, {_ENDS}"
_BY_HAND = f"`windlass queue release {{change}}` lets it go on, {_ENDS}"


def held_step(change: Row, name: str) -> str:
    """What a person can do about a held change of an agent, or of their own; nothing if it is not held."""
    from windlass.core.nouns.change import BY_HAND  # noqa: PLC0415 - few commands need it

    hold = change.get("hold") or ""
    words = _HELD.get(hold, "") if name or hold != "human" else _OWN
    if hold == "human" and change["reason"].startswith(BY_HAND):
        words = _BY_HAND
    return words.format(name=name, change=change["id"])


@command(
    "list",
    """
    windlass list
    windlass ls --all        the finished ones too
    windlass list --json | jq '.[].name'
    """,
)
@click.option("--all", "everyone", is_flag=True, help="Those that have finished, too.")
@here_option
@daemon_and_json
def list_command(daemon: Client, everyone: bool, path: str | None, as_json: bool) -> None:
    """Show who is at work, with the evidence for it."""
    answer = daemon.get("agents", all=int(everyone), path=path)
    none = "No agents." if everyone else "No agent is at work."
    none += '\nGive one something to do: windlass work "Fix the login race" --command CMD'
    say_items(answer, _AGENTS, none, as_json=as_json)


@command("show", "windlass show swift-otter\nwindlass show swift-otter --json\nwindlass show swift-otter --xml")
@agent_argument
@click.option("--xml", "as_xml", is_flag=True, help="How its task went, as a <task-notification>, for programs.")
@daemon_and_json
def show_command(daemon: Client, name: str, as_xml: bool, as_json: bool) -> None:
    """Show all about one agent: its runs, its questions, its change."""
    agent = daemon.get("agents", name)
    if as_json:
        say_json(agent)
        return
    if as_xml:
        if not agent.get("notification"):
            raise NotFound(f"{name} is still at it, or has nothing to do.", hint=f"See `windlass show {name}`.")
        say(block(agent["notification"]))
        return
    runs = table(_RUNS, agent["runs"]) if agent["runs"] else []
    printed = _titled("The checks printed", (agent.get("output") or "").rstrip().splitlines()[-_OUTPUT_LINES:])
    say_parts(_head(agent), runs, _setup(agent), printed, _reports(agent), next_steps(_steps(agent)))
    say(as_of(agent))


def _head(agent: Row) -> list[str]:
    task = f"{agent['task']}  {agent.get('task_title') or ''}" if agent["task"] else ""
    change, saved = agent.get("change"), agent.get("rescue")
    facts = (
        ("Role", agent.get("role")),
        ("Task", task),
        ("Phase", agent.get("parent")),
        ("Provider", agent["provider"]),
        ("Model", agent.get("model")),
        ("Sandbox", agent.get("sandbox")),
        ("Branch", agent["branch"]),
        ("Worktree", agent["worktree"] if not saved else ""),
        ("Saved as", saved and saved["ref"]),
        ("Session", agent["session"]),
        ("Used", _used(agent)),
        ("Change", change and described(change)),
        *(("Question", question["question"]) for question in agent.get("questions") or ()),
    )
    title = f"{bold(one_line(address_of(agent)))}  {paint_state(agent['status'])}: {one_line(agent['evidence'])}"
    return [title, "", *page(facts)]


def _setup(agent: Row) -> list[str]:
    """The end of the setup's output if the last run could not begin, else its notes."""
    lines = (agent.get("setup") or "").rstrip().splitlines()
    notes = [line for line in lines if line.startswith("note: ")]
    began = any(run["pid"] for run in agent["runs"][-1:])
    return _titled("The set-up of its worktree said", notes if began else lines[-_OUTPUT_LINES:])


def _titled(title: str, lines: list[str]) -> list[str]:
    return [dim(title), block("\n".join(lines), "  ")] if lines else []


def _reports(agent: Row) -> list[str]:
    lines = []
    for report in agent.get("reports") or ():
        lines += [dim(f"Report, {ago(report['time'])} ago"), block(report["body"], "  ")]
    return lines


def _steps(agent: Row) -> list[str]:
    """Commands that one may want next about this agent."""
    name, change = agent["name"], agent.get("change")
    steps = [f'windlass answer {name} "…"'] if agent.get("questions") else []
    if agent["status"] == "running":
        steps += [f"windlass logs {name} -f", f"windlass stop {name}"]
    if change and change["state"] == "landed":
        steps += [f"windlass receipt {change['id']}"]
    if agent["status"] == "error":
        steps += [f"windlass logs {name}", f"windlass stop {name}"]
    if change and change["state"] == "held":
        steps += [f"windlass diff {name}", f"windlass stop {name}"]
    if change and change.get("hold") in ("review", "human"):
        steps += [f"windlass change show {change['id']}"]
    if change and "queue release" in held_step(change, name):
        steps += [f"windlass queue release {change['id']}"]
    if change and change.get("hold") == "human" and not agent.get("questions"):
        steps += [f"windlass queue retry {change['id']}"]
    if change and change.get("hold") == "checks":
        steps += ['windlass config set checks.command "…"']
    if saved := agent.get("rescue"):
        steps += [f"windlass rescue restore {saved['id']}"]
    return steps


def next_steps(commands: list[str]) -> list[str]:
    """The line that names the next commands, if there are some."""
    return [dim("Next: ") + "   ".join(commands)] if commands else []


def described(change: Row) -> str:
    """A change's id, state and reason in one line."""
    return f"{change['id']} {change['state']}" + (f": {change['reason']}" if change["reason"] else "")


@command("diff", "windlass diff swift-otter\nwindlass diff swift-otter | git apply --stat")
@agent_argument
@daemon_and_json
def diff_command(daemon: Client, name: str, as_json: bool) -> None:
    """Show what an agent has changed since main, as its worktree is now."""
    say_diff(daemon.get("agents", name, "diff"), f"{name} has changed nothing.", as_json=as_json)


def given_text(text: str, what: str, *, may_be_empty: bool = False) -> str:
    """A text from the command line, or from standard input for `-`; most must not be empty."""
    text = sys.stdin.read() if text == "-" and sys.stdin else text
    if not text.strip() and not may_be_empty:
        raise click.UsageError(f"{what} is empty.", click.get_current_context())
    if any("\ud800" <= letter <= "\udfff" for letter in text):  # Python decodes bytes that are not UTF-8 like this
        raise click.UsageError(f"{what} is not UTF-8 text.", click.get_current_context())
    return text


@command(
    "stop",
    """
    windlass stop swift-otter
    windlass stop reviewer@pr-123
    windlass stop @pr-123
    windlass stop --all                  of the project here
    windlass stop --all --everywhere
    """,
)
@click.argument("names", nargs=-1, type=STOPPABLE, metavar="NAME…")
@click.option(
    "--all",
    "everyone",
    is_flag=True,
    help="Every agent at work or waiting to land, of the project in this folder; of all projects where there is none.",
)
@click.option("--everywhere", is_flag=True, help="With --all: of all projects, wherever you are.")
@json_option
@click.pass_context
def stop_command(ctx: click.Context, names: tuple[str, ...], everyone: bool, everywhere: bool, as_json: bool) -> None:
    """Stop agents, with every process they started. Their work stays, and does not land any more.

    @NAME ends a whole instance of a workflow. Without a name, this shows what could be stopped.
    """
    if names and everyone:
        raise click.UsageError("Say whom to stop: one or more names, or --all.", ctx)
    if everywhere and not everyone:
        raise click.UsageError("--everywhere says whom --all means, so it needs --all.", ctx)
    if everyone:
        _stop_everyone(ctx.obj, None if everywhere else repository(), as_json=as_json)
    elif names:
        _stop_named(ctx.obj, names, as_json=as_json)
    else:
        _say_stoppable(ctx.obj, as_json=as_json)


def _stop_everyone(daemon: Client, path: str | None, *, as_json: bool) -> None:
    """Stop those of the project at a path, or of all, and say who and what goes on."""
    ended = daemon.post("stop", path=path)
    stopped, going_on, elsewhere = (ended.get(part, []) for part in ("stopped", "going_on", "elsewhere"))
    if as_json:
        say_json({"stopped": stopped, "going_on": going_on, "elsewhere": elsewhere})
        return
    where = f" in {one_line(ended['project'])}" if ended.get("project") else ""
    say(f"Stopped {', '.join(map(one_line, stopped))}." if stopped else f"Nothing was running{where}.")
    if elsewhere:
        say(f"Of other projects {some(elsewhere)} go on: `windlass stop --all --everywhere` stops them, too.")
    for change in going_on:
        key, title = one_line(change["id"]), one_line(change["title"])
        say(f"{key} ({title}) goes on: no agent wants to land it. `windlass queue drop {key}` closes it.")


def _stop_named(daemon: Client, names: tuple[str, ...], *, as_json: bool) -> None:
    kept: dict[str, Row] = {}
    stopped, problems = _stop_each(daemon, names, kept)
    if as_json:
        say_json({"stopped": stopped, "going_on": []})
    elif stopped:
        say(f"Stopped {', '.join(map(one_line, stopped))}.")
        for name, files in kept.items():
            where = ", ".join(one_line(file) for file in files.values())
            say(f"The messages stay: `windlass peek --channel {name}`{f', and {where}' if where else ''}.")
    elif not problems:
        say("Nothing was running.")
    for problem in problems[:-1]:
        tell(block(f"windlass: {problem}"))
    if problems:
        raise problems[-1]


def _say_stoppable(daemon: Client, *, as_json: bool) -> None:
    """The agents at work and the instances, as `stop` takes them."""
    agents = daemon.get("agents")["items"]
    names = [address_of(agent) for agent in agents if agent["status"] in ("running", "waiting", "idle")]
    groups = {f"@{name.partition('@')[2]}" for name in names if "@" in name}
    with suppress(WindlassError):  # outside a project there are none
        groups |= {instance["channel"] for instance in daemon.get("instances", path=here())["items"]}
    commands = [f"windlass stop {one_line(name)}" for name in (*names, *sorted(groups), "--all")]
    text = "\n".join(commands) if names or groups else "Nothing is running."
    say_answer({"agents": names, "instances": sorted(groups)}, text, as_json=as_json)


def _stop_each(daemon: Client, names: tuple[str, ...], kept: dict[str, Row]) -> tuple[list[str], list[WindlassError]]:
    """Stop each, also after an unknown name. `kept` gets the files of each instance that is over."""
    stopped: list[str] = []
    problems: list[WindlassError] = []
    for name in dict.fromkeys(names):
        try:
            if name == "@all":
                raise BadInput("No instance is called all.", hint="`windlass stop --all` stops everyone.")
            if name.startswith("@"):
                ended = daemon.post("instances", name[1:], "stop", path=here())
                stopped += ended["stopped"] or [name]
                kept[name] = ended.get("files", {})
            else:
                stopped += daemon.post("agents", name, "stop")["stopped"]
        except WindlassError as error:
            problems.append(error)
    return stopped, problems


def _used(agent: Row) -> str:
    usage, cost = agent.get("usage") or {}, cost_of(agent)
    if not any(usage.values()) and not cost:
        return ""
    tokens = f"{usage.get('input_tokens', 0):,} tokens in, {usage.get('output_tokens', 0):,} out"
    return ", ".join(filter(None, (tokens, "cost unknown" if cost == "unknown" else cost)))

"""A hostile agent, in a sandbox and without one, through the real daemon.

Every probe succeeds without the sandbox: that is what it is for.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from e2e_stage import Stage, adds, lines, stage
from process_table import lives

from patience import until
from windlass.process.sandbox.bubblewrap import Bubblewrap

pytestmark = pytest.mark.skipif(bool(Bubblewrap().keeper().problem), reason="bubblewrap does not work here")

SETTINGS = "[daemon]\nstop_grace_seconds = 0.3\n[sandbox]\n"
"""With a sandbox table of its own, so that the stage shares nothing."""
NOT_ALLOWED = "5"
CHECK = 'for t in tests/test_*; do [ ! -e "$t" ] || sh "$t"; done'
"""It runs what an agent has written, as checks do."""
CHECK_READS = ("worktree", "store", "settings", "account", "ssh", "checkout")
CHECK_WRITES = ("home", "checkout", "settings", "hub")
READS = ("worktree", "store", "prompt", "settings", "account", "ssh", "checkout", "own checkout", "temporary")
WRITES = ("worktree", "home", "checkout", "branch", "settings", "hub", "temporary")
SEES = ("see", "signal")


@dataclass(frozen=True)
class Tried:
    """What a hostile agent got: the exit code of each thing it tried, and what was changed outside."""

    kept: bool
    codes: dict[str, str]
    changed: set[str]
    other: str
    """What became of the other agent, whom it tried to stop as a person would."""
    in_check: dict[str, str]
    """The exit codes of what its code tried when the checks ran it."""
    told: str
    """The sandbox of that check, by its receipt."""


def _plant(house: Stage, other: str) -> dict[str, Path]:
    """Files that are nobody's business; and where an agent would like to write."""
    home = Path(house.environment["HOME"])
    places = {
        "worktree": Path(house.agent(other)["worktree"]) / "secret.txt",
        "prompt": house.state / "runs/r1/prompt.md",
        "settings": house.state / "config.toml",
        "account": home / ".any-other/login.json",
        "ssh": home / ".ssh/id_ed25519",
        "home": home / ".profile",
        "checkout": house.repo / "private.txt",
        "branch": house.repo / ".git/refs/heads/planted",
        "hub": next(house.state.glob("hubs/*.git")) / "config",
        "temporary": house.folder / "temporary",
        "store": house.state / "windlass.db",
    }
    for name in ("worktree", "account", "ssh", "home", "checkout", "temporary"):
        places[name].parent.mkdir(exist_ok=True)
        places[name].write_text("private")
    return places


def _try(house: Stage, other: str, places: dict[str, Path]) -> dict[str, str]:
    """Let an agent try it all; returns the exit codes that it left in its worktree's commit."""
    probes = {f"read {name}": f"cat '{places[name]}'" for name in READS if name in places}
    probes |= {"read own checkout": 'test -e "$WINDLASS_PROJECT/README.md"'}
    probes |= {f"write {name}": f"printf '#x\\n' >> '{places[name]}'" for name in WRITES if name != "branch"}
    probes |= {"write branch": f"git rev-parse HEAD > '{places['branch']}'"}
    probes |= {"see": f"test -e /proc/{house.daemon}", "signal": f"kill -0 {house.daemon}"}
    words = f"windlass stop {other}; echo $? > human.code"
    leave = f"""(setsid env -i PATH="$PATH" HOME="$HOME" WINDLASS_HOME="$WINDLASS_HOME" sh -c 'sleep 0.5; {words}' &)"""
    steps = [f"({command}) >/dev/null 2>&1; echo '{name}='$? >> codes" for name, command in probes.items()]
    steps += [f"mkdir -p tests; cat > tests/test_probe <<'END'\n{_probe(places, other)}\nEND\n"]
    wait = "until [ -s human.code ]; do sleep 0.05; done; echo human=$(cat human.code) >> codes; rm human.code"
    done = house.land("Be hostile", "\n".join([*steps, leave, wait, adds("done.txt")]))
    assert done["landed"], done
    return dict(line.split("=") for line in (house.repo / "codes").read_text().splitlines())


def _probe(places: dict[str, Path], other: str) -> str:
    """A test that tries to read, to write, and to speak as a person."""
    tries = {f"read {name}": f"cat '{places[name]}'" for name in CHECK_READS}
    tries |= {f"write {name}": f"printf '#y\\n' >> '{places[name]}'" for name in CHECK_WRITES}
    alone = f'env -i PATH="$PATH" HOME="$HOME" WINDLASS_HOME=\'{places["store"].parent}\''
    tries |= {"human": f"{alone} windlass stop {other}"}
    return "\n".join(f"({command}) >/dev/null 2>&1; echo '{name}='$?" for name, command in tries.items())


@pytest.fixture(scope="module", params=["on", "off"])
def tried(request: pytest.FixtureRequest) -> Iterator[Tried]:
    """One hostile agent with a sandbox, one without."""
    with stage(checks=CHECK, settings=SETTINGS, WINDLASS_SANDBOX=request.param) as house:
        other = house.work("Wait", "sleep 600")
        house.event("run.started", "r1")
        places = _plant(house, other)
        before = {name: places[name].read_bytes() for name in WRITES if name != "branch"}
        codes = _try(house, other, places)
        changed = {name for name, content in before.items() if places[name].read_bytes() != content}
        changed |= {"branch"} if places["branch"].exists() else set()
        if codes["human"] == "0":
            house.event("task.cancelled")
        became = house.agent(other)["status"]
        said = house.ask("/changes/c1")["output"].splitlines()
        told = house.wl("receipt", "c1").out
        house.wl("stop", "--all")
        yield Tried(request.param == "on", codes, changed, became, dict(line.split("=") for line in said), told)


class TestHostileAgent:
    @pytest.mark.parametrize("what", READS)
    def test_it_cannot_read_what_is_not_its_own(self, tried: Tried, what: str) -> None:
        """Another's worktree, the store, another's prompt, the settings, an account, a key, the person's checkout."""
        assert (tried.codes[f"read {what}"] != "0") == tried.kept

    @pytest.mark.parametrize("what", WRITES)
    def test_it_cannot_write_outside_its_worktree(self, tried: Tried, what: str) -> None:
        """Whatever it is told in the sandbox, nothing has changed outside."""
        assert (what not in tried.changed) == tried.kept

    @pytest.mark.parametrize("what", SEES)
    def test_it_cannot_see_or_signal_other_processes(self, tried: Tried, what: str) -> None:
        """The daemon is not there for it."""
        assert (tried.codes[what] != "0") == tried.kept

    def test_it_cannot_pass_for_a_person(self, tried: Tried) -> None:
        """With or without one: a process that has left it, with an empty environment, still speaks as this run."""
        assert tried.codes["human"] == NOT_ALLOWED
        assert tried.other == "running"


class TestHostileCheck:
    @pytest.mark.parametrize("what", CHECK_READS)
    def test_it_cannot_read_what_is_not_its_own(self, tried: Tried, what: str) -> None:
        """Code that an agent wrote reads no more in a check than the agent itself."""
        assert (tried.in_check[f"read {what}"] != "0") == tried.kept

    @pytest.mark.parametrize("what", CHECK_WRITES)
    def test_it_cannot_write_outside_its_tree(self, tried: Tried, what: str) -> None:
        """Not to the user's home, checkout or settings, and not to the hub."""
        assert (tried.in_check[f"write {what}"] != "0") == (tried.kept and what != "home")

    def test_it_is_no_person(self, tried: Tried) -> None:
        """With or without a sandbox, nobody listens to it."""
        assert tried.in_check["human"] != "0"

    def test_the_receipt_says_what_kept_it(self, tried: Tried) -> None:
        """By its name, or plainly that nothing did."""
        assert ("(bubblewrap)" if tried.kept else "(unenforced)") in tried.told


class TestLife:
    def test_it_outlives_its_daemon_and_speaks_to_the_next(self) -> None:
        """The run goes on, is adopted, finds the new daemon's socket and lands; `show` says what held it."""
        with stage(settings=SETTINGS, WINDLASS_SANDBOX="on") as house:
            name = house.work("Wait", lines("touch up", "until [ -e go ]; do sleep 0.02; done", *_says_done()))
            tree = Path(house.agent(name)["worktree"])
            until((tree / "up").exists, "the agent")
            run = house.pid(name)
            os.kill(house.daemon, signal.SIGKILL)
            house.wl("daemon", "start")
            assert lives(run)
            (tree / "go").touch()
            house.event("change.landed")
            shown = house.wl("show", name, "--json").value
            assert shown["sandbox"] == "bubblewrap"
            assert [each["outcome"] for each in shown["runs"]] == ["done"]
            assert "Said inside." in [each["body"] for each in shown["reports"]]
            home = house.state / "homes" / name
            until(lambda: not home.exists(), "its own home to be gone with it")

    def test_one_that_may_only_read_writes_nothing_but_its_signal(self) -> None:
        """Its worktree is as it was, whatever its program would do."""
        with stage(settings=SETTINGS, WINDLASS_SANDBOX="on") as house:
            said = "(echo x > README.md) 2>&1; windlass agent complete Looked."
            name = house.work("Look", said, "--permissions", "read")
            house.event("task.done")
            page = house.agent(name)
            assert page["permissions"] == "read"
            assert "Read-only file system" in house.wl("logs", name).out
            assert "Looked." in [each["body"] for each in page["reports"]]


class TestChoice:
    def test_without_bubblewrap_on_is_refused_and_auto_says_unenforced(self) -> None:
        """Nothing is created for `on`; for `auto`, list, show and doctor say plainly what is missing."""
        with stage(settings=SETTINGS, WINDLASS_SANDBOX="auto") as house:
            house.environment["PATH"] = _without_bubblewrap(house)
            refused = house.wl("work", "Try", "--command", "true", "--sandbox", "on", code=6).err
            assert "bubblewrap (bwrap) is not installed" in refused
            assert "Install bubblewrap" in refused
            assert house.ask("/agents?all=1")["items"] == []
            name = house.work("Add b", adds("b.txt"))
            house.event("change.landed")
            assert "unenforced" in house.wl("list", "--all", COLUMNS="200").out
            assert "unenforced" in house.wl("show", name).out
            [finding] = [each for each in house.wl("doctor", "--json").value if each["name"] == "sandbox"]
            assert "unenforced: agents and checks run with your own rights (bubblewrap" in finding["detail"]

    def test_off_is_the_persons_word(self) -> None:
        """A flag counts more than the setting, in both directions; doctor names who runs without."""
        with stage(settings=f'{SETTINGS}mode = "on"\n') as house:
            del house.environment["WINDLASS_SANDBOX"]
            kept = house.work("Be kept", "touch up; sleep 600")
            free = house.work("Be free", "touch up; sleep 600", "--sandbox", "off")
            for agent in (kept, free):
                house.pid(agent)
            assert [house.agent(each)["sandbox"] for each in (kept, free)] == ["bubblewrap", "unenforced"]
            [finding] = [each for each in house.wl("doctor", "--json").value if each["name"] == "sandbox"]
            assert finding["detail"].endswith(f"; without one now: {free}")
            house.wl("stop", "--all")


# ── secrets ──────────────────────────────────────────────────────────────────────────────────────────────────

SECRET = "sk-test-4f9a1c7e2b8d6053"
PROGRAM = r"""#!/bin/sh
half=$(printf %s "$ANTHROPIC_API_KEY" | cut -c1-11)
rest=$(printf %s "$ANTHROPIC_API_KEY" | cut -c12-)
echo "whole $ANTHROPIC_API_KEY"
printf 'split %s' "$half"; sleep 0.3; echo "$rest"
printf '{"type":"result","is_error":false,"result":"used %s"}\n' "$ANTHROPIC_API_KEY"
echo "errors $ANTHROPIC_API_KEY" >&2
printf %s "$ANTHROPIC_API_KEY" | sha256sum | cut -d' ' -f1 > digest
git add digest; git commit -q -m Digest
if [ "$WINDLASS_RUN_NUMBER" = 1 ]; then
  windlass agent ask "May I use $ANTHROPIC_API_KEY?"
else
  printf '{"status":"done","result":"Used %s."}' "$ANTHROPIC_API_KEY" > "$WINDLASS_SIGNAL"
fi
printf 'last %s' "$ANTHROPIC_API_KEY"
"""


@pytest.mark.parametrize("sandbox", ["on", "off"])
def test_a_secret_is_nowhere_but_in_its_agents_environment(sandbox: str) -> None:
    """Not in the store, its log, the files of runs, the event stream, or anything that a command prints."""
    with stage(settings=SETTINGS, WINDLASS_SANDBOX=sandbox, ANTHROPIC_API_KEY=SECRET) as house:
        program = house.folder / "bin/claude"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        name = str(house.wl("work", "Use it", "--provider", "claude", "--json").value["agent"])
        house.event("run.asked")
        said = [house.wl("questions").out, house.wl("show", name).out]
        house.wl("answer", name, f"Yes, {name}.")
        house.event("change.landed")
        bare = house.work("Have none", lines('test -z "$ANTHROPIC_API_KEY"', adds("bare.txt")))
        house.event("change.landed", "c2")
        assert (house.repo / "digest").read_text().strip() == hashlib.sha256(SECRET.encode()).hexdigest()
        said += [house.wl(*words).out for words in (("show", name, "--json"), ("list", "--all"), ("show", bare))]
        said += [house.raw("logs", name).decode(), json.dumps(house.events())]
        assert "whole ************************" in said[-2]
        assert "split ************************\n" in said[-2]
        assert SECRET not in "".join(said)
        files = [path for path in house.state.rglob("*") if path.is_file()]
        assert [file for file in files if SECRET.encode() in file.read_bytes()] == []
        assert _rows_with(house.state / "windlass.db", SECRET[:14]) == []


def _rows_with(file: Path, text: str) -> list[str]:
    """Tables that hold a text in any column, the beginning of a secret for example."""
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as store:
        tables = [name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return [name for name in tables if text in repr(store.execute(f"SELECT * FROM {name}").fetchall())]


def _says_done() -> tuple[str, ...]:
    return (adds("b.txt").removeprefix("set -e; "), "windlass agent complete 'Said inside.'")


def _without_bubblewrap(house: Stage) -> str:
    """A PATH with all but that."""
    programs = house.folder / "programs"
    programs.mkdir()
    for folder in ("/usr/bin", "/bin"):
        for path in Path(folder).iterdir():
            if path.name != "bwrap" and not (programs / path.name).exists():
                (programs / path.name).symlink_to(path)
    return f"{house.folder}/bin:{programs}"

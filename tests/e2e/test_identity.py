"""From inside its run an agent is itself and no one else: it reaches neither main, nor another, nor the person.

Most of these would fail if agents worked in linked worktrees (`git worktree add`), which share refs, settings, hooks
and the stash with the person's repository: each such test says so. All of it holds without a sandbox.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from e2e_stage import Stage, adds, lines, stage

import patience
from patience import until

NOT_ALLOWED = "5"
HOOKS = ("pre-commit", "post-checkout", "post-merge", "reference-transaction", "post-index-change")
SHORT = "[daemon]\nstop_grace_seconds = 0.2\n"


pytestmark = pytest.mark.xdist_group("identity")  # most of it shares one daemon


@pytest.fixture(scope="module")
def shared_home() -> Iterator[Stage]:
    """The usual home, in which agents have the person's own rights."""
    with stage(begun=False, WINDLASS_SANDBOX="off") as made:
        yield made


@pytest.fixture
def house(room: Stage) -> Stage:
    """One daemon for all: what a test knows of is its own repository."""
    return room


def tries(house: Stage, *commands: str, then: str = "") -> list[tuple[str, str]]:
    """Let an agent run each command, then land a file; returns the exit code and the words of each."""
    notes = house.flag(f"tried-{len(list(house.folder.iterdir()))}")
    notes.mkdir()
    steps = [f"({each}) > '{notes}/{at}' 2>&1; echo $? > '{notes}/{at}.code'" for at, each in enumerate(commands)]
    house.land("Try it", "; ".join([*steps, then or adds(f"{notes.name}.txt")]))
    return [((notes / f"{at}.code").read_text().strip(), (notes / f"{at}").read_text()) for at in range(len(commands))]


def home_id(house: Stage) -> str:
    """The id of the home, by which an environment once named a run: `<home>:<run>`."""
    with closing(sqlite3.connect(house.state / "windlass.db", timeout=patience.seconds(20))) as connection:
        return str(connection.execute("SELECT value FROM meta WHERE key = 'home'").fetchone()[0])


def orphaned(command: str) -> str:
    """Run a command in a session of its own, without any of the parents that started it, and await its end."""
    return f"d=$(mktemp -d); (setsid sh -c '{command} >$0/said 2>&1; echo $? >$0/code' $d &); {_AWAIT}"


_AWAIT = "until [ -s $d/code ]; do sleep 0.05; done; cat $d/said; code=$(cat $d/code); rm -r $d; (exit $code)"


def everything(house: Stage) -> dict[str, str]:
    """The person's repository, as far as an agent may not change it: settings, hooks, stash and refs of their own."""
    folder = house.repo / ".git"
    return {
        "config": (folder / "config").read_text(),
        "global": (Path(house.environment["HOME"]) / ".gitconfig").read_text(),
        "hooks": "\n".join(sorted(path.name for path in (folder / "hooks").iterdir())),
        "stash": house.git("stash", "list"),
        "tags": house.git("for-each-ref", "refs/tags", "refs/notes", "refs/stash", "refs/replace"),
        "exclude": (folder / "info/exclude").read_text(),
    }


# ── main and the person's repository ─────────────────────────────────────────────────────────────────────────


class TestMain:
    def test_cannot_be_pushed_to(self, house: Stage) -> None:
        """A push to `origin` is refused, whatever it is called."""
        before = house.git("rev-parse", "main")
        tried = tries(
            house,
            "git commit -q --allow-empty -m evil && git push origin HEAD:main",
            "git push -f origin HEAD:refs/heads/main",
            "git push origin HEAD:refs/heads/work/other",
            "git push origin HEAD:refs/windlass/landing/x",
            "git push origin :refs/heads/main",
        )
        assert all(code != "0" for code, _ in tried), tried
        assert "Nothing is pushed here" in tried[0][1]
        assert house.git("rev-parse", "main^1") == before

    def test_cannot_be_moved_by_a_ref_in_the_worktree(self, house: Stage) -> None:
        """Its refs are its own. With a linked worktree `git update-ref` would move the person's main."""
        before = house.git("rev-parse", "main")
        [(code, _)] = tries(house, "git commit -q --allow-empty -m evil && git update-ref refs/heads/main HEAD")
        assert code == "0", "it may do what it likes in its own clone"
        assert house.git("rev-parse", "main^1") == before

    def test_is_not_moved_by_what_is_done_to_the_worktrees_remote(self, house: Stage) -> None:
        """Main is read from the person's repository, not from where a clone's `origin` or `HEAD` was turned to."""
        before = house.git("rev-parse", "main")
        tries(
            house,
            "git update-ref refs/remotes/origin/main $(git commit-tree -m evil HEAD^{tree})",
            "git symbolic-ref refs/remotes/origin/HEAD refs/heads/evil",
            f"git remote set-url origin '{house.repo}'",
        )
        assert house.git("rev-parse", "main^1") == before
        assert house.git("diff", "--name-only", "main^1", "main").startswith("tried-")

    def test_can_be_reached_only_by_going_outside(self, house: Stage) -> None:
        """Nothing in the clone leads to the person's repository: no remote, no alternate, no gitdir.

        A linked worktree's `.git` file leads straight there.
        """
        [(_, said)] = tries(
            house,
            "git config --list --local; git remote -v; git rev-parse --git-dir; cat .git/objects/info/alternates",
        )
        assert str(house.repo) not in said
        assert ".git" in said


class TestThePersonsRepository:
    def test_its_settings_cannot_be_changed(self, house: Stage) -> None:
        """`--local` is the clone's own file, `--global` one of the agent's.

        With a linked worktree `--local` would write the person's `.git/config`.
        """
        before = everything(house)
        tried = tries(
            house,
            "git config --local core.sshCommand evil",
            "git config --global alias.st '!evil'",
            "git config --global user.name Mallory",
        )
        assert [code for code, _ in tried] == ["0", "0", "0"], "it can have settings of its own"
        assert everything(house) == before
        assert house.git("config", "user.name") == "Test Person"

    def test_its_stash_cannot_be_popped(self, house: Stage) -> None:
        """The stash is empty from inside. In a linked worktree it is the person's."""
        (house.repo / "README.md").write_text("# Half a thought\n")
        house.git("stash", "-q")
        [(code, said), (_, listed)] = tries(house, "git stash pop", "git stash list")
        assert (code, listed) == ("1", ""), said
        assert len(house.git("stash", "list").splitlines()) == 1

    def test_its_branches_and_tags_are_not_there(self, house: Stage) -> None:
        """From inside there is main and the agent's own branch. A linked worktree shows and deletes all of them."""
        house.git("branch", "secret-plans")
        house.git("tag", "v1")
        tried = tries(
            house, "git branch -a --format='%(refname)'; git tag", "git branch -D secret-plans", "git tag -d v1"
        )
        seen = set(tried[0][1].split())
        assert {each for each in seen if not each.startswith(("refs/heads/work/", "refs/remotes/origin/"))} == set()
        assert house.git("branch", "--list", "secret-plans")
        assert house.git("tag") == "v1"

    def test_a_planted_hook_or_monitor_runs_neither_there_nor_in_the_daemon(self, house: Stage) -> None:
        """Hooks, fsmonitor, filters and drivers of the clone run in the clone only.

        With a linked worktree the hook and the settings would be the person's own, run by their next `git status`.
        """
        canary = house.flag("canary")
        evil = house.flag("evil.sh")
        evil.write_text(f"#!/bin/sh\necho \"$0 $PWD\" >> '{canary}'\ncat\n")
        evil.chmod(0o755)
        planted = [
            *(f"cp '{evil}' .git/hooks/{hook}" for hook in HOOKS),
            f"git config core.fsmonitor '{evil}'",
            f"git config filter.evil.clean '{evil}'",
            f"git config filter.evil.smudge '{evil}'",
            f"git config diff.evil.textconv '{evil}'",
            f"git config merge.evil.driver '{evil}'",
            f"git config diff.external '{evil}'",
            f"git config core.sshCommand '{evil}'",
            f"git config uploadpack.packObjectsHook '{evil}'",
            "printf '* filter=evil diff=evil merge=evil\\n' > .gitattributes",
        ]
        plant = lines(
            "mkdir -p .git/hooks",
            *planted,
            "printf x > b.txt",
            "git add -A",
            "git commit -qm b",
            f"test -s '{canary}'",
            f"rm '{canary}'",
        )
        name = house.work("Plant", plant)
        house.event("change.landed")
        house.wl("diff", name)
        house.git("status")
        house.git("diff", "HEAD~1")
        house.git("checkout", "-q", "-b", "other")
        house.git("checkout", "-q", "main")
        assert not canary.exists(), canary.read_text()
        assert (house.repo / "b.txt").read_text() == "x"

    def test_a_landed_hook_does_not_run_while_it_lands(self, house: Stage) -> None:
        """A tree may bring its own hooks folder: landing runs none, even where the person's settings point there."""
        canary = house.flag("canary")
        house.git("config", "core.hooksPath", "hooks")
        script = f"#!/bin/sh\ntouch '{canary}'\n"
        plant = lines(
            "mkdir hooks",
            *(
                f"printf '%s' \"{script}\" > hooks/{each}"
                for each in ("post-merge", "reference-transaction", "post-checkout")
            ),
            "chmod +x hooks/*",
            "git add -A",
            "git commit -qm hooks",
        )
        house.land("Bring hooks", plant)
        house.land("Once more", adds("b.txt"))
        assert not canary.exists()


# ── other agents ─────────────────────────────────────────────────────────────────────────────────────────────


class TestOthers:
    def test_their_refs_cannot_be_seen_or_fetched(self, house: Stage) -> None:
        """The hub shows main and nothing else. In a linked worktree every agent's branch is at hand."""
        secret = "- write: {secret.txt: hush}\n- commit: Secret\n- error: Stuck.\n"
        house.wl("work", "Have a secret", "--script", house.script(secret), "--wait", code=1)
        [other] = house.agents()
        commit = house.git("rev-parse", f"work/{other['name']}")
        tried = tries(
            house,
            "git ls-remote origin",
            f"git fetch origin work/{other['name']}",
            "git fetch origin '+refs/*:refs/stolen/*'; git for-each-ref refs/stolen",
            f"git push -f origin HEAD:refs/heads/work/{other['name']}",
        )
        refs = {line.split("\t")[1] for line in tried[0][1].splitlines()}
        assert refs == {"HEAD", "refs/heads/main"}
        assert tried[1][0] != "0"
        assert {line.split()[-1] for line in tried[2][1].splitlines() if "refs/stolen" in line and "\t" in line} <= {
            "refs/stolen/heads/main"
        }
        assert tried[3][0] != "0"
        assert house.git("rev-parse", f"work/{other['name']}") == commit


# ── the daemon ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def attempts() -> Iterator[dict[str, tuple[str, str]]]:
    """What an agent got for trying to act as the person, by command; the other agent and the settings are looked at."""
    with stage(settings=SHORT, WINDLASS_SANDBOX="off") as house:
        house.land("Begin", adds("a.txt"))
        other = house.play("Wait", "- ask: May I?\n")
        house.event("run.asked")
        commands = {
            "stop": f"windlass stop {other}",
            "stop all": "windlass stop --all",
            "undo": "windlass undo c1",
            "work": 'cd "$WINDLASS_PROJECT" && windlass work Evil --command true',
            "config": 'cd "$WINDLASS_PROJECT" && windlass config set checks.command true',
            "home": 'cd "$WINDLASS_PROJECT" && windlass config set --home limits.runs 99',
            "init": 'cd "$WINDLASS_PROJECT" && windlass init --yes',
            "answer": f"windlass answer {other} Yes.",
            "daemon": "windlass daemon stop",
            "no variables": f"env -u WINDLASS_RUN -u WINDLASS_AGENT windlass stop {other}",
            "false variables": f"WINDLASS_RUN=r1 WINDLASS_AGENT=human windlass stop {other}",
            "no environment": f'env -i PATH="$PATH" WINDLASS_HOME="$WINDLASS_HOME" windlass stop {other}',
            "no run's marker": f"WINDLASS_MARKER={home_id(house)}: windlass stop {other}",
            "another's marker": f"WINDLASS_MARKER={home_id(house)}:r1 windlass stop {other}",
            "no parents": orphaned(f'env -i PATH="$PATH" WINDLASS_HOME="$WINDLASS_HOME" windlass stop {other}'),
            "own session": f'setsid -w env -i PATH="$PATH" WINDLASS_HOME="$WINDLASS_HOME" windlass stop {other}',
        }
        tried = dict(zip(commands, tries(house, *commands.values()), strict=True))
        assert house.agent(other)["status"] == "waiting"
        assert [each["state"] for each in house.queue()] == ["landed", "landed"]
        assert not (house.repo / ".windlass").exists()
        assert house.wl("config", "get", "limits.runs").out == "8\n"
        yield tried


class TestVoice:
    @pytest.mark.parametrize(
        "what",
        [
            *("stop", "stop all", "undo", "work", "config", "home", "init", "answer", "daemon"),
            *("no variables", "false variables", "no run's marker", "another's marker"),
            *("no environment", "own session", "no parents"),
        ],
    )
    def test_a_run_cannot_speak_as_the_person(self, attempts: dict[str, tuple[str, str]], what: str) -> None:
        """It is refused with exit 5 and a sentence, whatever its variables say."""
        code, said = attempts[what]
        assert code == NOT_ALLOWED, said
        assert "An agent may not do that" in said

    def test_a_run_may_look(self, house: Stage) -> None:
        """What only reads is open to agents."""
        tried = tries(house, "windlass list --json", "windlass queue --json", "windlass show $WINDLASS_AGENT --json")
        assert [code for code, _ in tried] == ["0", "0", "0"]
        assert [agent["status"] for agent in json.loads(tried[0][1]) if agent["status"] != "error"] == ["running"]

    def test_complete_ends_only_ones_own_run(self) -> None:
        """With another's name and run in its variables, an agent still speaks for itself."""
        with stage(settings=SHORT, WINDLASS_SANDBOX="off") as house:
            go = house.flag("go")
            other = house.work("Wait", lines(house.waits_for(go), adds("other.txt")))
            house.event("run.started", "r1")
            command = lines(
                adds("mine.txt"), f"WINDLASS_RUN=r1 WINDLASS_AGENT={other} windlass agent complete Mine.", "sleep 600"
            )
            view = house.land("Pretend", command)
            assert view["agent"]["run"] == "r2"
            assert house.agent(other)["status"] == "running"
            assert "Mine." in [each["body"] for each in house.agent(view["agent"]["name"])["reports"]]
            go.touch()
            house.event("change.landed", "c2")

    def test_complete_outside_a_run_is_refused(self, house: Stage) -> None:
        """A person has no run to end, whatever variables they set."""
        house.wl("daemon", "start")
        said = house.wl("agent", "complete", "Done.", code=5, WINDLASS_RUN="r1", WINDLASS_AGENT="human").err
        assert "outside every run" in said

    def test_a_run_that_is_over_has_no_voice(self) -> None:
        """A process that outlived its run, if there were one, could not speak: stopping ends every one of them."""
        with stage(settings=SHORT, WINDLASS_SANDBOX="off") as house:
            late = house.flag("late")
            command = lines(
                adds("b.txt"),
                f"(setsid sh -c 'echo $$ > {late}; sleep 600' &)",
                f"until [ -s {late} ]; do sleep 0.02; done",
            )
            house.land("Leave one behind", command)
            pid = int(late.read_text())
            until(lambda: not Path(f"/proc/{pid}").exists(), "the one left behind to be ended")

    def test_a_signal_file_of_another_is_not_ones_own(self, house: Stage) -> None:
        """Writing `done` into another's worktree needs its path; the variables give only one's own."""
        tried = tries(house, 'echo "$WINDLASS_SIGNAL"')
        [name] = [agent["name"] for agent in house.agents()]
        assert f"/{name}/.windlass/output/signal.json" in tried[0][1]


def test_a_worktree_is_no_project(house: Stage) -> None:
    """A person who stands in an agent's worktree is told to use their own checkout."""
    name = house.play("Get stuck", "- error: Stuck.\n")
    house.event("task.failed")
    worktree = Path(house.agent(name)["worktree"])
    told = house.wl("work", "Fix it", "--command", "true", cwd=worktree, code=5)
    assert "is an agent's worktree" in told.err

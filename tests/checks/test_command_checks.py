"""The project's own commands, on exactly the candidate's tree."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from windlass.checks.command import CommandChecks
from windlass.core.errors import BadInput
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import Candidate
from windlass.core.nouns.project import Project
from windlass.core.ports import Checks
from windlass.core.runs.sandbox import Sandbox
from windlass.core.runs.worktree_setup import ShellResult
from windlass.core.settings.schema import CheckSettings
from windlass.git import HubGit


@dataclass
class RealShell:
    """`sh -c` in a process group of its own."""

    markers: list[str] = field(default_factory=list)

    async def __call__(
        self,
        command: str,
        *,
        cwd: str,
        environment: Mapping[str, str],
        timeout: float,  # noqa: ASYNC109 - the port of the shell has it
        output_limit: int,
        marker: str,
        sandbox: Sandbox | None = None,
    ) -> ShellResult:
        assert sandbox is None
        self.markers.append(marker)
        begun = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *("sh", "-c", command),
            cwd=cwd,
            env=dict(environment),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        late = False
        talk = asyncio.ensure_future(process.communicate())
        if not (await asyncio.wait([talk], timeout=timeout))[0]:
            late = True
            os.killpg(process.pid, signal.SIGKILL)
        output, _ = await talk
        cut = len(output) > output_limit
        code = None if late else process.returncode
        seconds = time.monotonic() - begun
        return ShellResult(exit_code=code, output=output[:output_limit], truncated=cut, seconds=seconds, timed_out=late)


class Bench:
    """A repository, its candidate trees, and the checks that run on them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.repository = folder / "repo"
        self.state = folder / "state"
        for each in (self.home, self.repository, self.state):
            each.mkdir()
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "LC_TIME": "C",
            "SECRET_CANARY": "hunter2",
            "ALLOWED_ONE": "yes",
        }
        self.project = Project(id="p-1", name="repo", path=str(self.repository), main="main")
        self.git = HubGit(self.state, environment=self.environment)
        self.shell = RealShell()
        self.checks: Checks = CommandChecks(
            self.state, "home-1", trees=self.git.trees, shell=self.shell, environment=self.environment
        )
        self.run("init", "-q", "--initial-branch=main")
        self.commit({"a.txt": "one\n", ".gitignore": "deps/\n*.log\n", "uv.lock": "1\n"}, self.repository)

    @property
    def tree(self) -> Path:
        return self.state / "checks" / "p-1" / "tree"

    def run(self, *args: str, at: Path | None = None) -> str:
        author = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        line = ["git", *author, *args]
        ran = subprocess.run(
            line, cwd=at or self.repository, env=self.environment, capture_output=True, text=True, check=True
        )
        return ran.stdout.strip()

    def commit(self, files: Mapping[str, str], at: Path) -> None:
        for name, text in files.items():
            (at / name).write_text(text)
        self.run("add", "-A", at=at)
        self.run("commit", "-q", "-m", "Work", at=at)

    async def candidate(self, name: str, files: Mapping[str, str]) -> Candidate:
        agent = Agent(name=name, project="p-1", provider="command")
        path, _ = await self.git.worktree(self.project, agent)
        self.commit(files, Path(path))
        tree = await self.git.look(self.project, agent, "r1")
        return await self.git.stage(self.project, tree.head, "Land")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def settings(command: str, setup: str = "", **more: object) -> CheckSettings:
    return replace(CheckSettings(command=command, setup=setup), **more)  # type: ignore[arg-type]  # fields by name


class TestCommand:
    def test_it_runs_on_exactly_the_candidate(self, bench: Bench) -> None:
        """Not on the agent's folder, not on the user's; the verdict names the tree."""

        async def story() -> None:
            candidate = await bench.candidate("coder", {"b.txt": "two\n"})
            (bench.repository / "local.txt").write_text("not part of it")
            command = settings("ls; git rev-parse HEAD; git status --porcelain")
            result, output = await bench.checks.run(bench.project, candidate, command, 5.0, sandbox=None)
            assert result.passed and result.exit_code == 0 and result.reason == ""
            assert (result.tree, result.started_at, result.command) == (candidate.tree, 5.0, command.command)
            assert output.split() == ["a.txt", "b.txt", "uv.lock", candidate.commit]
            assert bench.shell.markers == ["home-1:check-p-1"]

        asyncio.run(story())

    def test_a_failure_has_its_reason_and_its_output(self, bench: Bench) -> None:
        """Bytes that are no text are shown as such."""

        async def story() -> None:
            candidate = await bench.candidate("coder", {"b.txt": "x"})
            result, output = await bench.checks.run(
                bench.project, candidate, settings("printf 'bad \\377'; exit 3"), 0, sandbox=None
            )
            assert (result.passed, result.exit_code, result.reason) == (False, 3, "exit code 3")
            assert output == "bad \ufffd"

        asyncio.run(story())

    def test_a_command_that_hangs_is_ended(self, bench: Bench) -> None:
        """The reason has the limit."""

        async def story() -> None:
            candidate = await bench.candidate("coder", {"b.txt": "x"})
            result, _ = await bench.checks.run(
                bench.project, candidate, settings("sleep 60", timeout_seconds=0.2), 0, sandbox=None
            )
            assert (result.passed, result.exit_code, result.reason) == (False, None, "timed out after 0.2 s")

        asyncio.run(story())

    def test_long_output_is_cut_and_said_so(self, bench: Bench) -> None:
        """What is kept is bounded."""

        async def story() -> None:
            candidate = await bench.candidate("coder", {"b.txt": "x"})
            _, output = await bench.checks.run(
                bench.project, candidate, settings("seq 9999", output_bytes=100), 0, sandbox=None
            )
            assert "100 bytes of it are kept" in output and len(output) < 200

        asyncio.run(story())

    def test_no_command_is_refused(self, bench: Bench) -> None:
        """Nothing passes untested."""

        async def story() -> None:
            candidate = await bench.candidate("coder", {"b.txt": "x"})
            with pytest.raises(BadInput, match="no check command"):
                await bench.checks.run(bench.project, candidate, settings("  "), 0, sandbox=None)

        asyncio.run(story())

    def test_secrets_are_not_visible(self, bench: Bench) -> None:
        """The environment is an allow-list, which the settings can widen by name."""

        async def story() -> None:
            candidate = await bench.candidate("coder", {"b.txt": "x"})
            _, output = await bench.checks.run(
                bench.project, candidate, settings("env", environment=("ALLOWED_ONE",)), 0, sandbox=None
            )
            assert "hunter2" not in output
            names = {line.partition("=")[0] for line in output.splitlines()} - {"PWD", "OLDPWD", "SHLVL", "_"}
            assert names == {"PATH", "HOME", "LC_TIME", "TERM", "CI", "ALLOWED_ONE"}

        asyncio.run(story())

    def test_two_at_once_have_a_tree_each(self, bench: Bench) -> None:
        """Each waits for what only the other writes, and neither sees the other's files; then the first is used."""

        async def story() -> None:
            candidate = await bench.candidate("coder", {"b.txt": "x"})
            meet = 'touch own "$HOME/$PPID.$$"; until [ "$(ls "$HOME" | wc -l)" -ge 2 ]; do sleep 0.02; done; ls; pwd'
            both = [bench.checks.run(bench.project, candidate, settings(meet), 0, sandbox=None) for _ in range(2)]
            first, second = [output.splitlines() for _, output in await asyncio.gather(*both)]
            assert first[:-1] == second[:-1]
            assert {Path(each[-1]).name for each in (first, second)} == {"tree", "tree-2"}
            _, again = await bench.checks.run(bench.project, candidate, settings("ls; pwd"), 0, sandbox=None)
            assert again.splitlines() == [each for each in first[:-1] if each != "own"] + [
                min(first[-1], second[-1], key=len)
            ]

        asyncio.run(story())


class TestTree:
    def test_nothing_is_left_for_the_next_check(self, bench: Bench) -> None:
        """Changed, removed, new, ignored and nested things are all put right."""

        async def story() -> None:
            first = await bench.candidate("coder", {"b.txt": "two\n"})
            mess = "echo mess > a.txt; rm b.txt; touch new x.log; mkdir -p deps; git init -q nested; chmod 000 deps"
            await bench.checks.run(bench.project, first, settings(mess), 0, sandbox=None)
            second = await bench.candidate("other", {"c.txt": "three\n"})
            _, output = await bench.checks.run(bench.project, second, settings("ls -A; cat a.txt"), 0, sandbox=None)
            assert output.split() == [".git", ".gitignore", "a.txt", "c.txt", "uv.lock", "one"]

        asyncio.run(story())

    def test_what_a_check_plants_in_git_does_not_execute(self, bench: Bench) -> None:
        """A test run is an agent's code: its settings, hooks and links are thrown away."""

        async def story() -> None:
            canary = bench.folder / "canary"
            candidate = await bench.candidate("coder", {".gitattributes": "* filter=evil\n"})
            evil = (
                "for k in core.fsmonitor filter.evil.smudge filter.evil.clean; "
                f"do git config $k 'touch {canary}; cat'; done; mkdir .git/hooks; "
                f"printf '#!/bin/sh\\ntouch {canary}' > .git/hooks/post-checkout; "
                f"chmod +x .git/hooks/post-checkout; rm -r a.txt; ln -s {bench.home} a.txt; git config core.worktree /"
            )
            (bench.home / "keep").write_text("safe")
            await bench.checks.run(bench.project, candidate, settings(evil), 0, sandbox=None)
            canary.unlink(missing_ok=True)
            result, output = await bench.checks.run(bench.project, candidate, settings("cat a.txt"), 0, sandbox=None)
            assert result.passed and output == "one\n"
            assert not canary.exists() and (bench.home / "keep").exists()

        asyncio.run(story())

    def test_a_tree_replaced_by_a_link_is_made_anew(self, bench: Bench) -> None:
        """Nothing is cleaned behind the link."""

        async def story() -> None:
            candidate = await bench.candidate("coder", {"b.txt": "x"})
            await bench.checks.run(bench.project, candidate, settings("true"), 0, sandbox=None)
            bench.tree.rename(bench.folder / "moved")
            bench.tree.symlink_to(bench.home)
            (bench.home / "keep").write_text("safe")
            result, _ = await bench.checks.run(bench.project, candidate, settings("test -f a.txt"), 0, sandbox=None)
            assert result.passed and (bench.home / "keep").exists()

        asyncio.run(story())

    def test_a_project_id_that_is_a_path_removes_nothing(self, bench: Bench) -> None:
        """The id comes from a file in the repository."""

        async def story() -> None:
            candidate = await bench.candidate("coder", {"b.txt": "x"})
            (bench.folder / "evil/tree").mkdir(parents=True)
            with pytest.raises(BadInput):
                await bench.checks.run(
                    replace(bench.project, id="../../evil"), candidate, settings("true"), 0, sandbox=None
                )
            assert (bench.folder / "evil/tree").is_dir()

        asyncio.run(story())


class TestSetup:
    SETUP = "mkdir -p deps && date +%N >> deps/stamp && echo changed > a.txt && echo ran >> ../../../count"

    def count(self, bench: Bench) -> int:
        file = bench.state / "count"
        return len(file.read_text().split()) if file.exists() else 0

    def test_it_is_done_once_and_its_result_is_kept(self, bench: Bench) -> None:
        """Only what it made beside the commit's files; those are the candidate's again."""

        async def story() -> None:
            one = await bench.candidate("one", {"b.txt": "x\n"})
            two = await bench.candidate("two", {"c.txt": "y\n"})
            command = settings("cat a.txt; ls; touch deps/polluted junk.log", self.SETUP)
            _, first = await bench.checks.run(bench.project, one, command, 0, sandbox=None)
            _, second = await bench.checks.run(bench.project, two, command, 0, sandbox=None)
            assert first.split() == ["one", "a.txt", "b.txt", "deps", "uv.lock"]
            assert second.split() == ["one", "a.txt", "c.txt", "deps", "uv.lock"]
            assert self.count(bench) == 1

        asyncio.run(story())

    def test_a_lock_file_that_changed_means_a_fresh_start(self, bench: Bench) -> None:
        """So does another set-up command; nothing old is left in what it made."""

        async def story() -> None:
            one = await bench.candidate("one", {"b.txt": "x\n"})
            two = await bench.candidate("two", {"uv.lock": "2\n"})
            command = settings("wc -l < deps/stamp; touch deps/old", self.SETUP)
            await bench.checks.run(bench.project, one, command, 0, sandbox=None)
            _, output = await bench.checks.run(bench.project, two, command, 0, sandbox=None)
            assert output.strip() == "1" and self.count(bench) == 2
            await bench.checks.run(bench.project, two, replace(command, setup=self.SETUP + " "), 0, sandbox=None)
            assert self.count(bench) == 3

        asyncio.run(story())

    def test_a_set_up_that_fails_fails_the_check_and_is_tried_again(self, bench: Bench) -> None:
        """Half of a set-up is never used."""

        async def story() -> None:
            candidate = await bench.candidate("coder", {"b.txt": "x"})
            broken = settings("true", "mkdir deps; echo no network; exit 7")
            result, output = await bench.checks.run(bench.project, candidate, broken, 0, sandbox=None)
            assert (result.passed, result.reason, output) == (False, "set-up failed: exit code 7", "no network\n")
            result, _ = await bench.checks.run(bench.project, candidate, broken, 0, sandbox=None)
            assert not result.passed
            mended = settings("ls", "true")
            result, output = await bench.checks.run(bench.project, candidate, mended, 0, sandbox=None)
            assert result.passed and "deps" not in output

        asyncio.run(story())

    def test_a_result_that_a_check_removed_is_there_again(self, bench: Bench) -> None:
        """A check that cleans up after itself does not starve the next one: each has a copy."""

        async def story() -> None:
            candidate = await bench.candidate("coder", {"b.txt": "x"})
            command = settings("test -d deps && rm -r deps", self.SETUP)
            for _ in range(2):
                result, _ = await bench.checks.run(bench.project, candidate, command, 0, sandbox=None)
                assert result.passed
            assert self.count(bench) == 1

        asyncio.run(story())

    def test_odd_names_are_kept_and_only_those(self, bench: Bench) -> None:
        """Names that look like patterns mean themselves."""

        async def story() -> None:
            candidate = await bench.candidate("coder", {"b.txt": "x"})
            command = settings("ls -A | sort", "mkdir -p 'd [x]*'; touch 'd [x]*/f' '!bang' '#hash' 'end '")
            await bench.checks.run(bench.project, candidate, settings("touch dx", command.setup), 0, sandbox=None)
            _, output = await bench.checks.run(bench.project, candidate, command, 0, sandbox=None)
            names = set(output.splitlines())
            assert {"d [x]*", "!bang", "#hash", "end "} <= names and "dx" not in names

        asyncio.run(story())

"""Checks in a sandbox: what agents wrote runs there, and finds the tree, its tools, and nothing of the user's."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import closing, suppress
from pathlib import Path

import pytest

from windlass.checks.command import CommandChecks
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import Candidate
from windlass.core.nouns.project import Project
from windlass.core.runs.sandbox import enclosure_of_checks
from windlass.core.settings.schema import CheckSettings, SandboxSettings
from windlass.git import HubGit
from windlass.process.sandbox.bubblewrap import Bubblewrap
from windlass.process.shell import CommandShell
from windlass.process.starting.spawner import Spawner

pytestmark = pytest.mark.skipif(bool(Bubblewrap().keeper().problem), reason="bubblewrap does not work here")


class Person:
    """A home with keys and tools in it, a repository, and the daemon's own folder."""

    def __init__(self, home: Path, repository: Path) -> None:
        self.home = home
        self.state = home / ".windlass"
        self.tools = home / ".local/bin"
        for folder in (self.state, self.tools, home / ".ssh", home / ".aws"):
            folder.mkdir(parents=True)
        (home / ".ssh/id_x").write_text("canary key")
        (home / ".aws/credentials").write_text("canary secret")
        self.repository = repository
        self.project = Project(id="p-1", name="repo", path=str(repository), main="main")
        self.environment = os.environ | {"HOME": str(home), "PATH": f"{self.tools}:{os.environ['PATH']}"}
        self.git = HubGit(self.state, environment=self.environment)
        shell = CommandShell(Bubblewrap(), Spawner())
        home_id = f"home-{os.getpid()}"
        trees = self.git.trees
        self.checks = CommandChecks(self.state, home_id, trees=trees, shell=shell, environment=self.environment)

    async def candidate(self) -> Candidate:
        """An agent's commit on main."""
        agent = Agent(name="coder", project="p-1", provider="command")
        path, _ = await self.git.worktree(self.project, agent)
        words = "echo hostile > test.sh && git add -A && git commit -q -m Work"
        done = await asyncio.create_subprocess_shell(words, cwd=path)
        assert await done.wait() == 0
        head = (await self.git.look(self.project, agent, "r1")).head
        return await self.git.stage(self.project, head, "Land")

    async def check(
        self,
        command: str,
        candidate: Candidate | None = None,
        *,
        setup: str = "",
        network: bool = True,
        all_: bool = True,
    ) -> tuple[bool, str]:
        """Whether a command passes in the sandbox, and what it prints."""
        terms = SandboxSettings(network=all_)
        around = enclosure_of_checks(home=str(self.state), project=self.project, settings=terms)
        settings = CheckSettings(command=command, setup=setup, network=network)
        on = candidate or await self.candidate()
        result, output = await self.checks.run(self.project, on, settings, 0.0, sandbox=around)
        return result.passed, output


@pytest.fixture
def person(own_home: Path, repo: Path) -> Person:
    return Person(own_home / "home", repo)


def test_code_that_an_agent_wrote_reads_no_key(person: Person) -> None:
    """Neither keys nor credentials nor Windlass's own store, token or other trees, and not the user's checkout."""
    (person.state / "token").write_text("canary token")
    (person.repository / ".env").write_text("canary variable")

    async def story() -> None:
        looks = f"cat ~/.ssh/id_x ~/.aws/credentials {person.state}/token {person.repository}/.env 2>&1; ls -A ~"
        _, output = await person.check(f"{looks}; ls {person.state}; ls {person.state}/checks/p-1; cat README.md")
        assert "canary" not in output
        assert output.splitlines()[4:] == [
            ".gitconfig",
            ".local",
            ".windlass",
            "checks",
            "hubs",
            "tree",
            "# A small project",
        ]

    asyncio.run(story())


def test_it_writes_only_its_tree(person: Person) -> None:
    """Its home and temporary folder are its own; nothing else is changed."""

    async def story() -> None:
        tries = f"for f in {person.repository}/x {person.tools}/x {person.state}/x {person.state}/hubs/x /usr/x"
        writes = f"{tries}; do (echo y > $f) 2>/dev/null && echo wrote $f; done"
        passed, output = await person.check(f"{writes}; echo y > ~/x; echo y > /tmp/x; echo y > x && ls x")
        assert (passed, output) == (True, "x\n")
        assert not [path for path in (person.home / "x", Path("/tmp/x"), person.repository / "x") if path.exists()]

    asyncio.run(story())


def test_it_has_no_way_to_the_daemon(person: Person) -> None:
    """The socket is not there, whichever path leads to it."""
    (person.state / "door").mkdir()
    with closing(socket.socket(socket.AF_UNIX)) as listening:
        listening.bind(str(person.state / "door/daemon.sock"))
        listening.listen()
        (person.state / "daemon.sock").symlink_to("door/daemon.sock")

        async def story() -> None:
            line = "import socket; socket.socket(socket.AF_UNIX).connect('{}')"
            calls = [f'python3 -c "{line.format(person.state / name)}"' for name in ("daemon.sock", "door/daemon.sock")]
            passed, output = await person.check(" || ".join(calls))
            assert not passed and output.count("FileNotFoundError") == 2

        asyncio.run(story())


def test_its_tools_below_the_home_work(person: Person) -> None:
    """What the PATH finds there is found, and git knows the user's name but no other setting of theirs."""
    tool = person.tools / "runner"
    tool.write_text("#!/bin/sh\necho ran\n")
    tool.chmod(0o755)
    (person.home / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = a@b.c\n[http]\n\textraHeader = canary\n")
    person.environment["GIT_CONFIG_GLOBAL"] = str(person.home / ".gitconfig")

    async def story() -> None:
        passed, output = await person.check("runner; git log --oneline | wc -l; git config --global --list")
        assert passed and output.splitlines()[:3] == ["ran", "3", "user.name=Ada"]
        assert "canary" not in output

    asyncio.run(story())


def test_what_the_set_up_left_is_there(person: Person) -> None:
    """In the tree and in its home, for this check and the next, on each bench by itself."""

    async def story() -> None:
        setup = "mkdir -p .deps ~/.cache/x && echo lib > .deps/lib && echo cached >> ~/.cache/x/y"
        candidate = await person.candidate()
        for _ in range(2):
            passed, output = await person.check("cat .deps/lib ~/.cache/x/y", candidate, setup=setup)
            assert (passed, output) == (True, "lib\ncached\n")
        assert not (person.home / ".cache/x").exists()

    asyncio.run(story())


@pytest.mark.parametrize(("checks", "everyone"), [(True, True), (False, True), (True, False)])
def test_the_network_is_a_setting(person: Person, checks: bool, everyone: bool) -> None:
    """For checks alone, or for all; their own loopback works without."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        port = listening.getsockname()[1]

        async def story() -> None:
            own = "s=socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname(), 2); print('own')"
            other = f"socket.create_connection(('127.0.0.1', {port}), 2); print('other')"
            calls = f'python3 -uc "import socket; {own}; {other}"'
            passed, output = await person.check(calls, network=checks, all_=everyone)
            assert output.startswith("own\n")
            assert passed == (checks and everyone)

        asyncio.run(story())


HAND_OVER = """
import os, socket, sys
with socket.socket(socket.AF_UNIX) as caller:
    caller.connect("\\0" + sys.argv[1])
    open_folders = [os.open(path, os.O_RDONLY) for path in (".", os.path.expanduser("~"))]
    socket.send_fds(caller, [b"x"], open_folders)
    caller.recv(1)
"""


@pytest.mark.parametrize("setup", ["", "mkdir -p .deps && echo lib > .deps/lib"])
def test_a_folder_that_a_check_hands_out_is_not_read_by_the_next_one(person: Person, setup: str) -> None:
    """An agent that gets the open folders of a check over an abstract socket changes no later check with them."""
    name = f"windlass-test-{os.getpid()}"
    got: list[int] = []
    write = {"README.md": "forged\n", "sitecustomize.py": "", ".deps/lib": "forged\n", ".profile": "forged\n"}

    def accept(listening: socket.socket) -> None:
        caller, _ = listening.accept()
        with closing(caller):
            got.extend(socket.recv_fds(caller, 1, 2)[1])

    async def story() -> None:
        candidate = await person.candidate()
        with closing(socket.socket(socket.AF_UNIX)) as listening:
            listening.bind(f"\0{name}")
            listening.listen()
            accepted = asyncio.ensure_future(asyncio.to_thread(accept, listening))
            passed, output = await person.check(f"python3 -c '{HAND_OVER}' {name}", candidate, setup=setup)
            await accepted
        assert passed, output
        for folder in got:
            for file, text in write.items():
                with suppress(FileNotFoundError):
                    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, dir_fd=folder)
                    os.write(handle, text.encode())
                    os.close(handle)
        _, output = await person.check("cat README.md .deps/lib; ls -A . ~", candidate, setup=setup)
        assert "# A small project" in output
        assert not [word for word in ("forged", "sitecustomize", ".profile") if word in output]

    try:
        asyncio.run(story())
    finally:
        for folder in got:
            os.close(folder)


def test_a_check_leaves_nothing_in_its_home_for_the_next_one(person: Person) -> None:
    """Nor in what the set-up made: both are copies of what the set-up left."""

    async def story() -> None:
        setup = "mkdir -p .deps && echo lib > .deps/lib && echo cached > ~/cache && echo made >> ~/set-ups"
        candidate = await person.candidate()
        spoil = "echo x > ~/left; echo x >> ~/cache; echo x >> .deps/lib; ln -s / .deps/all"
        assert (await person.check(spoil, candidate, setup=setup))[0]
        passed, output = await person.check("cat ~/cache ~/set-ups .deps/*; ls ~", candidate, setup=setup)
        assert (passed, output) == (True, "cached\nmade\nlib\ncache\nset-ups\n")

    asyncio.run(story())

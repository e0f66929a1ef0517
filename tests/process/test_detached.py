"""Starting, following and reading real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from process_stage import Stage, play, until

import patience
from shortage import no_descriptors
from windlass.core.errors import BadInput, Unavailable
from windlass.core.nouns.run import Identity
from windlass.core.ports.processes import Launch
from windlass.process.proc import identify, is_alive

LIBC_OWN_SIGNALS = 1 << 31 | 1 << 32
"""Numbers 32 and 33, which the C library keeps for its threads and ignores in what it spawns."""


def ourselves() -> Identity:
    """The process of this test: it lives as long as the test."""
    identity = identify(os.getpid())
    assert identity is not None
    return identity


class TestExit:
    @pytest.mark.parametrize(
        ("script", "code"), [("true", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143)]
    )
    def test_the_code_is_what_a_shell_would_say(self, tmp_path: Path, script: str, code: int) -> None:
        """The program's own code, or 128 and the signal that ended it; the shell's own remarks are no output."""

        async def story(stage: Stage) -> None:
            identity = await stage.start("r1", script)
            assert await stage.ended("r1", identity) == code
            assert stage.said("r1") == ""

        play(tmp_path, story)

    def test_a_killed_shim_tells_no_code_and_its_program_is_still_found(self, tmp_path: Path) -> None:
        """When the shim alone is killed, the program that goes on is found by its stamp and can be stopped."""

        async def story(stage: Stage) -> None:
            identity = await stage.start("r1", 'echo up; exec sleep "$NAP"')
            await until(lambda: stage.said("r1"))
            os.kill(identity.pid, signal.SIGKILL)
            await until(lambda: not is_alive(identity))

            left = await stage.port.find("r1")

            assert left is not None
            assert left != identity
            assert await stage.port.stop("r1", identity, grace=5) == 1
            assert not await stage.port.alive(left)
            assert await stage.port.exit_code("r1") is None

        play(tmp_path, story)

    def test_a_signal_to_the_whole_group_does_not_silence_the_shim(self, tmp_path: Path) -> None:
        """The shim outlives TERM and INT, and tells how the program took them."""

        async def story(stage: Stage) -> None:
            identity = await stage.start("r1", "trap 'exit 5' TERM; echo up; while :; do sleep 0.05; done")
            await until(lambda: stage.said("r1"))
            os.killpg(identity.pid, signal.SIGINT)
            os.killpg(identity.pid, signal.SIGTERM)
            assert await stage.ended("r1", identity) in (5, 130)

        play(tmp_path, story)


class TestOutput:
    def test_a_thousand_quick_lines_arrive_in_order(self, tmp_path: Path) -> None:
        """Standard output and errors share one file, and nothing is lost or changes places."""

        async def story(stage: Stage) -> None:
            script = "i=0; while [ $i -lt 1000 ]; do echo $i; i=$((i+1)); echo $i >&2; i=$((i+1)); done"
            identity = await stage.start("r1", script)
            stirred = asyncio.Event()
            stage.port.follow("r1", identity, lambda _: stirred.set())
            got, alive = b"", frozenset({identity})
            while alive:
                await asyncio.wait_for(stirred.wait(), patience.seconds(20))
                stirred.clear()
                alive = await stage.port.alive(identity)  # asked first: what is read after its end is all of it
                while some := await stage.port.output("r1", len(got), 700):
                    got += some
            assert got.split() == [b"%d" % number for number in range(1000)]

        play(tmp_path, story)

    def test_a_child_in_the_background_does_not_hold_up_the_end(self, tmp_path: Path) -> None:
        """The run ends with its program, although something it left holds the output open."""

        async def story(stage: Stage) -> None:
            identity = await stage.start("r1", 'sleep "$NAP" & exit 3')
            assert await stage.ended("r1", identity) == 3
            await until(lambda: len(stage.napping()) == 1)
            assert await stage.port.stop("r1", identity, grace=5) == 1

        play(tmp_path, story)

    @pytest.mark.parametrize("name", ["output", "exit"])
    def test_only_regular_files_are_read(self, tmp_path: Path, name: str) -> None:
        """A link, a pipe or a folder in a file's place reads as nothing, and never blocks."""
        secret = tmp_path / "secret"
        secret.write_text("0\n")
        stage = Stage(tmp_path)
        for run in ("link", "pipe", "folder"):
            (tmp_path / "runs" / run).mkdir(parents=True)
        (tmp_path / "runs/link" / name).symlink_to(secret)
        os.mkfifo(tmp_path / "runs/pipe" / name)
        (tmp_path / "runs/folder" / name).mkdir()

        for run in ("link", "pipe", "folder"):
            assert asyncio.run(stage.port.output(run, 0, 10)) == b""
            assert asyncio.run(stage.port.exit_code(run)) is None
        stage.strike()

    @pytest.mark.parametrize("garbage", ["", "7", "x\n", "-1\n", "999\n", "7\n7\n", "0" * 1000 + "\n"])
    def test_a_garbled_exit_code_is_none(self, tmp_path: Path, garbage: str) -> None:
        """Only what the shim can have written counts."""
        stage = Stage(tmp_path)
        (tmp_path / "runs/r1").mkdir(parents=True)
        (tmp_path / "runs/r1/exit").write_text(garbage)
        assert asyncio.run(stage.port.exit_code("r1")) is None
        stage.strike()

    def test_files_are_for_us_alone(self, tmp_path: Path) -> None:
        """A run's folder is 0700 and its files 0600, and the program's own umask is untouched."""

        async def story(stage: Stage) -> None:
            before = os.umask(0o022)
            try:
                identity = await stage.start("r1", "umask; : >made")
                assert await stage.ended("r1", identity) == 0
            finally:
                os.umask(before)
            folder = tmp_path / "runs/r1"
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())}
            assert modes == {"r1": 0o700, "output": 0o600, "exit": 0o600}
            assert stage.said("r1") == "0022\n"
            assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == 0o644

        play(tmp_path, story)


class TestStart:
    def test_arguments_arrive_as_they_are(self, tmp_path: Path) -> None:
        """Nothing in an argument is ever interpreted by a shell."""

        async def story(stage: Stage) -> None:
            words = ("$(touch canary)", "`touch canary`", "a'b\"c", "line\nbreak", "", "-n", "; touch canary", "ü")
            identity = await stage.port.start(stage.launch("r1", "printf", "<%s>", *words))
            assert await stage.ended("r1", identity) == 0
            assert stage.said("r1") == "".join(f"<{word}>" for word in words)
            assert not (tmp_path / "canary").exists()

        play(tmp_path, story)

    def test_it_works_in_its_folder_and_reads_its_file(self, tmp_path: Path) -> None:
        """The working folder is the given one (spaces and all), standard input the given file or empty."""

        async def story(stage: Stage) -> None:
            place = tmp_path / "a place ü"
            place.mkdir()
            prompt = tmp_path / "prompt"
            prompt.write_text("do it")
            script = 'pwd; echo "$PWD"; cat'
            first = await stage.port.start(
                Launch(run="r1", argv=("sh", "-c", script), cwd=str(place), environment={}, stdin=str(prompt))
            )
            second = await stage.port.start(stage.launch("r2", "cat"))
            assert await stage.ended("r1", first) == 0
            assert await stage.ended("r2", second) == 0
            assert stage.said("r1") == f"{place}\n{place}\ndo it"
            assert stage.said("r2") == ""

        play(tmp_path, story)

    def test_the_program_is_sought_in_its_own_path(self, tmp_path: Path) -> None:
        """PATH of the final environment counts, relative entries from its folder; a shell's own word is no program."""

        async def story(stage: Stage) -> None:
            (tmp_path / "tools").mkdir()
            tool = tmp_path / "tools/hello"
            tool.write_text("#!/bin/sh\necho hello\n")
            with pytest.raises(BadInput, match="'hello'"):
                await stage.port.start(stage.launch("r1", "hello", PATH="tools"))
            tool.chmod(0o755)
            for run, argv in (("r1", "hello"), ("r2", "tools/hello"), ("r3", str(tool))):
                identity = await stage.port.start(stage.launch(run, argv, PATH="tools"))
                assert await stage.ended(run, identity) == 0
                assert stage.said(run) == "hello\n"
            with pytest.raises(BadInput, match="'exit'"):
                await stage.port.start(stage.launch("r4", "exit", "0"))

        play(tmp_path, story)

    @pytest.mark.parametrize("run", ["../r1", "", "a/b", ".", "..", "-rf", "r\n1", "x" * 300])
    def test_a_run_whose_name_leads_elsewhere_is_refused(self, tmp_path: Path, run: str) -> None:
        """No folder is made, and nothing is started."""

        async def story(stage: Stage) -> None:
            with pytest.raises(BadInput):
                await stage.start(run, "true")

        play(tmp_path, story)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        "change", [{"cwd": "/no/such/folder"}, {"cwd": "."}, {"stdin": "/no/such/file"}, {"argv": ()}]
    )
    def test_what_is_not_there_is_named(self, tmp_path: Path, change: dict[str, str]) -> None:
        """A missing folder, input or program is bad input, and nothing is half-made."""

        async def story(stage: Stage) -> None:
            wanted: dict[str, object] = {"run": "r1", "argv": ("true",), "cwd": "/", "environment": {}, **change}
            with pytest.raises(BadInput, match=r"not there|absolute|no program"):
                await stage.port.start(Launch(**wanted))  # type: ignore[arg-type]  # values of mixed kinds, by name

        play(tmp_path, story)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("argument", ["a\0b", "x" * (4 << 20)])
    def test_what_no_program_can_be_given_is_refused(self, tmp_path: Path, argument: str) -> None:
        """A NUL byte or megabytes of arguments are bad input."""

        async def story(stage: Stage) -> None:
            with pytest.raises(BadInput):
                await stage.port.start(stage.launch("r1", "true", argument))
            await until(lambda: not stage.stamped())  # who said that it can't begin is about to end

        play(tmp_path, story)

    def test_no_room_for_a_descriptor_is_unavailable(self, tmp_path: Path) -> None:
        """When the system refuses, it is said so, and the next try works; the living are not taken for dead."""

        async def story(stage: Stage) -> None:
            living = await stage.start("r1", 'exec sleep "$NAP"')
            with no_descriptors():
                with pytest.raises(Unavailable):
                    await stage.start("r2", "true")
                with pytest.raises(Unavailable):
                    await stage.port.alive(living)
                with pytest.raises(Unavailable):
                    await stage.port.output("r1", 0, 1)
            identity = await stage.start("r2", "true")
            assert await stage.ended("r2", identity) == 0
            assert await stage.port.stop("r1", living, grace=5) == 2

        play(tmp_path, story)

    def test_a_program_with_an_odd_name_is_seen_as_it_is(self, tmp_path: Path) -> None:
        """Parentheses and spaces in a name do not shift what the kernel says about the process."""
        program = tmp_path / "a) Z 1 (b"
        program.write_text('#!/bin/sh\necho up\nsleep "$NAP"\ntrue\n')
        program.chmod(0o755)

        async def story(stage: Stage) -> None:
            identity = await stage.port.start(stage.launch("r1", str(program)))
            await until(stage.napping)
            shim, odd, nap = sorted(stage.stamped(), key=lambda each: (each.started, each.pid))
            assert (odd.parent, odd.session) == (shim.pid, shim.pid)
            assert nap.parent == odd.pid
            assert await stage.port.stop("r1", identity, grace=5) == 3

        play(tmp_path, story)


class TestInheritance:
    def test_signals_are_the_default_ones(self, tmp_path: Path) -> None:
        """Whatever we ignore or block, a program starts with neither."""

        async def story(stage: Stage) -> None:
            before = {each: signal.signal(each, signal.SIG_IGN) for each in (signal.SIGHUP, signal.SIGQUIT)}
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
            try:
                argv = ("grep", "-E", "Sig(Ign|Blk)", "/proc/self/status")
                identity = await stage.port.start(stage.launch("r1", *argv))
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
                for number, action in before.items():
                    signal.signal(number, action)
            assert await stage.ended("r1", identity) == 0
            _, blocked, _, ignored = stage.said("r1").split()
            assert int(blocked, 16) == 0
            assert int(ignored, 16) & ~LIBC_OWN_SIGNALS == 0

        play(tmp_path, story)

    def test_a_program_may_open_as_many_files_as_it_is_told(self, tmp_path: Path) -> None:
        """Not as many as we, who may have raised our own limit."""

        async def story(stage: Stage) -> None:
            stage.spawner.files = 99
            identity = await stage.start("r1", "ulimit -S -n")
            assert await stage.ended("r1", identity) == 0
            assert stage.said("r1") == "99\n"

        play(tmp_path, story)

    def test_no_descriptor_of_ours_reaches_a_program(self, tmp_path: Path) -> None:
        """Only its three streams are open, although we hold an inheritable pipe and follow another run."""

        async def story(stage: Stage) -> None:
            pipe = os.pipe()
            for each in pipe:
                os.set_inheritable(each, 1)  # type: ignore[arg-type]  # values of mixed kinds, by name
            first = await stage.start("r1", 'exec sleep "$NAP"')
            stage.port.follow("r1", first, lambda _: None)
            script = "i=0; while [ $i -lt 200 ]; do [ -e /proc/$$/fd/$i ] && echo $i; i=$((i+1)); done; true"
            identity = await stage.start("r2", script)
            assert await stage.ended("r2", identity) == 0
            for each in pipe:
                os.close(each)
            assert stage.said("r2").split() == ["0", "1", "2"]
            await stage.port.stop("r1", first, grace=5)

        play(tmp_path, story)

    def test_only_what_is_allowed_comes_from_our_environment(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What is neither for everyone nor named stays out, credentials above all; the launch's words win."""
        dropped = ("GIT_DIR", "GIT_CONFIG_COUNT", "WINDLASS_CRASH_AT", "PYTHONPATH", "AWS_SECRET_ACCESS_KEY", "OLDPWD")
        kept = ("GIT_SSH_COMMAND", "LC_TIME", "HTTPS_PROXY", "no_proxy", "XDG_DATA_HOME", "NAMED")
        for name in (*dropped, *kept, "PLAIN"):
            monkeypatch.setenv(name, "from-daemon")

        async def story(stage: Stage) -> None:
            launch = stage.launch("r1", "env", PLAIN="from-launch", GIT_DIR="chosen")
            identity = await stage.port.start(replace(launch, keeps=("NAMED",)))
            assert await stage.ended("r1", identity) == 0
            got = dict(line.split("=", 1) for line in stage.said("r1").splitlines() if "=" in line)
            assert got["GIT_DIR"] == "chosen"
            assert got["PLAIN"] == "from-launch"
            assert {got[name] for name in kept} == {"from-daemon"}
            assert not set(dropped[1:]) & set(got)

        play(tmp_path, story)


class TestOurselves:
    def test_a_program_finds_windlass_where_the_path_has_none(self, tmp_path: Path) -> None:
        """Agents are told to use it. The folder comes last and has nothing else, so no other program is found there."""

        async def story(stage: Stage) -> None:
            for run in ("r1", "r2"):
                identity = await stage.start(run, "windlass --version && echo $PATH", PATH="/usr/bin:/bin")
                assert await stage.ended(run, identity) == 0, stage.said(run)
                assert stage.said(run).splitlines()[-1] == f"/usr/bin:/bin:{tmp_path}/commands"
            assert [path.name for path in (tmp_path / "commands").iterdir()] == ["windlass"]

        play(tmp_path, story)

    def test_one_that_is_on_the_path_is_the_one(self, tmp_path: Path) -> None:
        """The PATH stays as it is."""
        (tmp_path / "windlass").write_text("#!/bin/sh\n")
        (tmp_path / "windlass").chmod(0o755)

        async def story(stage: Stage) -> None:
            identity = await stage.start("r1", "echo $PATH", PATH=f"/usr/bin:/bin:{tmp_path}")
            assert await stage.ended("r1", identity) == 0
            assert stage.said("r1") == f"/usr/bin:/bin:{tmp_path}\n"

        play(tmp_path, story)

"""Real programs in real sandboxes."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from process_stage import Stage, play, until

from windlass.core.errors import Unavailable
from windlass.core.ports.processes import Launch
from windlass.core.runs.sandbox import Sandbox
from windlass.process.caller_run import CallerTrace
from windlass.process.detached import DetachedProcesses
from windlass.process.sandbox.bubblewrap import Bubblewrap

pytestmark = pytest.mark.skipif(bool(Bubblewrap().keeper().problem), reason="bubblewrap does not work here")


def confined(stage: Stage, run: str, script: str, **terms: object) -> Launch:
    """A shell script in a sandbox in which it may write to `work`, and no more."""
    work = stage.path / "work"
    work.mkdir(exist_ok=True)
    sandbox = replace(Sandbox(own=str(stage.path / "own"), writable=(str(work),)), **terms)  # type: ignore[arg-type]  # the fields of a sandbox
    return replace(stage.launch(run, "sh", "-c", script), cwd=str(work), sandbox=sandbox)


async def told(stage: Stage, run: str, script: str, *, code: int = 0, **terms: object) -> str:
    """What a confined script says until its end."""
    identity = await stage.port.start(confined(stage, run, script, **terms))
    assert await stage.ended(run, identity) == code, stage.said(run)
    return stage.said(run)


class TestPlaces:
    def test_the_home_is_the_agents_own_and_kept(self, tmp_path: Path, own_home: Path) -> None:
        """What the user has there can't be seen or changed; what the agent leaves there is there in its next run."""
        home = own_home / "home"
        (home / ".ssh").mkdir()
        (home / ".ssh/id").write_text("key")

        async def story(stage: Stage) -> None:
            assert (await told(stage, "r1", "ls -A ~; echo kept > ~/.bashrc; echo $HOME")).split() == [str(home)]
            assert (await told(stage, "r2", "cat ~/.bashrc; ls -A ~")).split() == ["kept", ".bashrc"]
            assert not (home / ".bashrc").exists()

        play(tmp_path, story)

    def test_windlass_is_found_and_nothing_beside_it(self, tmp_path: Path) -> None:
        """Where the PATH has none, the folder with it is shown, of a home that is hidden."""
        (tmp_path / "token").write_text("hush")

        async def story(stage: Stage) -> None:
            script = f"windlass --version >&2 && ls {tmp_path}"
            launch = confined(stage, "r1", script, hidden=(str(tmp_path),))
            launch = replace(launch, environment={**launch.environment, "PATH": "/usr/bin:/bin"})
            identity = await stage.port.start(launch)
            assert await stage.ended("r1", identity) == 0, stage.said("r1")
            assert stage.said("r1").splitlines()[1:] == ["commands", "work"]

        play(tmp_path, story)

    def test_only_what_is_writable_is_written(self, tmp_path: Path) -> None:
        """The rest of the machine can be read, its temporary folders are empty and private."""
        hidden = tmp_path / "hidden"
        hidden.mkdir()
        (hidden / "secret").write_text("hush")
        (tmp_path / "shown").write_text("seen\n")
        (tmp_path / "beside").write_text("not for it")

        async def story(stage: Stage) -> None:
            script = (
                f"echo mine > file; cat {tmp_path}/shown; test -e {hidden}/secret || echo hidden; "
                f"touch {hidden}/x 2>&- || echo closed; touch /usr/x 2>&- || echo read-only; "
                f"echo x > /tmp/x && cat /tmp/x; test -e {tmp_path}/beside || echo empty; pwd"
            )
            said = await told(stage, "r1", script, hidden=(str(hidden),), readable=(str(tmp_path / "shown"),))
            words = ["seen", "hidden", "closed", "read-only", "x", "empty", str(tmp_path / "work")]
            assert said.splitlines() == words
            assert (tmp_path / "work/file").read_text() == "mine\n"

        play(tmp_path, story)

    def test_a_link_shows_nothing_outside_the_folder_that_it_is_in(self, tmp_path: Path, own_home: Path) -> None:
        """What is shown of the user's checkout must be in it: a repository may bring links to anywhere."""
        key, checkout = own_home / "home/.ssh", tmp_path / "checkout"
        key.mkdir()
        (key / "id").write_text("hush")
        (checkout / "modules").mkdir(parents=True)
        (checkout / "modules/lib").write_text("seen")
        (checkout / "keys").symlink_to(key)

        async def story(stage: Stage) -> None:
            readable = (str(checkout / "modules"), str(checkout / "keys"))
            script = f"cat {checkout}/modules/lib; cat {checkout}/keys/id {key}/id 2>&- || echo hidden"
            assert await told(stage, "r1", script, hidden=(str(checkout),), readable=readable) == "seenhidden\n"

        play(tmp_path, story)

    def test_root_cannot_change_the_kernels_settings(self, tmp_path: Path) -> None:
        """Without any capability, root could still write some of /proc, and so run a program outside."""

        async def story(stage: Stage) -> None:
            script = "(: >> /proc/sys/kernel/core_pattern); grep CapEff /proc/self/status"
            said = await told(stage, "r1", script)
            assert "core_pattern: Read-only" in said or "core_pattern: Permission denied" in said
            assert "CapEff:\t0000000000000000" in said

        play(tmp_path, story)

    def test_tools_below_the_home_work(self, tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A PATH folder in the home is shown with its tool, also through links; tokens beside it are not."""
        home = own_home / "home"
        tool, local = home / ".tool/versions/1.0", home / ".local"
        for each in (tool / "bin", tool / "lib", local / "bin", local / "share/app", home / ".cargo/bin"):
            each.mkdir(parents=True)
        (tool / "lib/words").write_text("from the library\n")
        for file, text in (
            (tool / "bin/tool", f"cat {tool}/lib/words"),
            (local / "share/app/program", "echo linked"),
            (home / ".cargo/bin/crate", "echo crate"),
        ):
            file.write_text(f"#!/bin/sh\n{text}\n")
            file.chmod(0o755)
        (local / "bin/app").symlink_to(local / "share/app/program")
        (home / ".cargo/credentials.toml").write_text("token")
        (local / "share/keyring").write_text("token")
        folders = f"{tool}/bin:{local}/bin:{home}/.cargo/bin"
        monkeypatch.setenv("PATH", f"{folders}:{os.environ['PATH']}")

        async def story(stage: Stage) -> None:
            script = "tool; app; crate; ls ~/.cargo ~/.local/share; touch ~/.local/bin/evil || echo read-only"
            said = await told(stage, "r1", script)
            assert said.startswith("from the library\nlinked\ncrate\n")
            assert "credentials" not in said
            assert "keyring" not in said
            assert said.endswith("read-only\n")

        play(tmp_path, story)

    def test_a_version_manager_chooses_as_it_does_outside(
        self, tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its shims read the version that a person has chosen; or else a check would run with another Python."""
        shims = own_home / "home/.manager/shims"
        shims.mkdir(parents=True)
        (shims / "snake").write_text("#!/bin/sh\ncat ~/.manager/version\n")
        (shims / "snake").chmod(0o755)
        (shims.parent / "version").write_text("3.11.7\n")
        monkeypatch.setenv("PATH", f"{shims}:{os.environ['PATH']}")

        async def story(stage: Stage) -> None:
            assert await told(stage, "r1", "snake") == "3.11.7\n"

        play(tmp_path, story)

    def test_the_network_can_be_left_out(self, tmp_path: Path) -> None:
        """Then there is a loopback of its own, and nothing else."""

        async def story(stage: Stage) -> None:
            script = "tail -n +3 /proc/net/dev | cut -d: -f1"
            assert (await told(stage, "r1", script, network=False)).split() == ["lo"]

        play(tmp_path, story)


class TestProtected:
    def test_settings_are_copies_of_its_own(self, tmp_path: Path, own_home: Path) -> None:
        """It can change them for itself, by any means, and finds the user's again in its next run."""
        home = own_home / "home"
        (home / ".app").mkdir()
        (home / ".app/settings.json").write_text("{}")

        async def story(stage: Stage) -> None:
            protected = (".app/settings.json", ".app/hooks.json")
            script = (
                "cd ~/.app; cat *; echo evil > new; mv new settings.json; echo evil > hooks.json; cat settings.json"
            )
            assert await told(stage, "r1", script, protected=protected) == "{}evil\n"
            assert await told(stage, "r2", "cat ~/.app/*", protected=protected) == "{}"
            assert [path.name for path in (home / ".app").iterdir()] == ["settings.json"]
            assert (home / ".app/settings.json").read_text() == "{}"

        play(tmp_path, story)

    def test_in_a_shared_folder_nobody_can_change_or_make_them(self, tmp_path: Path, own_home: Path) -> None:
        """Neither those that are there nor those that are not yet: the next session outside would obey them."""
        shared = own_home / "home/.app"
        shared.mkdir()
        (shared / "settings.json").write_text("{}")

        async def story(stage: Stage) -> None:
            script = (
                "cd ~/.app; echo kept > session; for each in settings.json hooks.json; do "
                "(echo evil > $each) || echo no; rm -f $each || echo no; "
                "echo evil > new; mv -f new $each || echo no; done"
            )
            protected = (".app/settings.json", ".app/hooks.json")
            said = await told(stage, "r1", script, writable=(str(tmp_path / "work"), ".app"), protected=protected)
            assert said.split().count("no") == 6
            assert (shared / "session").read_text() == "kept\n"
            assert (shared / "settings.json").read_text() == "{}"
            assert (shared / "hooks.json").read_text() == "{}\n"

        play(tmp_path, story)

    def test_a_folder_that_a_variable_names_is_the_agents_own(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Outside the home too; of the user's own, only what is named is shared."""
        account = tmp_path / "account"
        account.mkdir()
        (account / "login").write_text("mine")
        (account / "history").write_text("private")
        monkeypatch.setenv("APP_HOME", str(account))

        async def story(stage: Stage) -> None:
            work = str(tmp_path / "work")
            launch = confined(
                stage,
                "r1",
                'cd "$APP_HOME"; cat login; ls; echo new > login; echo x > x',
                writable=(work, "$APP_HOME/login"),
            )
            identity = await stage.port.start(replace(launch, keeps=("APP_HOME",)))
            assert await stage.ended("r1", identity) == 0, stage.said("r1")
            assert stage.said("r1") == "minelogin\n"
            assert (account / "login").read_text() == "new\n"
            assert not (account / "x").exists()

        play(tmp_path, story)

    def test_links_that_an_agent_planted_are_not_followed(self, tmp_path: Path, own_home: Path) -> None:
        """What is put into its home at the next start goes there, and not where a link leads."""
        home, victim = own_home / "home", tmp_path / "victim"
        victim.mkdir()
        (home / ".app").mkdir()
        (home / ".app/settings.json").write_text("{}")
        (home / "plain.json").write_text("{}")

        async def story(stage: Stage) -> None:
            protected = (".app/settings.json", "plain.json")
            plant = f"ln -s {victim} ~/.app; ln -s {victim}/plain ~/plain.json"
            await told(stage, "r1", plant)
            assert await told(stage, "r2", "cat ~/.app/settings.json ~/plain.json", protected=protected) == "{}{}"
            assert list(victim.iterdir()) == []

        play(tmp_path, story)


class TestLife:
    @pytest.mark.parametrize(
        ("script", "code"), [("true", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143)]
    )
    def test_the_code_is_the_programs(self, tmp_path: Path, script: str, code: int) -> None:
        """Bubblewrap hands on how its program ended."""

        async def story(stage: Stage) -> None:
            assert await told(stage, "r1", script, code=code) == ""

        play(tmp_path, story)

    def test_it_is_asked_to_end_before_it_is_killed(self, tmp_path: Path) -> None:
        """Bubblewrap itself is left alone, or else it would take the program with it at once."""

        async def story(stage: Stage) -> None:
            script = "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.05; done"
            identity = await stage.port.start(confined(stage, "r1", script))
            await until(lambda: "up" in stage.said("r1"))
            await stage.port.stop("r1", identity, grace=10)
            assert [part for part in stage.said("r1").split() if part != "Terminated"] == ["up", "bye"]
            assert await stage.port.exit_code("r1") == 3

        play(tmp_path, story)

    def test_all_of_it_is_ended(self, tmp_path: Path) -> None:
        """What does not listen, has a session of its own or no environment goes as well; the code is still told."""

        async def story(stage: Stage) -> None:
            away = '(setsid env -i sleep "$NAP" &); setsid sleep "$NAP" &'
            script = f"trap '' TERM; {away} while :; do sleep \"$NAP\"; done"
            identity = await stage.port.start(confined(stage, "r1", script))
            await until(lambda: len(stage.napping()) >= 3)
            await stage.port.stop("r1", identity, grace=0.3)
            assert stage.napping() == []
            assert await stage.port.exit_code("r1") == 137

        play(tmp_path, story)

    def test_a_later_daemon_finds_it(self, tmp_path: Path) -> None:
        """It lives on without us, is known by its stamp, and its end is told."""

        async def story(stage: Stage) -> None:
            identity = await stage.port.start(confined(stage, "r1", "until [ -e go ]; do sleep 0.05; done; exit 5"))
            stage.port.close()
            stage.port = DetachedProcesses(stage.path / "runs", stage.home, stage.spawner)
            assert await stage.port.find("r1") == identity
            (stage.path / "work/go").touch()
            assert await stage.ended("r1", identity) == 5

        play(tmp_path, story)

    def test_it_goes_with_its_shim(self, tmp_path: Path) -> None:
        """Whoever kills the shim alone leaves nothing behind."""

        async def story(stage: Stage) -> None:
            identity = await stage.port.start(confined(stage, "r1", 'exec sleep "$NAP"'))
            await until(stage.napping)
            os.kill(identity.pid, signal.SIGKILL)
            await until(lambda: not stage.stamped())

        play(tmp_path, story)

    def test_an_orphan_without_environment_is_traced_to_its_run(self, tmp_path: Path) -> None:
        """Its ancestors in the sandbox lead to the shim."""

        async def story(stage: Stage) -> None:
            script = '(setsid env -i sleep "$NAP" &); sleep 600'
            identity = await stage.port.start(confined(stage, "r1", script))
            await until(stage.napping)
            [orphan] = stage.napping()
            assert CallerTrace(stage.port.leaders).trace(orphan.pid, lambda: False) == "r1"
            await stage.port.stop("r1", identity, grace=5)

        play(tmp_path, story)

    def test_it_sees_and_signals_no_process_but_its_own(self, tmp_path: Path) -> None:
        """Our pid means nothing to it."""

        async def story(stage: Stage) -> None:
            script = f"ls -d /proc/[0-9]* | wc -l; kill -0 {os.getpid()} || echo nobody"
            lines = (await told(stage, "r1", script)).splitlines()
            assert int(lines[0]) < 6
            assert lines[-1] == "nobody"

        play(tmp_path, story)


def test_without_bubblewrap_nothing_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is to be confined is refused, with how to install what is missing."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "sh").symlink_to("/bin/sh")
    monkeypatch.setenv("PATH", str(programs))

    async def story(stage: Stage) -> None:
        with pytest.raises(Unavailable, match="not installed") as refusal:
            await stage.port.start(confined(stage, "r1", "echo up"))
        assert "Install bubblewrap" in refusal.value.hint
        assert (await stage.port.sandbox_keeper()).problem

    play(tmp_path, story)

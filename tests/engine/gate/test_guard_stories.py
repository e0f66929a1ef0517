"""Nobody judges their own work: what decides how changes are tested waits, or is tested with main's copy, too."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from stage import Stage, commit, play

from windlass.core.errors import NotAllowed
from windlass.core.nouns.change import Change, ChangeState, Hold
from windlass.core.settings.schema import Guarding

Git = Callable[..., str]

STRICT = "#!/bin/sh\necho \"Ran $(ls | grep -c '^test_') tests in 0.1s\"; ! ls | grep -q bad\n"
LENIENT = '#!/bin/sh\necho "Ran 99 tests in 0.1s"\n'
CHECK = "cd tools && sh -c 'cd .. && sh tools/run.sh'"


def prepared(repo: Path, home: Path, *, guard: Guarding = Guarding.HOLD) -> Stage:
    """A repository with two tests and a script that runs them, behind a shell's back."""
    (repo / "tools").mkdir()
    for name, text in {"tools/run.sh": STRICT, "test_one": "", "test_two": "", "app.py": "1\n"}.items():
        commit(repo, name, text or name, dict(os.environ))
    stage = Stage(repo, home, checks=CHECK)
    gate = replace(stage.settings.settings.gate, guard=guard)
    stage.settings.settings = replace(stage.settings.settings, gate=gate)
    return stage


async def brought(stage: Stage, files: Mapping[str, str | None]) -> Change:
    """What became of an agent's change of these files; None removes one."""
    name = await begun(stage, files)
    await stage.signal(name)
    await stage.exit(name)
    await stage.move()
    return await stage.change_of(name)


async def begun(stage: Stage, files: Mapping[str, str | None]) -> str:
    """An agent that has committed these files, and is still at work."""
    name = await stage.order()
    await stage.move()
    tree = await stage.worktree(name)
    for file in (file for file, text in files.items() if text is None):
        (tree / file).unlink()
    written = {file: text for file, text in files.items() if text is not None} or {"note": name}
    for file, text in written.items():
        await stage.commit(name, file, text)
    return name


class TestHold:
    def test_the_script_behind_a_shell_waits_and_lands_when_released(self, repo: Path, tmp_path: Path) -> None:
        """No check has run before a person looked; then it is tested as any other."""

        async def story() -> None:
            stage = prepared(repo, tmp_path / "home")
            change = await brought(stage, {"tools/run.sh": LENIENT, "bad": "x"})
            assert (change.state, change.hold, change.checks) == (ChangeState.HELD, Hold.GUARD, ())
            assert change.reason == "it changes tools/run.sh"
            await stage.engine.queue.release(change.id)
            await stage.move()
            assert (await stage.engine.changes.get(change.id)).landing is not None

        play(story)

    def test_an_agent_cannot_have_it_run_before(self, repo: Path, tmp_path: Path) -> None:
        """Its own check meets the same guard as the gate's."""

        async def story() -> None:
            stage = prepared(repo, tmp_path / "home")
            name = await begun(stage, {"tools/run.sh": f"{LENIENT}touch {tmp_path}/ran\n"})
            with pytest.raises(NotAllowed, match=r"tools/run\.sh, which decides how changes are tested"):
                await stage.engine.rehearsals.check((await stage.run_of(name)).id)
            assert not (tmp_path / "ran").exists()

        play(story)

    def test_a_dependency_lands_and_a_script_does_not(self, repo: Path, tmp_path: Path) -> None:
        """Of package.json only the scripts are guarded."""

        async def story() -> None:
            stage = prepared(repo, tmp_path / "home")
            commit(repo, "package.json", '{"scripts": {"test": "jest"}}', dict(os.environ))
            first = await brought(stage, {"package.json": '{"scripts": {"test": "jest"}, "dependencies": {"a": "1"}}'})
            second = await brought(stage, {"package.json": '{"scripts": {"test": "true"}}'})
            assert (first.state, second.state) == (ChangeState.LANDED, ChangeState.HELD)

        play(story)

    def test_what_a_link_in_main_leads_to_waits(self, repo: Path, git: Git, tmp_path: Path) -> None:
        """The command names the link; the script behind it is the judge."""

        async def story() -> None:
            stage = prepared(repo, tmp_path / "home")
            git("mv", "tools/run.sh", "tools/real.sh", cwd=repo)
            (repo / "tools/run.sh").symlink_to("real.sh")
            git("add", "-A", cwd=repo)
            git("commit", "-qm", "Link", cwd=repo)
            change = await brought(stage, {"tools/real.sh": LENIENT, "bad": "x"})
            assert (change.state, change.reason) == (ChangeState.HELD, "it changes tools/real.sh")

        play(story)

    def test_what_is_too_long_to_be_read_waits(self, repo: Path, tmp_path: Path) -> None:
        """Its tables for tests may be anywhere in it."""

        async def story() -> None:
            stage = prepared(repo, tmp_path / "home")
            change = await brought(stage, {"setup.cfg": f"# {'x' * (17 << 20)}\n[tool:pytest]\naddopts = -k nothing\n"})
            assert (change.state, change.hold) == (ChangeState.HELD, Hold.GUARD)

        play(story)


class TestTwice:
    def test_a_judge_that_main_contradicts_is_refused(self, repo: Path, git: Git, tmp_path: Path) -> None:
        """Its own script lets the change pass, main's does not; the same for the agent's own check."""

        async def story() -> None:
            stage = prepared(repo, tmp_path / "home", guard=Guarding.TWICE)
            before = git("rev-parse", "main", cwd=repo)
            name = await begun(stage, {"tools/run.sh": LENIENT, "bad": "x"})
            result, _ = await stage.engine.rehearsals.check((await stage.run_of(name)).id)
            assert not result.passed
            await stage.signal(name)
            await stage.exit(name)
            await stage.move()
            change = await stage.change_of(name)
            assert change.state is ChangeState.REJECTED
            assert change.reason == "exit code 1, with main's tools/run.sh"
            assert git("rev-parse", "main", cwd=repo) == before

        play(story)

    def test_main_s_judge_finds_nothing_that_the_change_s_own_has_left(self, repo: Path, tmp_path: Path) -> None:
        """Main's goes first: what the other would leave for it is not there yet."""

        async def story() -> None:
            stage = prepared(repo, tmp_path / "home", guard=Guarding.TWICE)
            left = tmp_path / "left"
            commit(repo, "tools/run.sh", f"test -e {left} || ! ls | grep -q bad\n", dict(os.environ))
            change = await brought(stage, {"tools/run.sh": f"touch {left}\n", "bad": "x"})
            assert change.state is ChangeState.REJECTED
            assert change.reason == "exit code 1, with main's tools/run.sh"
            assert not left.exists()

        play(story)

    def test_what_passes_with_both_lands(self, repo: Path, git: Git, tmp_path: Path) -> None:
        """The very tree with its own script; a new judge is tested without."""

        async def story() -> None:
            stage = prepared(repo, tmp_path / "home", guard=Guarding.TWICE)
            better = STRICT + "test -e app.py\n"
            change = await brought(stage, {"tools/run.sh": better, "Makefile": "all:\n"})
            assert change.landing is not None
            assert git("show", "main:tools/run.sh", cwd=repo) == better.strip()
            assert change.checks[-1].tree == git("rev-parse", "main^{tree}", cwd=repo)

        play(story)

    def test_main_s_copy_comes_back_where_a_change_removes_it(self, repo: Path, tmp_path: Path) -> None:
        """A judge that is gone can't be why broken code passes."""

        async def story() -> None:
            stage = prepared(repo, tmp_path / "home", guard=Guarding.TWICE)
            commit(repo, "conftest.py", "must be kept\n", dict(os.environ))
            commit(repo, "tools/run.sh", "test ! -e conftest.py || ! ls | grep -q bad\n", dict(os.environ))
            change = await brought(stage, {"conftest.py": None, "bad": "x"})
            assert change.state is ChangeState.REJECTED
            assert change.reason == "exit code 1, with main's conftest.py"

        play(story)

    def test_its_own_copy_is_tried_first(self, repo: Path, tmp_path: Path) -> None:
        """One that fails with its own script is refused for that, and no word is said of main's."""

        async def story() -> None:
            stage = prepared(repo, tmp_path / "home", guard=Guarding.TWICE)
            change = await brought(stage, {"tools/run.sh": "exit 3\n"})
            assert (change.state, change.reason) == (ChangeState.REJECTED, "exit code 3")

        play(story)

    @pytest.mark.parametrize("folder", [":(top)x", "*", "-x", "a b\tc"])
    def test_a_judge_in_an_odd_folder_is_mixed_in_all_the_same(self, repo: Path, tmp_path: Path, folder: str) -> None:
        """An agent names folders as it likes: for git they are names, and nothing else."""

        async def story() -> None:
            stage = prepared(repo, tmp_path / "home", guard=Guarding.TWICE)
            (repo / folder).mkdir()
            commit(repo, f"{folder}/conftest.py", "strict\n", dict(os.environ))
            commit(repo, "tools/run.sh", "! ls | grep -q bad || grep -q lenient ./*/conftest.py\n", dict(os.environ))
            change = await brought(stage, {f"{folder}/conftest.py": "lenient\n", "bad": "x"})
            assert change.state is ChangeState.REJECTED
            assert change.reason.startswith("exit code 1, with main's ")

        play(story)

    def test_the_one_of_several_that_main_contradicts_is_found(self, repo: Path, tmp_path: Path) -> None:
        """They are tested together with main's copies; the others land without it."""

        async def story() -> None:
            stage = prepared(repo, tmp_path / "home", guard=Guarding.TWICE)
            await stage.engine.queue.pause(str(repo), "")
            works: list[Mapping[str, str | None]] = [{"a": "1"}, {"tools/run.sh": LENIENT, "bad": "x"}, {"b": "1"}]
            names = [await begun(stage, files) for files in works]
            for name in names:
                await stage.signal(name)
                await stage.exit(name)
            await stage.move()
            await stage.engine.queue.resume(str(repo))
            await stage.move()
            changes = [await stage.change_of(name) for name in names]
            states = [change.state for change in changes]
            assert states == [ChangeState.LANDED, ChangeState.REJECTED, ChangeState.LANDED]
            assert changes[1].reason == "exit code 1, with main's tools/run.sh"

        play(story)

    @pytest.mark.parametrize("file", [".windlass/config.toml", ".github/x.yml", "LICENSE"])
    def test_what_no_test_can_judge_waits_all_the_same(self, repo: Path, tmp_path: Path, file: str) -> None:
        """Settings, what other machines do, and what the person named."""

        async def story() -> None:
            stage = prepared(repo, tmp_path / "home", guard=Guarding.TWICE)
            gate = replace(stage.settings.settings.gate, guarded=("LICENSE",))
            stage.settings.settings = replace(stage.settings.settings, gate=gate)
            name = await stage.order()
            await stage.move()
            (await stage.worktree(name) / file).parent.mkdir(exist_ok=True)
            await stage.finish(name, file, "# x\n")
            await stage.move()
            assert (await stage.change_of(name)).hold is Hold.GUARD

        play(story)


class TestFewerTests:
    def test_a_deleted_test_is_no_quiet_landing(self, repo: Path, tmp_path: Path) -> None:
        """Not even the first landing of all: main's tests are counted before. Released, it lands."""

        async def story() -> None:
            stage = prepared(repo, tmp_path / "home")
            change = await brought(stage, {"test_one": None})
            assert (change.state, change.hold) == (ChangeState.HELD, Hold.GUARD)
            assert change.reason == "1 tests run with it, and there were 2"
            await stage.engine.queue.release(change.id)
            await stage.move()
            assert (await stage.engine.changes.get(change.id)).landing is not None

        play(story)

    def test_a_main_that_is_green_without_a_count_is_counted_first(self, repo: Path, tmp_path: Path) -> None:
        """Its last landing was tested by a Windlass that did not count."""

        async def story() -> None:
            stage = prepared(repo, tmp_path / "home")
            landed = await brought(stage, {"a": "1"})
            older = replace(landed, checks=tuple(replace(check, tests=None) for check in landed.checks))
            await stage.store.write(lambda store: store.record("change.landed", older.id, older))
            await stage.restart()
            stage.clock.time += 60
            change = await brought(stage, {"test_one": None})
            assert (change.state, change.reason) == (ChangeState.HELD, "1 tests run with it, and there were 2")

        play(story)

    def test_checks_that_count_nothing_are_not_run_again_for_it(self, repo: Path, tmp_path: Path) -> None:
        """Main is tested at most once for each tip, and changes of tests land."""

        async def story() -> None:
            stage = prepared(repo, tmp_path / "home")
            commit(repo, "tools/run.sh", "echo ran >> {log}\n".format(log=tmp_path / "log"), dict(os.environ))
            for name in ("test_three", "test_four"):
                assert (await brought(stage, {name: "x"})).landing is not None
            assert (tmp_path / "log").read_text().count("ran") == 3

        play(story)

    def test_of_several_only_the_one_that_deletes_is_held(self, repo: Path, tmp_path: Path) -> None:
        """The others land without it."""

        async def story() -> None:
            stage = prepared(repo, tmp_path / "home")
            await stage.engine.queue.pause(str(repo), "")
            names = [await begun(stage, files) for files in ({"a": "1"}, {"test_one": None}, {"b": "1"})]
            for name in names:
                await stage.signal(name)
                await stage.exit(name)
            await stage.move()
            await stage.engine.queue.resume(str(repo))
            await stage.move()
            states = [(await stage.change_of(name)).state for name in names]
            assert states == [ChangeState.LANDED, ChangeState.HELD, ChangeState.LANDED]

        play(story)

    def test_undoing_a_change_that_added_tests_lands(self, repo: Path, tmp_path: Path) -> None:
        """A person has asked for just that."""

        async def story() -> None:
            stage = prepared(repo, tmp_path / "home")
            added = await brought(stage, {"test_three": "x"})
            undoing = await stage.engine.changes.undo(added.id)
            await stage.move()
            assert (await stage.engine.changes.get(undoing.id)).landing is not None

        play(story)

"""Repositories that plant commands: in the person's own and in an agent's, nothing of it runs by the daemon's doing."""

from __future__ import annotations

from pathlib import Path

from e2e_stage import Stage, adds, lines, stage

HOOKS = (
    *("applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "prepare-commit-msg"),
    *("commit-msg", "post-commit", "pre-rebase", "post-checkout", "post-merge", "pre-push", "pre-receive", "update"),
    *("proc-receive", "post-receive", "post-update", "reference-transaction", "push-to-checkout", "pre-auto-gc"),
    *("post-rewrite", "sendemail-validate", "fsmonitor-watchman", "post-index-change"),
)
SETTINGS = tuple(
    """
    core.fsmonitor core.sshCommand core.editor core.pager core.askPass core.gitProxy core.alternateRefsCommand
    diff.external diff.evil.command diff.evil.textconv merge.evil.driver gpg.program sequence.editor
    uploadpack.packObjectsHook credential.helper pager.log pager.diff alias.status interactive.diffFilter
    remote.origin.uploadpack remote.origin.receivepack submodule.x.update man.viewer web.browser browser.evil.cmd
    tar.evil.command
    """.split()
)
"""Settings of git's that name a command."""
FILTERS = ("filter.evil.clean", "filter.evil.smudge")
"""Those that git needs to read and write the files of a checkout."""
ATTRIBUTES = "* filter=evil diff=evil merge=evil\n"


def trap(house: Stage) -> tuple[Path, Path]:
    """A program that tells when it was run, and the file in which it tells."""
    canary, program = house.flag("canary"), house.flag("evil.sh")
    program.write_text(f'#!/bin/sh\necho "$0 $* in $PWD" >> "{canary}"\ncat\n')
    program.chmod(0o755)
    return canary, program


def plant(house: Stage, program: Path, folder: Path, *, settings: tuple[str, ...] = SETTINGS) -> None:
    """Hooks, settings and attributes that all lead to a program."""
    (folder / ".git/hooks").mkdir(exist_ok=True)
    for hook in HOOKS:
        (folder / ".git/hooks" / hook).unlink(missing_ok=True)
        (folder / ".git/hooks" / hook).symlink_to(program)
    for setting in settings:
        value = f"!{program}" if setting.startswith(("alias", "submodule")) else str(program)
        house.git("config", setting, value, cwd=folder)
    house.git("config", "commit.gpgSign", "true", cwd=folder)
    (folder / ".git/info").mkdir(exist_ok=True)
    (folder / ".git/info/attributes").write_text(ATTRIBUTES)


def everything(house: Stage) -> None:
    """All that makes the daemon use git: work that lands, conflicts, fails, is shown, saved, restored and undone."""
    name = house.land("Add b", lines(adds("b.txt"), "echo left > left.txt"))["agent"]["name"]
    house.event("agent.retired", name)
    house.wl("diff", name)
    house.wl("receipt", "c1")
    house.wl("rescue", "show", f"{name}/1", "--json")
    house.wl("rescue", "restore", f"{name}/1", "--branch", "back")
    house.wl("rescue", "restore", f"{name}/1", "--to", "../back")
    house.wl("undo", "c1", "--wait")
    house.wl("doctor", code=None)
    house.wl("doctor", "--check")
    house.wl("list", "--here")


class TestThePersonsRepository:
    def test_that_plants_commands_has_none_of_them_run(self) -> None:
        """It was unpacked from somewhere: hooks, monitors, drivers and helpers in its settings stay unused.

        Filters are the exception, where main is checked out: there git itself moves the person's own files.
        """
        with stage(settings="[limits]\nreminders = 0\n") as house:
            canary, program = trap(house)
            plant(house, program, house.repo)
            house.wl("daemon", "start")
            canary.unlink(missing_ok=True)  # the planting itself ran git
            everything(house)
            house.git("config", "--unset", "core.fsmonitor")
            assert not canary.exists(), canary.read_text()

    def test_that_plants_them_for_a_main_that_is_not_checked_out_has_none_of_them_run(self) -> None:
        """The same where only the ref moves; here not even a filter has a reason to run."""
        with stage(settings="[limits]\nreminders = 0\n") as house:
            canary, program = trap(house)
            house.git("checkout", "-q", "-b", "side")
            plant(house, program, house.repo, settings=(*SETTINGS, *FILTERS))
            house.wl("daemon", "start")
            canary.unlink(missing_ok=True)
            house.land("Add b", adds("b.txt"))
            house.wl("doctor", "--check")
            assert not canary.exists(), canary.read_text()

    def test_that_is_trapped_would_tell(self, house: Stage) -> None:
        """Git that is run the usual way in that repository does run them: the tests above can fail."""
        canary, program = trap(house)
        plant(house, program, house.repo)
        canary.unlink(missing_ok=True)
        house.git("status")
        assert canary.exists()


class TestAnAgentsWorktree:
    def test_that_plants_commands_has_none_of_them_run_by_the_daemon(self) -> None:
        """Hooks, settings, attributes and a forged `.git`: looked at, taken in, landed, saved and removed unused."""
        with stage(settings="[limits]\nreminders = 0\n") as house:
            canary, program = trap(house)
            commands = [
                "mkdir -p .git/hooks .git/info",
                *(f"ln -sf {program} .git/hooks/{hook}" for hook in HOOKS),
                "printf x > b.txt; git add -A; git commit -qm b; rm .git/hooks/*",
                *(f"git config {each} '{program}'" for each in (*SETTINGS, *FILTERS)),
                *(f"ln -sf {program} .git/hooks/{hook}" for hook in HOOKS),
                f"printf '{ATTRIBUTES.strip()}\\n' > .git/info/attributes",
                "printf '[core]\\n\\tworktree = /\\n\\thooksPath = hooks\\n' >> .git/config",
                "printf x > left.txt",
                f"rm -f {canary}",
            ]
            name = house.work("Plant", "; ".join(commands))
            house.event("agent.retired", name)
            house.wl("diff", name)
            house.wl("rescue", "show", f"{name}/1", "--json")
            house.wl("doctor", "--check")
            assert (house.repo / "b.txt").read_text() == "x"
            assert not canary.exists(), canary.read_text()

    def test_that_brings_submodules_is_refused(self) -> None:
        """A `.gitmodules` that would run something is not even taken in; the agent's page says why."""
        with stage(settings="[limits]\nreminders = 0\n") as house:
            canary = house.flag("canary")
            text = f'[submodule "sub"]\npath = sub\nurl = ext::sh -c touch% {canary}\nupdate = !touch {canary}\n'
            house.flag("modules").write_text(text)
            nested = lines("git init -q sub", "git -C sub commit -q --allow-empty -m x")
            modules = f"cp {house.flag('modules')} .gitmodules"  # which the agent's own git would not add
            index = "git update-index --add --cacheinfo 100644,$(git hash-object -w .gitmodules),.gitmodules"
            commit = "git update-ref HEAD $(git commit-tree -p HEAD -m sub $(git write-tree))"
            name = house.work("Bring one", lines(nested, "git add sub", modules, index, commit))
            house.event("task.failed")
            assert "The commits are not sound" in str(house.agent(name)["runs"][0]["evidence"])
            assert not canary.exists()
            assert house.queue() == []

    def test_that_holds_a_repository_is_refused(self) -> None:
        """What is only named in a commit, and not in it, does not land."""
        with stage(settings="[limits]\nreturns = 0\n") as house:
            nested = lines("git init -q sub", "git -C sub commit -q --allow-empty -m x", "git add sub")
            house.work("Bring one", lines(nested, "git commit -qm sub"))
            house.event("change.held")
            assert "sub is a nested repository" in str(house.events())
            assert house.git("log", "-1", "--format=%s", "main") == "Begin"

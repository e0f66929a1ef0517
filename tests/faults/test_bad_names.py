"""Names, branches, ids and paths that are none: refused with a reason wherever they have a way in."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from e2e_stage import Stage, adds, stage
from input_stage import Desk, call

pytestmark = pytest.mark.xdist_group("bad names")

NAMES = ("../x", "-rf", "a/b", "x" * 300, "a\nb", "\0", "a\0b", "Quick-Otter", "ärger", ".", "..", "$(touch canary)")
BRANCHES = ("--upload-pack=touch canary", 'zzz";echo${IFS}hi;#', "work/x", "main\n", "-", "a..b", "@{-1}", "a\0b", "~")
PATHS = ("", "../x", "-rf", "a\0b", "x" * 5000, "/" + "x" * 5000, "/dev/zero", "/dev/null", "relative")


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    with stage() as house:
        yield Desk(house)


class TestNames:
    @pytest.mark.parametrize(
        "way", ["/agents/%s", "/agents/%s/logs", "/agents/%s/diff", "POST /agents/%s/stop", "POST /agents/%s/answer"]
    )
    def test_of_agents_are_refused_on_every_path(self, desk: Desk, way: str) -> None:
        """What is no name is no agent; a slash leads to no other page."""
        method, _, path = way.rpartition(" ")
        for name in NAMES:
            desk.refuses(method or "GET", path % quote(name, safe=""), numbers=(404,) if "/" in name else (400,))

    @pytest.mark.parametrize(
        "path", ["/tasks/%s", "/tasks/%s/wait", "/changes/%s", "/changes/%s/receipt", "/rescue/show?ref=%s"]
    )
    def test_of_tasks_changes_and_saved_work_are_refused_on_every_path(self, desk: Desk, path: str) -> None:
        """They are looked up as they are, and not found."""
        for name in (*NAMES, "refs/heads/main"):
            desk.refuses("GET", path % quote(name, safe=""), numbers=(400, 404))

    def test_of_providers_agent_files_and_settings_are_refused(self, desk: Desk) -> None:
        """None of them is a file's path or a key."""
        house = desk.house
        for name in NAMES:
            order = {"path": str(house.repo), "title": "Fix it", "provider": name, "options": {"command": "true"}}
            desk.refuses("POST", "/tasks", order, numbers=(400, 404))
            named = order | {"provider": "command", "agent": name}
            desk.refuses("POST", "/tasks", named, numbers=(400, 404))
            desk.refuses("POST", "/settings", {"path": str(house.repo), "key": name, "value": "1"})
            desk.refuses("POST", "/settings", {"path": str(house.repo), "key": f"limits.{name}", "value": "1"})

    def test_that_are_typed_are_refused(self, desk: Desk) -> None:
        """A shell can't type a NUL; everything else is a sentence and a code."""
        house = desk.house
        for words in (("show", "-rf"), ("logs", "../x"), ("answer", "Quick-Otter", "Yes"), ("undo", "a/b")):
            told = house.wl(*words, code=2)
            assert told.err.startswith("windlass: ")
            desk.is_sound()


class TestBranches:
    def test_to_land_on_are_refused(self, desk: Desk) -> None:
        """By request, by command and by setting; nothing is written."""
        house = desk.house
        for branch in BRANCHES:
            assert "branch" in desk.refuses("POST", "/projects", {"path": str(house.repo), "main": branch})
            if branch not in ('zzz";echo${IFS}hi;#', "work/x"):  # these could be branches, if anyone had them
                setting = {"path": str(house.repo), "key": "project.main", "value": branch}
                assert "project.main must be the name of a branch" in desk.refuses("POST", "/settings", setting)
        house.wl("init", "--yes", "--main", BRANCHES[0], code=2)
        house.wl("config", "set", "project.main", "--", BRANCHES[0], code=2)
        desk.is_sound()

    def test_to_restore_to_are_refused(self, desk: Desk) -> None:
        """A folder that is none, too."""
        for branch in (*BRANCHES, "refs/heads/x", "HEAD"):
            desk.refuses("POST", "/rescue/restore", {"ref": "1", "branch": branch}, numbers=(400, 404))
        for folder in PATHS[1:]:
            desk.refuses("POST", "/rescue/restore", {"ref": "1", "to": folder}, numbers=(400, 404))

    def test_in_a_settings_file_are_refused_by_name(self, desk: Desk) -> None:
        """A repository may bring any file: its branch, uuid and name are looked at before anything is registered."""
        house = desk.house
        file = house.repo / ".windlass/config.toml"
        file.parent.mkdir()
        wrong = {"main": "--upload-pack=x", "uuid": "../../x", "name": "x" * 300}
        try:
            for key, value in wrong.items():
                file.write_text(f'[project]\n{key} = "{value}"\n')
                told = house.wl("work", "Fix it", "--command", "true", code=2)
                assert f"{file}: project.{key} must be" in told.err
        finally:
            shutil.rmtree(file.parent)
        desk.is_sound()
        assert list((house.state / "hubs").iterdir()) == []

    def test_of_any_odd_name_that_git_allows_work_and_are_quoted(self) -> None:
        """A main branch that is a piece of shell is a name and nothing more, also in what an author is told to type."""
        odd = 'zzz";echo${IFS}hi;#'
        with stage() as house:
            house.git("branch", "-m", odd)
            go = house.flag("go")
            wait = json.dumps(house.waits_for(go))
            told = json.dumps(f"git merge 'origin/{odd}'")
            house.play(
                "Conflict",
                f"runs:\n- [{{run: {wait}}}, {{write: {{a.txt: mine}}}}, {{commit: Mine}}, done]\n"
                f"- [{{expect: {told}}}, {{error: Seen.}}]\n",
            )
            house.event("run.started")
            house.commit({"a.txt": "theirs\n"}, "Theirs")
            go.touch()
            house.event("task.failed")
            runs = house.agent(house.ask("/agents?all=1")["items"][0]["name"])["runs"]
            assert runs[-1]["reason"] == "Seen."
            house.land("Add b", adds("b.txt"))
            assert house.git("log", "-1", "--format=%s", odd) == "Land c2: Add b"
            house.wl("doctor", "--check")

    def test_that_an_agent_leaves_for_main_are_not_landed(self) -> None:
        """An agent that commits to a `main` of its own is told to put it onto its branch; nothing lands from there."""
        with stage(settings="[limits]\nreminders = 0\n") as house:
            name = house.work("Take main", f"git checkout -q -b main; {adds('x.txt')}; windlass agent complete x")
            house.event("task.failed")
            assert f"not work/{name}" in house.agent(name)["runs"][-1]["reason"]
            assert house.git("log", "-1", "--format=%s", "main") == "Begin"


class TestPaths:
    @pytest.mark.parametrize("way", ["/agents", "/queue", "/rescue", "/settings", "/projects/checks"])
    def test_in_a_query_are_refused(self, desk: Desk, way: str) -> None:
        """A path is absolute, and that of a folder in a repository."""
        for path in PATHS[1:]:
            desk.refuses("GET", f"{way}?path={quote(path, safe='')}", numbers=(400, 431))

    def test_in_a_body_are_refused(self, desk: Desk) -> None:
        """The daemon's own folder is no one's repository, and its own home neither."""
        house = desk.house
        for path in (*PATHS, str(house.state), "/", "/proc/self"):
            order = {"path": path, "title": "Fix it", "provider": "command", "options": {"command": "true"}}
            desk.refuses("POST", "/tasks", order)
            desk.refuses("POST", "/projects", {"path": path})
            if path:
                desk.refuses("POST", "/settings", {"path": path, "key": "limits.runs", "value": "3"})

    def test_to_doctor_are_findings(self, desk: Desk) -> None:
        """Whoever looks for what is wrong is told, whatever they stand in."""
        for path in PATHS:
            number, said = call(desk.house, "GET", f"/doctor?path={quote(path[:3000], safe='')}")
            assert number == 200, said
        desk.is_sound()


def test_titles_of_several_lines_or_with_a_nul_are_refused(desk: Desk) -> None:
    """Whatever breaks a line somewhere breaks it here; and each value must be a text."""
    house: Stage = desk.house
    for title in ("a\nb", "a\rb", "a\x0bb", "a\u2028b", "a\x85b", "a\0b", " ", "x" * 501, 5, None, ["a"], {"a": 1}):
        order = {"path": str(house.repo), "title": title, "provider": "command", "options": {"command": "true"}}
        desk.refuses("POST", "/tasks", order)
    assert Path(house.repo).is_dir()

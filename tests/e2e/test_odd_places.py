"""Odd places just work: branches, paths, clones and homes of any kind."""

from __future__ import annotations

from e2e_stage import Stage, adds, stage

BAD_INPUT = 2


class TestOddPlaces:
    def test_a_default_branch_of_any_name(self, house: Stage) -> None:
        """Whatever the person calls it, it is where changes land."""
        for number, main in enumerate(("trunk", "release/2.0", "größe"), start=1):
            house.repo = house.folder / f"repo-{number}"
            house.git("init", "-q", "-b", main, str(house.repo), cwd=house.folder)
            house.commit({"README.md": "# Mine\n"}, "Begin")
            house.land("Add b", adds("b.txt"))
            assert house.git("log", "-1", "--format=%s", main) == f"Land c{number}: Add b"
            assert (house.repo / "b.txt").exists()
            assert house.git("branch", "--list", "main") == ""

    def test_a_default_branch_that_is_renamed_is_asked_for(self, house: Stage) -> None:
        """Nobody guesses where changes land from now on; the words say how to tell, and then it goes on."""
        house.land("Add a", adds("a.txt"))
        house.git("branch", "-m", "trunk")
        said = house.wl("work", "Add b", "--command", adds("b.txt"), code=BAD_INPUT).err
        assert "has no branch 'main'" in said
        assert "windlass config set project.main" in said
        house.wl("config", "set", "project.main", "trunk")
        house.land("Add b", adds("b.txt"))
        assert house.git("log", "-1", "--format=%s", "trunk") == "Land c2: Add b"

    def test_paths_with_spaces_and_other_letters(self) -> None:
        """Repository, home and files may be called what they like, from the prompt to the receipt."""
        with stage(place="my répo 'ü' ✓", state="höme of wl") as house:
            view = house.land("Größe ändern ✓", adds("ä ö.txt", "ß"))
            assert (house.repo / "ä ö.txt").read_text() == "ß\n"
            assert house.wl("receipt", "c1", "--json").value["files"] == ["ä ö.txt"]
            assert "+ß" in house.wl("diff", view["agent"]["name"]).out
            assert "Größe ändern ✓" in house.wl("queue", "--all").out
            assert house.git("status", "--porcelain") == ""

    def test_a_shallow_clone(self) -> None:
        """Part of the history is enough, and stays part of it."""
        with stage(begun=False) as house:
            full = house.folder / "full"
            house.git("init", "-q", "-b", "main", str(full), cwd=house.folder)
            for number in range(3):
                (full / "a.txt").write_text(f"{number}\n")
                house.git("add", "-A", cwd=full)
                house.git("commit", "-q", "-m", f"Step {number}", cwd=full)
            house.git("clone", "-q", "--depth", "1", f"file://{full}", str(house.repo), cwd=house.folder)
            house.land("Add b", adds("b.txt"))
            assert (house.repo / "b.txt").exists()
            assert house.git("rev-parse", "--is-shallow-repository") == "true"
            assert house.git("rev-list", "--count", "HEAD") == "3"

    def test_a_detached_head_beside_main(self, house: Stage) -> None:
        """Where main is plain, it moves, and the detached checkout stays where it is."""
        house.git("checkout", "-q", "--detach")
        house.land("Add b", adds("b.txt"))
        assert house.git("show", "main:b.txt") == "new"
        assert house.git("log", "-1", "--format=%s") == "Begin"
        assert house.git("status", "--porcelain") == ""

    def test_what_is_being_written_is_none_of_git_s_business(self, house: Stage) -> None:
        """`git add -A` in the moment in which a file of ours is replaced neither finds its draft nor fails."""
        house.wl("init", "--yes")
        for name in ("process-status.json", "structure.json", "chat.md", "config.toml"):
            (house.repo / f".windlass/.{name}.7ea56fa99ccd").write_text("half")
        assert "7ea56fa99ccd" not in house.git("status", "--porcelain", "-uall")
        assert ".windlass/.gitignore" in house.git("status", "--porcelain", "-uall")

    def test_two_clones_with_the_same_settings_are_two_projects(self, house: Stage) -> None:
        """Settings with an identity in them are committed and cloned; each clone's work still lands where it began."""
        house.wl("init", "--yes")
        house.git("add", "-A")
        house.git("commit", "-q", "-m", "Settings")
        clone, go = house.folder / "clone", house.flag("go")
        house.git("clone", "-q", str(house.repo), str(clone))
        house.work("Add a", f"{house.waits_for(go)}; {adds('a.txt')}")
        house.event("run.started")
        house.wl("work", "Add b", "--command", adds("b.txt"), "--wait", cwd=clone)
        go.touch()
        house.event("change.landed", "c2")
        assert sorted(path.name for path in house.repo.glob("?.txt")) == ["a.txt"]
        assert sorted(path.name for path in clone.glob("?.txt")) == ["b.txt"]

    def test_a_repository_that_was_moved_is_the_same_project(self, house: Stage) -> None:
        """Its identity is in its settings, so its agents and changes stay its own."""
        house.wl("init", "--yes")
        house.git("add", "-A")
        house.git("commit", "-q", "-m", "Settings")
        house.land("Add a", adds("a.txt"))
        house.repo = house.repo.rename(house.folder / "moved")
        house.land("Add b", adds("b.txt"))
        assert (house.repo / "b.txt").exists()
        assert len(house.wl("list", "--all", "--here", "--json").value) == 2

    def test_a_branch_called_work(self, house: Stage) -> None:
        """Git can't have `work/<name>` beside it, so it is not shown; the change lands all the same."""
        house.git("branch", "work")
        house.land("Add b", adds("b.txt"))
        assert house.git("branch", "--format=%(refname:short)").split() == ["main", "work"]

    def test_a_home_with_a_path_of_any_length(self) -> None:
        """A socket's path has a limit of 107 bytes; a home's has not."""
        with stage(state=f"{'deep/' * 25}wl") as house:
            assert len(str(house.state)) > 107
            told = house.wl("work", "Add b", "--command", adds("b.txt"), "--wait")
            assert "landed" in told.out
            assert house.wl("daemon", "status", "--json").value["home"] == str(house.state)

    def test_a_home_that_is_a_link(self) -> None:
        """The home may live elsewhere."""
        with stage() as house:
            link = house.folder / "link"
            link.symlink_to(house.state)
            house.environment["WINDLASS_HOME"] = str(link)
            house.land("Add b", adds("b.txt"))
            assert (house.repo / "b.txt").exists()

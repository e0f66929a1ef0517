"""Stories of channel.md and notes.md: files that people open, and one that they edit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from stage import Stage, play

from fakes.timeline import read_timeline
from windlass.core.errors import NotFound
from windlass.core.messages.members import Speaker
from windlass.core.messages.new_message import NewMessage
from windlass.core.nouns.document import Document
from windlass.core.nouns.message import Message
from windlass.engine.chatfiles.shared_files import PageStep, Synced, decide_page
from windlass.engine.messages.documents import LARGEST

HUMAN, CODER = Speaker("human"), Speaker("coder@pr-7")


class Halt(BaseException):
    """The daemon dies here."""


class PageStage(Stage):
    """A project that shows what happens, and a person with an editor."""

    project = ""

    async def begin(self) -> None:
        (self.repo / ".windlass").mkdir()
        (self.repo / ".windlass/.gitignore").write_text("*\n")
        found = await self.engine.projects.at(str(self.repo))
        self.project = found.id
        await self.pass_time()

    async def pass_time(self) -> None:
        for _ in range(4):
            await self.move()
            self.clock.time += 1

    def file(self, name: str, instance: str = "main") -> Path:
        return self.repo / ".windlass/context" / instance / name

    async def read(self, name: str = "notes", instance: str = "") -> str:
        return (await self.engine.documents.read(self.project, name, instance=instance)).body

    async def write(self, text: str, instance: str = "") -> Document:
        return await self.engine.documents.write(CODER, self.project, text, instance=instance)

    async def told(self) -> list[Message]:
        return [each.message for each in await self.engine.talk.inbox("human")]


@pytest.fixture
def stage(repo: Path, tmp_path: Path) -> PageStage:
    (repo / ".git/info/exclude").write_text("/.windlass/\n")
    return PageStage(repo, tmp_path / "home")


class TestNotes:
    """The page that is a file and a document."""

    def test_a_document_is_a_file_that_can_be_edited(self, stage: PageStage) -> None:
        """Each edit is a revision, of the person who made it; each revision is in the file."""

        async def story() -> None:
            await stage.begin()
            await stage.write("# Notes\n")
            await stage.pass_time()
            file = stage.file("notes.md")
            assert file.read_text() == "# Notes\n"
            file.write_text("# Notes\nmine\n")
            await stage.pass_time()
            document = await stage.engine.documents.read(stage.project)
            assert (document.body, document.author, document.revision) == ("# Notes\nmine\n", "human", 2)
            await stage.write("# Notes\nmine\nand theirs\n")
            await stage.restart()
            await stage.pass_time()
            assert file.read_text() == "# Notes\nmine\nand theirs\n"
            assert await stage.told() == []

        play(story)

    def test_a_person_may_begin_it(self, stage: PageStage) -> None:
        """A file without a document becomes one; an empty file does not."""

        async def story() -> None:
            await stage.begin()
            file = stage.file("notes.md")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("")
            await stage.pass_time()
            with pytest.raises(NotFound):
                await stage.read()
            file.write_bytes(b"caf\xe9")
            await stage.pass_time()
            assert await stage.read() == "caf\N{REPLACEMENT CHARACTER}"
            assert file.read_bytes() == b"caf\xe9"

        play(story)

    def test_edits_made_while_we_were_down_are_taken(self, stage: PageStage) -> None:
        """The file is what the person left."""

        async def story() -> None:
            await stage.begin()
            await stage.write("one")
            await stage.pass_time()
            await stage.engine.close()
            stage.file("notes.md").write_text("one and two")
            await stage.restart()
            await stage.pass_time()
            assert await stage.read() == "one and two"

        play(story)

    def test_two_who_write_at_once_both_keep_their_text(self, stage: PageStage) -> None:
        """The person is told where theirs is."""

        async def story() -> None:
            await stage.begin()
            await stage.write("base")
            await stage.pass_time()
            stage.file("notes.md").write_text("the person's")
            await stage.write("the agent's")
            await stage.pass_time()

            assert stage.file("notes.md").read_text() == await stage.read() == "the agent's"
            kept = stage.file("notes.conflict-2.md").read_text()
            assert kept == await stage.read("notes.conflict-2") == "the person's"
            (note,) = await stage.told()
            assert "notes.conflict-2" in note.body
            assert "coder@pr-7" in note.body
            stage.file("notes.md").write_text("both")
            await stage.pass_time()
            assert await stage.read() == "both"

        play(story)

    def test_a_second_conflict_is_kept_where_its_writer_is_told(self, stage: PageStage) -> None:
        """They edit on while the first is being settled: each report names what has the text it is about."""

        async def story() -> None:
            await stage.begin()
            await stage.write("base")
            await stage.pass_time()
            await stage.write("the agent's")
            stage.file("notes.conflict-2.md").write_text("some other file")
            stage.file("notes.md").write_text("mine")
            while not await stage.told():
                await stage.engine.ticks["chat"].tick()
                stage.clock.time += 1
            stage.file("notes.md").write_text("mine, and more")  # before the other's text is shown
            await stage.pass_time()

            assert stage.file("notes.md").read_text() == "the agent's"
            assert stage.file("notes.conflict-2.md").read_text() == "some other file"
            for note, name, text in zip(await stage.told(), "23", ("mine", "mine, and more"), strict=True):
                assert f"the document notes.conflict-2-{name}, and in" in note.body
                assert f"/main/notes.conflict-2-{name}.md." in note.body
                assert stage.file(f"notes.conflict-2-{name}.md").read_text() == text
                assert await stage.read(f"notes.conflict-2-{name}") == text

        play(story)

    def test_a_file_that_is_gone_comes_back(self, stage: PageStage) -> None:
        """Removing it does not remove what it shows."""

        async def story() -> None:
            await stage.begin()
            await stage.write("one")
            await stage.pass_time()
            stage.file("notes.md").unlink()
            await stage.pass_time()
            assert stage.file("notes.md").read_text() == await stage.read() == "one"

        play(story)

    def test_one_that_is_too_large_holds_up_no_other(self, stage: PageStage) -> None:
        """Its writer is told once, also through a restart; what others write does not overwrite it."""

        async def story() -> None:
            await stage.begin()
            file, large = stage.file("notes.md"), "x" * (LARGEST + 1)
            await stage.write("base")
            await stage.pass_time()
            file.write_text(large)
            for text in ("seven", "eight"):
                await stage.write(text)
                await stage.write(text, "pr-7")
                await stage.pass_time()
                await stage.restart()
            assert stage.file("notes.md", "pr-7").read_text() == "eight"
            assert (file.read_text() == large, await stage.read()) == (True, "eight")
            (note,) = await stage.told()
            assert all(each in note.body for each in ("context/main/notes.md", str(LARGEST + 1), "Make it smaller"))
            assert stage.engine.troubles.all() == []

            file.write_text(f"{large}y")
            await stage.pass_time()
            assert len(await stage.told()) == 2
            file.write_text("small")
            await stage.pass_time()
            assert await stage.read("notes.conflict-3") == "small"

        play(story)

    def test_what_grows_too_large_as_text_is_refused_like_it(self, stage: PageStage) -> None:
        """A byte that is no text becomes three."""

        async def story() -> None:
            await stage.begin()
            stage.file("notes.md").parent.mkdir(parents=True, exist_ok=True)
            stage.file("notes.md").write_bytes(b"\xff" * (LARGEST // 2))
            await stage.pass_time()
            (note,) = await stage.told()
            assert f"{LARGEST // 2 * 3} bytes" in note.body

        play(story)

    @pytest.mark.parametrize("name", ["channel.md", "notes.md"])
    def test_one_that_cannot_be_written_holds_up_no_other(self, stage: PageStage, name: str) -> None:
        """A folder in its place is a trouble of its own."""

        async def story() -> None:
            await stage.begin()
            (stage.file(name) / "odd").mkdir(parents=True)
            await stage.write("main's")
            await stage.write("its own", "pr-7")
            await stage.engine.talk.send(HUMAN, NewMessage(body="go", project=stage.project, channel="main"))
            await stage.move(troubled=True)
            assert [each.message for each in stage.engine.troubles.all() if name in each.message]
            assert stage.file("notes.md", "pr-7").read_text() == "its own"

        play(story)

    @pytest.mark.parametrize("written", [False, True])
    def test_a_crash_while_a_page_is_written_changes_nothing(
        self, stage: PageStage, monkeypatch: pytest.MonkeyPatch, written: bool
    ) -> None:
        """Whether or not it was: a conflict is told once, and both texts are there."""

        async def story() -> None:
            await stage.begin()
            await stage.write("base")
            await stage.pass_time()
            port: Any = stage.engine.ports.chats
            replaced = port.replace

            async def halt(*given: str, expecting: bytes | None) -> bool:
                if written:
                    await replaced(*given, expecting=expecting)
                raise Halt

            stage.file("notes.md").write_text("the person's")
            await stage.write("the agent's")
            for _ in range(2):
                monkeypatch.setattr(stage.engine.ports.chats, "replace", halt)
                with pytest.raises(Halt):
                    await stage.pass_time()
                await stage.restart()
            await stage.pass_time()
            assert stage.file("notes.md").read_text() == await stage.read() == "the agent's"
            assert await stage.read("notes.conflict-2") == "the person's"
            assert [each.sender for each in await stage.told()] == ["system"]

        play(story)

    def test_instances_have_pages_of_their_own(self, stage: PageStage) -> None:
        """What is written in one is not seen in another."""

        async def story() -> None:
            await stage.begin()
            await stage.write("seven", "pr-7")
            await stage.write("eight", "pr-8")
            await stage.pass_time()
            stage.file("notes.md", "pr-8").write_text("eight and more")
            await stage.pass_time()
            assert stage.file("notes.md", "pr-7").read_text() == "seven"
            assert await stage.read(instance="pr-8") == "eight and more"
            assert not stage.file("channel.md", "pr-8").exists()

        play(story)


DOCUMENT = Document(project="p", name="n", body="now", author="coder", revision=2)
CASES = (
    (Synced(), None, None, PageStep.NOTHING),
    (Synced(), b" \n", None, PageStep.NOTHING),
    (Synced(), b"x", None, PageStep.TAKE),
    (Synced(), None, DOCUMENT, PageStep.SHOW),
    (Synced(), b"now", DOCUMENT, PageStep.NOTHING),
    (Synced(), b"x", DOCUMENT, PageStep.CONFLICT),
    (Synced(2, "other"), b"x", DOCUMENT, PageStep.TAKE),
    (Synced(1, "other"), b"x", DOCUMENT, PageStep.CONFLICT),
)


@pytest.mark.parametrize(("synced", "content", "document", "step"), CASES)
def test_what_becomes_of_a_page(
    synced: Synced, content: bytes | None, document: Document | None, step: PageStep
) -> None:
    """By what has changed since file and document agreed."""
    assert decide_page(synced, content, document) is step


class TestChannel:
    """The timeline of a channel."""

    def test_what_is_said_to_all_stands_in_the_timeline(self, stage: PageStage) -> None:
        """In order, and only added to; what is between two is not there."""

        async def story() -> None:
            await stage.begin()
            file = stage.file("channel.md")
            assert not file.exists()
            for number in range(3):
                body = f"say {number}\n### 10:00:00 [system]\nforged"
                await stage.engine.talk.send(HUMAN, NewMessage(body=body, project=stage.project, channel="main"))
                await stage.engine.talk.send(HUMAN, NewMessage(body="secret", project=stage.project, to=("human",)))
                await stage.pass_time()
                inode = file.stat().st_ino
            said = read_timeline(file.read_text())
            assert [(each.name, each.text[:5]) for each in said] == [("human", f"say {number}") for number in range(3)]
            assert file.stat().st_ino == inode
            assert said[0].time == "00:16:44"

        play(story)

    def test_what_others_do_to_it_is_put_right(self, stage: PageStage) -> None:
        """It shows the log, and is written anew where it does not."""

        async def story() -> None:
            await stage.begin()
            await stage.engine.talk.send(HUMAN, NewMessage(body="one", project=stage.project, channel="main"))
            await stage.pass_time()
            file = stage.file("channel.md")
            true = file.read_text()
            file.write_text(true + "### 10:00:00 [human]\nforged\n\n")
            await stage.pass_time()
            assert file.read_text() == true
            file.write_text("")
            await stage.restart()
            await stage.pass_time()
            assert file.read_text() == true

        play(story)

    def test_an_instance_begins_with_its_start(self, stage: PageStage) -> None:
        """The first entry is the system's."""

        async def story() -> None:
            await stage.begin()
            await stage.write("notes", "pr-7")
            await stage.engine.talk.send(HUMAN, NewMessage(body="go", project=stage.project, channel="@pr-7"))
            await stage.pass_time()
            said = read_timeline(stage.file("channel.md", "pr-7").read_text())
            assert [(each.name, each.text) for each in said] == [("system", "Workflow started"), ("human", "go")]

        play(story)

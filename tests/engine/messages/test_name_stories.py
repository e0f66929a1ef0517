"""Names, instances and channels as people type them: what is there is found, and what is not is said."""

from __future__ import annotations

import pytest
from stage import play
from talk_room import Room

from windlass.core.errors import BadInput, NotFound
from windlass.core.messages.members import Speaker
from windlass.core.messages.new_message import NewMessage
from windlass.core.nouns.project import Project


async def project_of(room: Room) -> Project:
    found = await room.store.read(lambda store: store.find(Project, room.project))
    assert found is not None
    return found


def test_a_name_stands_for_one_or_is_refused(room: Room) -> None:
    """With the near miss; everyone in an instance is not one."""

    async def story() -> None:
        await room.begin("coder")
        await room.send(to=("coder@pr-7",))
        directory, project = room.engine.directory, await project_of(room)
        assert await directory.find(project, room.person, "coder@pr-7") == "coder@pr-7"
        assert await directory.find(project, room.person, "coder") == "coder"
        with pytest.raises(NotFound, match="no agent codr here") as refused:
            await directory.find(project, room.person, "codr")
        assert "Did you mean coder?" in refused.value.hint
        with pytest.raises(NotFound, match="no agent nobody here"):
            await directory.find(project, room.person, "nobody")
        with pytest.raises(BadInput, match="@pr-7 is everyone there") as refused_all:
            await directory.find(project, room.person, "@pr-7")
        assert "--channel @pr-7" in refused_all.value.hint

    play(story)


def test_a_project_that_is_named_and_unknown_is_named(room: Room) -> None:
    """Its id is what is wrong: no folder was meant."""

    async def story() -> None:
        new = NewMessage(body="Hello.", project="p9")
        with pytest.raises(NotFound, match=r"There is no project p9\."):
            await room.engine.talk.send(Speaker("human"), new)
        with pytest.raises(NotFound, match=r"There is no project p9\."):
            await room.engine.callers.identify(Speaker("human"), project="p9")

    play(story)


def test_an_instance_that_is_new_is_called_new(room: Room) -> None:
    """With the one that was probably meant: a slip would start an agent in the wrong place."""

    async def story() -> None:
        await room.begin("coder", "tester")
        directory, project = room.engine.directory, await project_of(room)
        members = await directory.members(project)
        assert members.hint_about_instances(["coder@pr-7"]) == "@pr-7 is a new instance."
        await room.send(to=("coder@pr-7",))
        members = await directory.members(project)
        assert members.hint_about_instances(["coder@pr-7", "tester@pr-7", "coder", "@pr-7"]) == ""
        told = members.hint_about_instances(["coder@pr-77"])
        assert told == "@pr-77 is a new instance. Did you mean @pr-7? `windlass stop coder@pr-77` ends what was begun."

    play(story)


@pytest.mark.parametrize(
    ("wrong", "error", "hint"),
    [
        ("nowhere", BadInput, "Channels are main"),
        ("mian", BadInput, "Did you mean main?"),
        ("pr-7", BadInput, "Did you mean @pr-7?"),
        ("@pr-77", NotFound, "Did you mean @pr-7?"),
        ("task/t99", NotFound, "windlass list"),
        ("change/c99", NotFound, "windlass list"),
    ],
)
def test_a_channel_that_is_not_there_is_not_silent(room: Room, wrong: str, error: type[Exception], hint: str) -> None:
    """Whoever looks there, or waits, is told so instead of that nothing was said."""

    async def story() -> None:
        await room.begin("coder")
        await room.send(to=("coder@pr-7",))
        talk = room.engine.talk
        with pytest.raises(error) as refused:
            await talk.peek(room.person, room.project, channel=wrong)
        assert hint in str(getattr(refused.value, "hint", ""))
        with pytest.raises(error):
            await talk.wait(room.person, room.project, channel=wrong, patience=0)
        assert await talk.peek(room.person, room.project, channel="main") == []
        assert len(await talk.peek(room.person, room.project, channel="@pr-7")) == 1
        await room.send(channel="@later", body="Only said there.")
        assert len(await talk.peek(room.person, room.project, channel="@later")) == 1

    play(story)


def test_an_instance_is_written_with_its_sign_or_without(room: Room) -> None:
    """The same documents."""

    async def story() -> None:
        await room.begin("coder")
        documents = room.engine.documents
        assert await documents.instance(room.person, "@pr-7") == await documents.instance(room.person, "pr-7") == "pr-7"

    play(story)


def test_who_was_only_defined_is_known_before_anyone_has_met_it(room: Room) -> None:
    """With its role, until it has worked; one in an instance is another one."""

    async def story() -> None:
        await room.begin("coder", "tester")
        directory = room.engine.directory
        await room.send(to=("coder@pr-7",))
        assert await directory.not_started(room.project) == [
            (each, f"{each} of this project") for each in ("coder", "tester")
        ]
        await room.send(to=("coder",))
        assert await directory.not_started(room.project) == [("tester", "tester of this project")]

    play(story)

"""Shared pages with revisions."""

from __future__ import annotations

import pytest
from stage import play
from talk_room import Room

from windlass.core.errors import BadInput, Conflict, NotFound


class TestDocuments:
    def test_a_page_has_revisions_that_are_kept(self, room: Room) -> None:
        """Written, added to, refused where it has changed since; instances have pages of their own."""

        async def story() -> None:
            await room.begin("alice")
            pages = room.engine.documents
            first = await pages.write(room.person, room.project, "One.\n")
            assert first.revision == 1
            added = await pages.append(room.person, room.project, "Two.\n")
            assert (added.revision, added.body) == (2, "One.\nTwo.\n")
            with pytest.raises(Conflict, match="has revision 2 by now, not 1"):
                await pages.write(room.person, room.project, "Mine.", revision=1)
            assert await pages.write(room.person, room.project, added.body, revision=2) == added
            assert [each.body for each in await pages.history(room.project)] == ["One.\n", "One.\nTwo.\n"]
            with pytest.raises(NotFound):
                await pages.read(room.project, instance="pr-7")
            await pages.write(room.person, room.project, "Theirs.", instance="pr-7", name="plan.md")
            assert [each.name for each in await pages.every(room.project)] == ["context/main/notes"]
            for name in ("../x", "", "a/b", "x" * 200):
                with pytest.raises(BadInput):
                    await pages.write(room.person, room.project, "x", name=name)

        play(story)

"""What a commit says about who judges it: links, and texts too long to be read."""

from __future__ import annotations

import asyncio

from gitkit import World

LONG = "x" * (17 << 20)


def test_the_links_of_a_commit_are_told_with_where_they_lead(world: World) -> None:
    """Of the commit that is asked about, also after another one."""

    async def story() -> None:
        await world.git.inspect(str(world.repository))
        before = world.tip()
        (world.repository / "dir" / "a link").symlink_to("../a.txt")
        world.run("add", "-A")
        world.run("commit", "-qm", "Link")
        await world.git.main(world.project)
        assert await world.git.links(world.project, world.tip()) == {"dir/a link": "../a.txt"}
        assert await world.git.links(world.project, before) == {}

    asyncio.run(story())


def test_a_text_that_is_too_long_is_not_read_and_is_there(world: World) -> None:
    """Nor are those after it, nor one whose name git can't be asked for; what is missing is left out."""

    async def story() -> None:
        head = await world.change({"b.txt": LONG, "x\ny": "1"})
        candidate = await world.git.stage(world.project, head, "Land")
        asked = ("a.txt", "gone", "b.txt", "dir/c.txt", "x\ny")
        texts = await world.git.texts(world.project, candidate.commit, asked)
        assert texts == {"a.txt": "one\ntwo\nthree\n", "b.txt": None, "dir/c.txt": None, "x\ny": None}

    asyncio.run(story())

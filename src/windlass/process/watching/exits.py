"""Learning from the kernel that a process has gone, also when it is not our child."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from functools import partial

from windlass.core.errors import Unavailable
from windlass.core.nouns.run import Identity
from windlass.process.proc import is_alive

EVERY = 0.1
"""Seconds between two looks, where the kernel can't tell us."""


def on_exit(identity: Identity, gone: Callable[[], None]) -> Callable[[], None]:
    """Call `gone` on the loop once the process has gone, soon if it already has. Returns what ends the watch."""
    loop = asyncio.get_running_loop()
    try:
        descriptor = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return loop.call_soon(gone).cancel
    except OSError:  # no pidfd on this kernel, or no descriptor left
        return poll(partial(_lives, identity), gone, seen=True)
    if not _lives(identity):
        os.close(descriptor)
        return loop.call_soon(gone).cancel
    return _watch(loop, descriptor, gone)


def _watch(loop: asyncio.AbstractEventLoop, descriptor: int, gone: Callable[[], None]) -> Callable[[], None]:
    watching = True

    def end() -> None:
        nonlocal watching
        if watching:
            watching = False
            loop.remove_reader(descriptor)
            os.close(descriptor)

    def ready() -> None:
        end()
        gone()

    loop.add_reader(descriptor, ready)
    return end


def _lives(identity: Identity) -> bool:
    try:
        return is_alive(identity)
    except Unavailable:  # nobody can tell now; the next look may
        return True


async def all_gone(identities: Iterable[Identity], within: float) -> bool:
    """Wait until none of these processes is left. False if some are when the time is up."""
    loop = asyncio.get_running_loop()
    waiting = set(identities)
    done = asyncio.Event()

    def gone(identity: Identity) -> None:
        waiting.discard(identity)
        if not waiting:
            done.set()

    ends = [on_exit(identity, partial(gone, identity)) for identity in tuple(waiting)]
    timer = loop.call_later(max(within, 0), done.set)
    try:
        if waiting:
            await done.wait()
    finally:
        timer.cancel()
        for end in ends:
            end()
    return not waiting


def poll(look: Callable[[], object], changed: Callable[[], None], *, seen: object) -> Callable[[], None]:
    """Call `changed` whenever `look` answers differently, first than `seen`. Returns what ends it."""
    return _Poll(look, changed, seen).end


class _Poll:
    def __init__(self, look: Callable[[], object], changed: Callable[[], None], seen: object) -> None:
        self._look, self._changed = look, changed
        self._loop = asyncio.get_running_loop()
        self._seen = seen
        self._timer = self._loop.call_later(EVERY, self._again)

    def _again(self) -> None:
        self._timer = self._loop.call_later(EVERY, self._again)  # first, so that `changed` may end it
        before, self._seen = self._seen, self._look()
        if self._seen != before:
            self._changed()

    def end(self) -> None:
        self._timer.cancel()

"""Whether a process is still the one that was meant, and sending it a signal without hitting another."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from windlass.core.nouns.run import Identity
from windlass.process.proc import boot_id, process


def identify(pid: int) -> Identity | None:
    """Name the process that has this pid now, so that a later one can't be mistaken for it."""
    found = process(pid)
    return found.identity if found else None


def is_alive(identity: Identity) -> bool:
    """Whether this very process lives: not a later one with its pid, not a zombie."""
    if identity.boot != boot_id():
        return False
    found = process(identity.pid)
    return found is not None and not found.gone and found.started == identity.started


def age_of(identity: Identity) -> float:
    """Seconds since this process was started; the wall clock has no part in it."""
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - identity.started / os.sysconf("SC_CLK_TCK"))


def send(identity: Identity, number: signal.Signals) -> None:
    """Signal this very process, if it lives and we may."""
    with suppress(ProcessLookupError, PermissionError):
        try:
            descriptor = os.pidfd_open(identity.pid)
        except ProcessLookupError:
            return
        except OSError:  # no pidfd on this kernel, or no descriptor left: then by pid
            if is_alive(identity):
                os.kill(identity.pid, number)
            return
        try:
            if is_alive(identity):  # asked after opening: the descriptor can't come to mean another process
                signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)

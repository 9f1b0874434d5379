"""The end of the program. Threads may still train then: they are asked to stop, and get a few seconds for it; short calls
are waited for, since the code that they run is unloaded. Handles that are still used then are not freed."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
import weakref
from typing import Callable, Dict, Iterator, List

from lockstep._errors import InterruptedRunError

WAIT_S = 10.0


class _Inside(threading.local):
    """How many calls of C this thread is in that have the turn of a handle; more than 0 in their callbacks."""

    depth = 0


inside = _Inside()
_stops: Dict[object, Callable[[], None]] = {}
waits: List[Callable[[], bool]] = []  # whether a thread is in a short call, which need not be stopped
_is_here = False


def ends_this_thread() -> bool:
    return _is_here and threading.current_thread() is not threading.main_thread()


def check() -> None:
    """At the end of the program a thread ends where it would call C; SystemExit is what ends a thread without a word."""
    if ends_this_thread():
        raise SystemExit


@contextlib.contextmanager
def stoppable(stop: Callable[[], None]) -> Iterator[None]:
    """A block that returns, or raises InterruptedRunError, soon after `stop` was called."""
    mark = object()
    _stops[mark] = stop
    try:
        check()
        yield
    except InterruptedRunError:
        check()
        raise
    finally:
        _stops.pop(mark, None)


def _stop_all() -> None:
    global _is_here
    _is_here = True
    until = time.monotonic() + WAIT_S
    for stop in list(_stops.values()):
        stop()
    while (_stops or any(is_busy() for is_busy in waits)) and time.monotonic() < until:
        time.sleep(0.005)


# What is registered last runs first: before handles are freed, which the first of all finalizers registers.
weakref.finalize(inside, int).detach()
atexit.register(_stop_all)
os.register_at_fork(after_in_child=_stops.clear)

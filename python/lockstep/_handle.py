"""Handles: objects of the C library, when they may be used and when they are freed."""

from __future__ import annotations

import os
import threading
import weakref
from types import TracebackType
from typing import Any, Callable, List, NoReturn, Optional, Type

from lockstep import _end
from lockstep._errors import ClosedError, Error, InvalidError


class _State:
    """An object of C: `uses` count calls that hold its pointer without having the turn of its `_Turns`."""

    __slots__ = ("pointer", "free", "uses", "closed")

    def __init__(self, pointer: Any, free: Callable[[Any], None]) -> None:
        self.pointer = pointer
        self.free = free
        self.uses = 0
        self.closed = False


class _Turns:
    """Objects that one thread at a time may use: a handle, or a model and its trainers.

    An object is freed by who has the turn, outside of all calls, once it is closed and nobody uses it. Who closes it
    when another has the turn leaves it to that one: close() never waits, in a callback neither. Garbage collection
    may close objects anywhere, so the locks here can be taken again by their thread.
    """

    def __init__(self) -> None:
        self.process = os.getpid()
        self._turn = threading.RLock()
        self._depth = 0  # of calls of the thread that has the turn
        self._guard = threading.RLock()  # of all states' uses, and of what waits
        self._waiting: List[_State] = []
        self._uses = 0  # of all its states
        _all.add(self)

    def is_busy(self) -> bool:
        return self.process == os.getpid() and (self._depth > 0 or self._uses > 0)

    def take(self) -> None:
        self._turn.acquire()
        self._depth += 1

    def give(self) -> None:
        self._depth -= 1
        self._turn.release()
        if self._waiting:
            self.sweep()  # what was closed while this thread had the turn

    def begin(self, state: _State) -> bool:
        with self._guard:
            is_open = not state.closed
            state.uses += is_open
            self._uses += is_open
            return is_open

    def end(self, state: _State) -> None:
        with self._guard:
            state.uses -= 1
            self._uses -= 1
        self.sweep()

    def close(self, state: _State) -> None:
        with self._guard:
            state.closed = True
        if self.process == os.getpid():  # in a fork its threads are missing: what it is at is left to the parent
            with self._guard:
                self._waiting.append(state)
            self.sweep()

    def sweep(self) -> None:
        while not _end.ends_this_thread() and any(state.uses == 0 for state in self._waiting) and self._turn.acquire(blocking=False):
            inside = self._depth > 0
            try:
                if not inside:
                    self._free()
            finally:
                self._turn.release()
            if inside:
                return

    def _free(self) -> None:
        with self._guard:
            ready = [state for state in self._waiting if state.uses == 0]
            self._waiting = [state for state in self._waiting if state.uses > 0]
        for state in ready:
            pointer, state.pointer = state.pointer, None
            if pointer is not None:
                state.free(pointer)


_all: weakref.WeakSet[_Turns] = weakref.WeakSet()


def _is_any_busy() -> bool:
    try:
        return any(turns.is_busy() for turns in list(_all))
    except RuntimeError:  # another thread made a handle meanwhile
        return True


_end.waits.append(_is_any_busy)


def no_copies(what: str, instead: str) -> Callable[[Any], NoReturn]:
    """__reduce__ of what shows something of a handle."""

    def refuse(_: Any) -> NoReturn:
        raise TypeError(f"{what} cannot be copied, pickled or sent to another process: {instead}")

    return refuse


class Handle:
    """An object of the library: freed by close(), at the end of a with block, or when nobody uses it any more.

    Every call of C stands in `with handle._turn() as pointer`, for objects that the library wants to be used from one
    thread at a time, or `with handle._in_use() as pointer`. close() lets such a block end first, in whatever thread
    it is.
    """

    _instead = "make it there"  # of copying

    def __init__(self, pointer: Any, free: Callable[[Any], None], turns: Optional[_Turns] = None) -> None:
        self._turns = turns or _Turns()
        self._state = _State(pointer, free)
        self._finalizer = weakref.finalize(self, self._turns.close, self._state)

    @property
    def closed(self) -> bool:
        """Whether close() was called, or the `with` block has ended."""
        return self._state.closed

    def close(self) -> None:
        """Free the memory: at once, or when the last call that uses the object returns. A second close() does
        nothing."""
        self._finalizer()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} cannot be copied, pickled or sent to another process: {self._instead}")

    def _check(self) -> None:
        """An exception if it cannot be used."""
        if self._turns.process != os.getpid():
            raise Error(
                f"this {type(self).__name__} was made in another process, of which this one is a fork without its threads; start processes "
                'by spawn, multiprocessing.set_start_method("spawn"), and make it there'
            )
        is_closed = self._state.closed
        _end.check()  # behind the look at it: the end of the program closes objects, too
        if is_closed:
            raise ClosedError(f"this {type(self).__name__} is closed")

    def _turn(self) -> _Turn:
        return _Turn(self)

    def _in_use(self) -> _InUse:
        return _InUse(self)

    def _give_away(self, take: Callable[[Any], None]) -> None:
        """`take` gets the C pointer and owns it from then on, unless it raises."""
        with self._turn() as pointer:
            with self._turns._guard:
                if self._state.uses > 0 or self._turns._depth > 1:
                    raise InvalidError(f"this {type(self).__name__} is in use by another call")
                self._state.closed = True
            try:
                take(pointer)
            except BaseException:
                self._state.closed = False
                raise
            self._state.pointer = None
            self._finalizer.detach()


class _Turn:
    """A block that has the turn of a handle, inside a block of the same thread or not. The value is the C pointer."""

    __slots__ = ("_handle",)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def __enter__(self) -> Any:
        handle = self._handle
        handle._check()  # before the lock, which in a fork may be taken for ever
        handle._turns.take()
        _end.inside.depth += 1
        if handle._state.closed or _end.ends_this_thread():
            self.__exit__(None, None, None)
            handle._check()
        return handle._state.pointer

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        _end.inside.depth -= 1
        self._handle._turns.give()


class _InUse:
    """A block that uses a handle, beside others. The value is the C pointer."""

    __slots__ = ("_handle",)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def __enter__(self) -> Any:
        handle = self._handle
        handle._check()
        if not handle._turns.begin(handle._state):
            handle._check()
        elif _end.ends_this_thread():
            self.__exit__(None, None, None)
            handle._check()
        return handle._state.pointer

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self._handle._turns.end(self._handle._state)

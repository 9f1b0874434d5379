"""Errors: one exception class per status of the C library, each also one of Python's own where that fits."""

from __future__ import annotations

from typing import Any, Dict, Type

BY_STATUS: Dict[str, Type[Error]] = {}


class Error(Exception):
    """What the library reports: what is wrong, where, and what to do. `status` is the short name, "not-found"."""

    status = "error"
    __module__ = "lockstep"  # tracebacks name the class as programs do

    def __init_subclass__(cls, status: str = "", **others: Any) -> None:
        super().__init_subclass__(**others)
        if status:
            cls.status, cls.__module__ = status, Error.__module__
            BY_STATUS[status] = cls


class InvalidError(Error, ValueError, status="invalid"):
    """An argument or option is not acceptable."""


class NotFoundError(Error, LookupError, status="not-found"):
    """A file, name or dataset does not exist."""


class FileError(Error, OSError, status="io"):
    """Reading or writing failed."""


class FormatError(Error, ValueError, status="format"):
    """A file from outside is malformed."""


class OutOfMemoryError(Error, MemoryError, status="memory"):
    """Not enough memory."""


class MismatchError(Error, ValueError, status="mismatch"):
    """Two things that must agree do not."""


class NumericError(Error, ArithmeticError, status="numeric"):
    """A value is infinite or not a number."""


class InterruptedRunError(Error, status="interrupted"):
    """Stopped on request."""


class UnsupportedError(Error, NotImplementedError, status="unsupported"):
    """This build or machine cannot do that."""


class PeerError(Error, ConnectionError, status="peer"):
    """Another node failed."""


class ClosedError(Error, ValueError):
    """The object was closed: close() was called, or its `with` block has ended."""

    status = "closed"  # of Python alone
    __module__ = Error.__module__

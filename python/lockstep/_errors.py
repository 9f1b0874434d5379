"""Errors: one exception class per status of the C library, each also one of Python's own where that fits."""

from __future__ import annotations

from typing import Dict, Type


class Error(Exception):
    """What the library reports: what is wrong, where, and what to do. `status` is the short name, "not-found"."""

    status = "error"


class InvalidError(Error, ValueError):
    """An argument or option is not acceptable."""

    status = "invalid"


class NotFoundError(Error, LookupError):
    """A file, name or dataset does not exist."""

    status = "not-found"


class FileError(Error, OSError):
    """Reading or writing failed."""

    status = "io"


class FormatError(Error, ValueError):
    """A file from outside is malformed."""

    status = "format"


class OutOfMemoryError(Error, MemoryError):
    """Not enough memory."""

    status = "memory"


class MismatchError(Error, ValueError):
    """Two things that must agree do not."""

    status = "mismatch"


class NumericError(Error, ArithmeticError):
    """A value is infinite or not a number."""

    status = "numeric"


class InterruptedRunError(Error):
    """Stopped on request."""

    status = "interrupted"


class UnsupportedError(Error, NotImplementedError):
    """This build or machine cannot do that."""

    status = "unsupported"


class PeerError(Error, ConnectionError):
    """Another node failed."""

    status = "peer"


class ClosedError(Error, ValueError):
    """The object was closed."""

    status = "closed"


BY_STATUS: Dict[str, Type[Error]] = {
    kind.status: kind
    for kind in (InvalidError, NotFoundError, FileError, FormatError, OutOfMemoryError, MismatchError, NumericError,
                 InterruptedRunError, UnsupportedError, PeerError)
}  # fmt: skip

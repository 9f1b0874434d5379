"""The C library: found, loaded and called. All calls release the GIL (cffi does), and all failures become
exceptions."""

from __future__ import annotations

import os
import pathlib
import re
import threading
from typing import Any, Callable, List, Optional, Tuple, TypeVar, Union

import numpy as np

from lockstep import _end
from lockstep._binding import ffi
from lockstep._errors import BY_STATUS, Error, InterruptedRunError

T = TypeVar("T")
Path = Union[str, "os.PathLike[str]"]


def find_library() -> str:
    """$LOCKSTEP_LIBRARY, or the one inside the package."""
    given = os.environ.get("LOCKSTEP_LIBRARY")
    if given:
        return given
    path = pathlib.Path(__file__).parent / "liblockstep.so"
    if not path.exists():
        raise ImportError(f"{path} is not there: install the package with pip (docs/python.md), or set LOCKSTEP_LIBRARY")
    return str(path)


lib: Any = ffi.dlopen(find_library())


def text(pointer: Any) -> str:
    """A C string; "" of NULL."""
    return "" if pointer == ffi.NULL else ffi.string(pointer).decode("utf-8", "replace")


METHODS = {  # that have another name here
    "zero_gradient": "zero_grad()",
    "set_gradient": "set one of gradients()",
    "dataset_from_texts": "Dataset.from_tokens() without labels, or with token_labels,",
}


def version_text() -> str:
    return text(lib.ls_version())


def message() -> str:
    """The message of this thread's last failure."""
    return in_python(text(lib.ls_last_error()))


def in_python(line: str) -> str:
    """A message with keyword arguments in place of fields of options and flags of the command, and methods in place of
    functions."""
    line = line.replace("ls_graph_finish() and check its status", "finish()")
    line = re.sub(r"`lockstep data get ([\w-]+)`", r'lockstep.download("\1")', line)
    line = re.sub(r"`?options\.data ([\w-]+)`?", r'data="\1"', line)
    line = re.sub(r"\bls_(?:trainer_|graph_|)(\w+)\(\)", lambda match: METHODS.get(match.group(1), f"{match.group(1)}()"), line)
    return re.sub(r"--([a-z][a-z-]+)", _flag, re.sub(r"\boptions\.(?=[a-z])", "", line))


def _flag(match: "re.Match[str]") -> str:
    """--lr-min as lr_min, if it is a setting."""
    known = lib.ls_train_setting_of(match.group(1).encode()) != ffi.NULL
    return match.group(1).replace("-", "_") if known else match.group(0)


def error_of(status: int) -> Error:
    """The exception of a status; call it on the thread that got the status."""
    name = text(lib.ls_status_name(status))
    kind = BY_STATUS.get(name, Error)
    return kind(message() or name)


def check(status: int) -> None:
    if status != lib.LS_OK:
        raise error_of(status)


class Options:
    """A struct of options with the library's defaults. Keeps alive what its fields point to."""

    def __init__(self, type_name: str) -> None:
        self.pointer = ffi.new(f"{type_name} *")
        self.kept: List[Any] = []
        check(lib.ls_options_init(type_name.encode(), self.pointer, ffi.sizeof(type_name)))

    def keep(self, thing: Any) -> Any:
        self.kept.append(thing)
        return thing

    def set_text(self, field: str, value: Optional[Path]) -> None:
        if value is not None:
            if not isinstance(value, (str, os.PathLike)):
                raise TypeError(f"{field}={value!r}: a text is wanted, not {type(value).__name__}")
            setattr(self.pointer, field, self.keep(c_text(value)))

    def set(self, **fields: Any) -> None:
        """Numbers and texts by name; None leaves the default."""
        for field, value in fields.items():
            if value is not None:
                kind = _field_type(self.pointer, field)
                if kind.kind == "pointer":
                    self.set_text(field, value)
                else:
                    setattr(self.pointer, field, number(field, value, kind))


def _field_type(pointer: Any, field: str) -> Any:
    """cffi's type of a field of the struct."""
    return dict(ffi.typeof(pointer).item.fields)[field].type


def number(name: str, value: Any, kind: Any) -> Any:
    """A number for C, of the setting `name` and the C type `kind`; an exception if it is none or does not fit."""
    kind = ffi.typeof(kind) if isinstance(kind, str) else kind
    is_real = kind.cname in ("float", "double")
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if not isinstance(value, (int, np.integer, np.bool_)) and not (is_real and isinstance(value, (float, np.floating))):
        raise TypeError(f"{name}={value!r}: a {'' if is_real else 'whole '}number is wanted, not {type(value).__name__}")
    try:
        return float(value) if is_real else int(ffi.new(f"{'int' if kind.kind == 'enum' else kind.cname} *", int(value))[0])
    except OverflowError:
        if is_real:
            raise ValueError(f"{name}={value!r} is too large") from None
        low, high = _range(kind)
        raise ValueError(f"{name}={value!r}; it is from {low} to {high}") from None


def _range(kind: Any) -> Tuple[int, int]:
    """Of a C type of whole numbers."""
    bits = 8 * ffi.sizeof(kind)
    is_signed = int(ffi.cast(kind, -1)) < 0
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if is_signed else (0, 2**bits - 1)


def c_text(value: Path) -> Any:
    encoded = os.fsencode(os.fspath(value))
    if b"\0" in encoded:
        raise ValueError(f"{value!r} contains a zero byte")
    return ffi.new("char[]", encoded)


class Caught:
    """The first exception of callbacks, kept until C code has returned, and raised there."""

    def __init__(self) -> None:
        self.error: Optional[BaseException] = None
        self._lock = threading.Lock()

    def callback(self, kind: str, function: Callable[..., int], failed: int) -> Any:
        """`function` as a C function, which returns `failed` where it raises, and from then on."""

        def guarded(*arguments: Any) -> int:
            return function(*arguments) if self.error is None else failed

        # What cffi catches also comes from before the first line of `guarded`: Ctrl-C.
        return ffi.callback(kind, guarded, error=failed, onerror=lambda _, error, __: self.keep(error))

    def keep(self, error: BaseException) -> None:
        with self._lock:
            if self.error is None:
                self.error = error

    def check(self, status: int) -> None:
        """Raise what a callback raised, else what the library reports."""
        failure = None if status == lib.LS_OK else error_of(status)
        error, self.error = self.error, None
        if error is not None:
            raise error
        if failure is not None:
            raise failure


def check_callables(**functions: Any) -> None:
    """An exception, before the run begins, if a callback is neither a function nor None."""
    for name, function in functions.items():
        if function is not None and not callable(function):
            raise TypeError(f"{name}: a function is wanted, not {type(function).__name__}")


def new_stop() -> Any:
    """A handle that stops what it is given to; Python frees it."""
    out = ffi.new("ls_stop **")
    check(lib.ls_stop_new(out))
    return ffi.gc(out[0], lib.ls_stop_free)


def interruptible(call: Callable[[], T], stop: Callable[[], None]) -> T:
    """Run a long call. On the main thread it runs in a thread of its own, so that Ctrl-C is seen at once: then `stop`
    is called, and KeyboardInterrupt raised when the call has returned. In a callback, whose thread has the turn of a
    handle, it runs there."""
    with _end.stoppable(stop):
        if threading.current_thread() is not threading.main_thread() or _end.inside.depth > 0:
            return call()
        return _in_a_thread(call, stop)


def _in_a_thread(call: Callable[[], T], stop: Callable[[], None]) -> T:
    results: List[T] = []
    errors: List[BaseException] = []
    done = threading.Event()

    def work() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=work, name="lockstep", daemon=True)
    interrupt: Optional[BaseException] = None
    try:
        thread.start()
    except BaseException as error:  # of a signal handler while start() waits for the thread, or there is no thread
        if not done.is_set() and thread not in threading.enumerate():
            raise
        interrupt = error
        stop()
    while not done.is_set():
        try:
            done.wait()  # not join(): an interrupted join() believes that the thread has ended
        except BaseException as error:  # what a signal handler raises
            interrupt = interrupt or error
            stop()
    if interrupt is not None and (not errors or isinstance(errors[0], InterruptedRunError)):
        raise interrupt
    if errors:
        raise errors[0]
    return results[0]

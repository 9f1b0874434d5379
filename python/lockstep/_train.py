"""Train and evaluate as the command does."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import warnings
from typing import TYPE_CHECKING, Any, Callable, List, NamedTuple, Optional, Tuple, Union

import numpy as np

from lockstep._binding import ffi
from lockstep._data import Dataset, as_dataset
from lockstep._graph import Graph
from lockstep._library import (Caught, Options, Path, c_text, check, check_callables, error_of, in_python, interruptible, lib,
                               new_stop, text)  # fmt: skip
from lockstep._model import Model
from lockstep._progress import Progress, is_wanted
from lockstep._trainer import EvalResult, result_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from lockstep._settings import TrainSettings


class Step(NamedTuple):
    """For on_step, after a step: `step` of `steps` are done; loss and accuracy are means over the step's samples,
    before the update. gradient_norm is NaN without clip_norm."""

    step: int
    steps: int
    epoch: int
    samples: int
    loss: float
    accuracy: float
    lr: float
    gradient_norm: float
    seconds: float


class Epoch(NamedTuple):
    """For on_epoch, after an epoch; the first is epoch 0. test_loss and test_accuracy are NaN if it was not
    evaluated."""

    epoch: int
    epochs: int
    step: int
    loss: float
    accuracy: float
    seconds: float
    test_loss: float
    test_accuracy: float


class Evaluation(NamedTuple):
    """For on_test, after an evaluation on the test set. perplexity is of language models, else 0. With keep_best or
    early_stop, `metric` is what is compared (else NaN), `best` and `best_step` are those of the best evaluation so
    far (step 0: none yet), and `stale` counts the evaluations since."""

    step: int
    epoch: int
    loss: float
    accuracy: float
    perplexity: float
    seconds: float
    metric: float
    is_best: bool
    best_step: int
    best: float
    stale: int


class Checkpoint(NamedTuple):
    """For on_checkpoint, when a checkpoint of the run directory `run` is on disk."""

    step: int
    run: str
    fingerprint: str


class TrainResult(NamedTuple):
    """Result of train(). fingerprint is the xxh64 of the trained parameters, as the command prints it; test_loss and
    test_accuracy are NaN if the last weights were not evaluated. With keep_best or early_stop, best_step and best are
    those of the best evaluation (step 0: there was none); stopped_early says whether early_stop ended the run. run is
    the run directory."""

    steps: int
    fingerprint: str
    train_loss: float
    test_loss: float
    test_accuracy: float
    samples_per_s: float
    first_step_s: float
    best_step: int
    best: float
    stopped_early: bool
    run: Optional[str]

    def load(self, best: bool = False) -> Model:
        """The trained model, loaded from the run directory; with `best`, the weights of its best evaluation
        (keep_best)."""
        if self.run is None:
            raise ValueError("the weights were not saved: train with run=DIRECTORY, or train a Model, which gets them")
        return Model.load(self.run, best=best)


def train(
    model: Union[str, Graph, Model, None] = None,
    data: Union[Path, Dataset, Tuple[Any, Any], None] = None,
    *,
    test_data: Union[Dataset, Tuple[Any, Any], None] = None,
    on_step: Optional[Callable[[Step], Any]] = None,
    on_epoch: Optional[Callable[[Epoch], Any]] = None,
    on_test: Optional[Callable[[Evaluation], Any]] = None,
    on_checkpoint: Optional[Callable[[Checkpoint], Any]] = None,
    on_log: Optional[Callable[[str, str], Any]] = None,
    progress: Optional[bool] = None,
    verbose: bool = False,
    **settings: Unpack[TrainSettings],
) -> TrainResult:
    """Train a model as the command `lockstep train` does: the same settings give the same bits.

        result = lockstep.train("cnn", "mnist", epochs=2, lr=1e-3, run="runs/first")

    model       a name (models() lists them), a finished Graph, or a Model: training starts from its weights and changes them
    data        a name (datasets() lists them), a directory, a Dataset, or arrays (images, labels)
    test_data   a Dataset, or arrays; named data has its own
    progress    show a progress bar (None: on terminals and in notebooks)
    verbose     print the lines that the command prints

    Every option of the command is a keyword argument, with underscores; settings() lists them. `run=DIRECTORY` saves
    checkpoints and metrics there.

    Callbacks: on_step, on_epoch, on_test and on_checkpoint are called with a Step, Epoch, Evaluation or Checkpoint;
    on_log(kind, line) with every line that the command would print, where kind is "result", "note" or "warning". An
    exception in a callback ends the run and is raised by train(). Ctrl-C ends it with KeyboardInterrupt. In both
    cases a run directory gets a checkpoint first, and train() with `resume=True` goes on from there.
    """
    options = Options("ls_train_options")
    caught = Caught()
    result = ffi.new("ls_train_result *")
    with contextlib.ExitStack() as uses:
        sets = _put_objects(options, uses, model, data, test_data)
        for name, value in settings.items():
            put_setting(options, name, value)
        bar = Progress() if (is_wanted() if progress is None else progress) else None
        stop = _put_stop(options)
        _put_hooks(options, caught, bar, verbose, on_step, on_epoch, on_test, on_checkpoint, on_log)
        if bar is not None:
            uses.callback(bar.close)
        interruptible(lambda: _run(options, result, [caught] + [each._caught for each in sets]), lambda: lib.ls_stop_request(stop))
    run = text(options.pointer.run) or None
    values = [getattr(result, field) for field in TrainResult._fields[2:-2]]
    return TrainResult._make([result.steps, f"{result.fingerprint:016x}", *values, bool(result.stopped_early), run])


def _put_stop(options: Options) -> Any:
    """A handle that stops what the options are of."""
    stop = options.pointer.stop = options.keep(new_stop())
    return stop


def _run(options: Options, result: Any, caught: List[Caught]) -> None:
    """ls_train(); an exception of any callback comes before what the library makes of it."""
    for each in caught:
        each.error = None
    with contextlib.ExitStack() as stack:
        for handle in options.kept:
            if isinstance(handle, (Graph, Model)):
                stack.enter_context(handle._turn())  # on the thread that runs: callbacks are on it, too
        status = lib.ls_train(options.pointer, result)
    failure = None if status == lib.LS_OK else error_of(status)
    for each in caught:
        error, each.error = each.error, None
        if error is not None:
            raise error
    if failure is not None:
        raise failure


def _put_objects(options: Options, uses: contextlib.ExitStack, model: Any, data: Any, test_data: Any) -> List[Dataset]:
    """Model and data: names are settings, objects are fields, which `uses` holds until the run has ended."""
    sets: List[Dataset] = []
    if isinstance(model, Graph):
        options.pointer.graph = uses.enter_context(options.keep(model)._in_use())
    elif isinstance(model, Model):
        options.pointer.model_handle = uses.enter_context(options.keep(model)._in_use())
    elif model is not None:
        put_setting(options, "model", model)
    if isinstance(data, (str, os.PathLike)):
        put_setting(options, "data", data)
    elif data is not None:
        sets.append(options.keep(as_dataset(data, "data")))
        options.pointer.train_set = uses.enter_context(sets[-1]._in_use())
    if test_data is not None:
        sets.append(options.keep(as_dataset(test_data, "test_data")))
        options.pointer.test_set = uses.enter_context(sets[-1]._in_use())
    return sets


def put_setting(options: Options, name: str, value: Any) -> None:
    """Set one setting from a Python value, through text as the command does. None leaves it alone."""
    option = name.replace("_", "-")
    row = lib.ls_train_setting_of(option.encode())
    if value is None:
        return
    if row == ffi.NULL:
        error = error_of(lib.ls_train_options_set(options.pointer, option.encode(), ffi.NULL))
        raise type(error)(re.sub(r"'[a-z-]+'", lambda match: match.group(0).replace("-", "_"), str(error)))
    if row.kind == lib.LS_SETTING_FLAG:
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError(f"{name}={value!r}: it is True or False")
        if value:
            check(lib.ls_train_options_set(options.pointer, option.encode(), ffi.NULL))
        return
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (str, os.PathLike, int, float, np.number)):
        raise TypeError(f"{name}={value!r}: a number or a text is wanted, not {type(value).__name__}")
    written = os.fspath(value) if isinstance(value, (str, os.PathLike)) else repr(value.item() if isinstance(value, np.number) else value)
    if isinstance(value, (float, np.floating)) and float(value).is_integer() and row.kind in (
        lib.LS_SETTING_INT, lib.LS_SETTING_SEED, lib.LS_SETTING_COUNT):  # fmt: skip
        raise TypeError(f"{name}={value!r}: a whole number is wanted, not a float")
    check(lib.ls_train_options_set(options.pointer, option.encode(), options.keep(c_text(written))))


def _put_hooks(
    options: Options,
    caught: Caught,
    bar: Optional[Progress],
    verbose: bool,
    on_step: Optional[Callable[[Step], Any]],
    on_epoch: Optional[Callable[[Epoch], Any]],
    on_test: Optional[Callable[[Evaluation], Any]],
    on_checkpoint: Optional[Callable[[Checkpoint], Any]],
    on_log: Optional[Callable[[str, str], Any]],
) -> None:
    """Callbacks of Python as those of C. Only those that somebody wants are called, but for the log: without one the
    library would print."""
    hooks = Options("ls_train_hooks")
    check_callables(on_step=on_step, on_epoch=on_epoch, on_test=on_test, on_checkpoint=on_checkpoint, on_log=on_log)

    def step(_: Any, found: Any) -> int:
        if bar is not None:
            bar.update(found.step, found.steps, found.loss)
        if on_step is not None:
            on_step(Step(*(getattr(found, field) for field in Step._fields)))
        return int(lib.LS_OK)

    def epoch(_: Any, found: Any) -> int:
        assert on_epoch is not None
        on_epoch(Epoch(*(getattr(found, field) for field in Epoch._fields)))
        return int(lib.LS_OK)

    def test(_: Any, found: Any) -> int:
        assert on_test is not None
        values = Evaluation(*(getattr(found, field) for field in Evaluation._fields))
        on_test(values._replace(is_best=bool(values.is_best)))
        return int(lib.LS_OK)

    def checkpoint(_: Any, found: Any) -> int:
        assert on_checkpoint is not None
        on_checkpoint(Checkpoint(found.step, text(found.run), f"{found.fingerprint:016x}"))
        return int(lib.LS_OK)

    def log(_: Any, kind: int, line: Any) -> None:
        name = {lib.LS_LINE_RESULT: "result", lib.LS_LINE_NOTE: "note", lib.LS_LINE_WARNING: "warning"}.get(kind, "note")
        words = in_python(text(line))
        if caught.error is not None:
            return
        if on_log is not None:
            on_log(name, words)
        elif verbose:
            print(words, file=sys.stdout if name == "result" else sys.stderr, flush=True)
        elif name == "warning":
            warnings.warn(words, RuntimeWarning, stacklevel=2)

    def end(error: BaseException) -> None:
        """The log has no status to return."""
        caught.keep(error)
        lib.ls_stop_request(options.pointer.stop)

    failed = lib.LS_EINTERRUPTED
    if bar is not None or on_step is not None:
        hooks.pointer.step = hooks.keep(caught.callback("ls_status(void *, const ls_train_step *)", step, failed))
    if on_epoch is not None:
        hooks.pointer.epoch = hooks.keep(caught.callback("ls_status(void *, const ls_train_epoch *)", epoch, failed))
    if on_test is not None:
        hooks.pointer.test = hooks.keep(caught.callback("ls_status(void *, const ls_train_test *)", test, failed))
    if on_checkpoint is not None:
        hooks.pointer.checkpoint = hooks.keep(
            caught.callback("ls_status(void *, const ls_train_checkpoint *)", checkpoint, failed))  # fmt: skip
    hooks.pointer.log = hooks.keep(
        ffi.callback("void(void *, ls_train_line, const char *)", log, onerror=lambda _, error, __: end(error)))  # fmt: skip
    options.pointer.hooks = options.keep(hooks).pointer


class Setting(NamedTuple):
    """A keyword argument of train(): its name, group, meaning and default, and the names it can be set to."""

    name: str
    group: str
    help: str
    default: str
    values: Tuple[str, ...]  # empty where any number or text will do


def settings() -> List[Setting]:
    """All settings of train(), with their defaults:

    for setting in lockstep.settings():
        print(setting.name, setting.default, setting.help)
    """
    defaults = Options("ls_train_options")
    found: List[Setting] = []
    room = ffi.new("char[]", 256)
    while True:
        row = lib.ls_train_setting_at(len(found))
        if row == ffi.NULL:
            return found
        lib.ls_setting_format(row, defaults.pointer, room, len(room))
        values = _values(row)
        help = text(row.help).replace("{values}", ", ".join(values))
        found.append(Setting(text(row.name).replace("-", "_"), text(row.group), help, text(room), values))


def _values(row: Any) -> Tuple[str, ...]:
    found: List[str] = []
    value = ffi.new("ls_setting_value *")
    while lib.ls_setting_value_at(row, len(found), value):
        found.append(text(value.name))
    return tuple(found)


def evaluate(
    source: Path,
    *,
    data: Union[Path, Dataset, Tuple[Any, Any], None] = None,
    model: Union[str, Graph, None] = None,
    best: bool = False,
    data_dir: Optional[Path] = None,
    samples: int = 0,
    batch: int = 128,
    devices: int = 0,
    threads: int = 1,
    logits: Optional[Path] = None,
    metrics: Optional[Path] = None,
    save: bool = False,
    vocab: Optional[Path] = None,
    cased: bool = False,
    replace_invalid: bool = False,
    seq_len: int = 0,
    layers: int = 0,
    width: int = 0,
    heads: int = 0,
    ffn: int = 0,
    max_len: int = 0,
    skip_bad: int = 0,
    cache: Optional[Path] = None,
) -> EvalResult:
    """Loss and accuracy of a run directory or a .safetensors file, as `lockstep eval` computes them. Ctrl-C ends it.

    data, data_dir      a name, a directory, a Dataset or arrays (default: the run's test data), and where its files are
    model               of a file of another program: its name, or a Graph
    best                the weights of the run's best evaluation (keep_best), not the newest
    samples, batch      a maximum (0: all), and how many are computed at a time
    devices, threads    how many devices (0: one per core) with how many threads each
    logits              write the model's outputs to this safetensors file
    metrics, save       write scores per class and the confusion matrix to this JSON file, or to eval.json of the run
    vocab, cased, replace_invalid, seq_len, layers, width, heads, ffn, max_len
                        of models of text, as in Model.load()
    skip_bad, cache     how many bad rows or files may be left out, and where decoded images are kept (default: the run's)
    """
    options = Options("ls_eval_options")
    options.set(source=source, best=int(best), data_dir=data_dir, samples=samples, batch=batch, devices=devices, threads=threads,
                logits=logits, metrics=metrics, save=int(save), vocab=vocab, cased=int(cased), replace_invalid=int(replace_invalid), seq_len=seq_len,
                layers=layers, width=width, heads=heads, ffn=ffn, max_len=max_len, skip_bad=skip_bad, cache=cache, quiet=1)  # fmt: skip
    caught = Caught()
    result = ffi.new("ls_eval_result *")
    stop = _put_stop(options)
    with contextlib.ExitStack() as uses:
        if isinstance(model, Graph):
            options.pointer.graph = uses.enter_context(options.keep(model)._in_use())
        else:
            options.set(model=model)
        if isinstance(data, (str, os.PathLike)):
            options.set(data=data)
        elif data is not None:
            dataset = options.keep(as_dataset(data, "data"))
            options.pointer.set, caught = uses.enter_context(dataset._in_use()), dataset._caught
        interruptible(lambda: caught.check(lib.ls_eval(options.pointer, result)), lambda: lib.ls_stop_request(stop))
    return result_of(result)

"""Train a model step by step, in a custom training loop."""

from __future__ import annotations

import contextlib
import threading
from typing import (TYPE_CHECKING, Any, Callable, ContextManager, Iterator, List, MutableMapping, NamedTuple, Optional,
                    Sequence, Union)  # fmt: skip

import numpy as np

from lockstep import _arrays, _end
from lockstep._arrays import Floats
from lockstep._binding import ffi
from lockstep._data import Dataset, as_dataset
from lockstep._errors import InterruptedRunError, InvalidError
from lockstep._handle import Handle, no_copies
from lockstep._library import Caught, Options, Path, c_text, check, check_callables, interruptible, lib, new_stop, number
from lockstep._model import Model, _ModelTexts, row_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from lockstep._settings import TrainerSettings


class Report(NamedTuple):
    """Result of one step, or of all steps of run(): means over their samples. tokens, masked, token_loss and
    token_accuracy are of text, else 0; gradient_norm is NaN without clip_norm."""

    steps: int
    samples: int
    loss: float
    correct: int
    accuracy: float
    tokens: int
    masked: int
    token_loss: float
    token_accuracy: float
    lr: float
    gradient_norm: float


class EvalResult(NamedTuple):
    """Result of an evaluation. mae, rmse and r2 are of regression, whose accuracy is NaN; the F1 scores are of
    multi-label data; masked, token_loss, token_accuracy and perplexity are of text."""

    samples: int
    loss: float
    accuracy: float
    seconds: float
    masked: int
    token_loss: float
    token_accuracy: float
    perplexity: float
    mae: float
    rmse: float
    r2: float
    micro_f1: float
    macro_f1: float
    fingerprint: str


class Position(NamedTuple):
    """How far a trainer is: steps in all, the epoch and the step in it; and on what it trains."""

    steps: int
    epoch: int
    epoch_step: int
    devices: int
    threads: int
    micro_batch: int


def report_of(found: Any) -> Report:
    return Report(found.steps, found.samples, found.loss, found.correct, found.accuracy, found.tokens, found.masked,
                  found.token_loss, found.token_accuracy, found.lr, found.gradient_norm)  # fmt: skip


def result_of(found: Any) -> EvalResult:
    values = [getattr(found, field) for field in EvalResult._fields[:-1]]
    return EvalResult._make([*values, f"{found.fingerprint:016x}"])


def _with_fingerprint(found: Any, model: Any) -> EvalResult:
    facts = ffi.new("ls_model_facts *")
    check(lib.ls_model_describe(model, facts))
    return result_of(found)._replace(fingerprint=f"{facts.fingerprint:016x}")


class Trainer(Handle):
    """A model with its optimizer, for training loops of your own.

        trainer = lockstep.Trainer(model, lr=1e-3, batch=128)
        for images, labels in batches:
            report = trainer.step(images, labels)
            print(report.loss)

    `batch` is the largest number of samples of a step. The other keyword arguments have the names and meanings of
    train()'s: micro_batch, optimizer, lr, momentum, beta1, beta2, epsilon, weight_decay, nesterov, clip_norm,
    schedule, steps, lr_min, lr_step_every, lr_step_factor, warmup, freeze, seed, devices, threads, pin, augment,
    precision (None: the model's own, of the run it was loaded from, else "fp32").

    The model has the new weights after every call, and predicts in the trainer's precision from then on. A step has the
    same bits on any number of devices and threads. A model has one trainer at a time: close() one before the next.
    """

    _instead = "save() it, and load() that into a Trainer made there"

    def __init__(self, model: Model, **settings: Unpack[TrainerSettings]) -> None:
        if not isinstance(model, Model):
            raise TypeError(f"model: a Model, not {type(model).__name__}; Model(name), Model(graph) and Model.load(run) make one")
        options = Options("ls_trainer_options")
        known = [name for name, _ in ffi.typeof("ls_trainer_options").fields if name != "size"]
        for name, value in settings.items():
            if name not in known:
                raise TypeError(f"Trainer has no setting '{name}'; it has {', '.join(known)}")
            options.set(**{name: value})
        out = ffi.new("ls_trainer **")
        with model._turn() as pointer:
            check(lib.ls_trainer_new(out, pointer, options.pointer))
            super().__init__(out[0], lib.ls_trainer_free, model._turns)  # the model changes with the trainer
        self._model = model
        self._call: Optional[str] = None  # that its thread is in
        self._report = ffi.new("ls_trainer_report *")

    def __enter__(self) -> Trainer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return "<lockstep.Trainer, closed>"
        return f"<lockstep.Trainer of {self._model!r}: {self.position.steps} steps, lr {self.lr:g}>"

    @property
    def model(self) -> Model:
        """The model that is trained."""
        return self._model

    # ---- steps

    def step(
        self,
        x: Any,
        labels: Optional[Any] = None,
        *,
        targets: Optional[Any] = None,
        segments: Optional[Sequence[Any]] = None,
        token_labels: Optional[Sequence[Any]] = None,
        indices: Optional[Any] = None,
    ) -> Report:
        """Forward, backward and update on 1 to `batch` samples: images (N, C, H, W) as for Model.predict(), or
        sequences of tokens, and labels (N) or float targets (N, outputs). `indices` number the samples, for
        dropout.

        Text: N sequences of token ids, each as long as it is, without padding. `segments`: a 0 or 1 for every token
        (transformers' token_type_ids), for pairs of sentences.

        `token_labels` are transformers' labels: for every token the id to predict, or -100 where nothing is. A
        language model learns from the tokens alone, step(x): each predicts the next, and the last one is only
        predicted, so samples have 2 to tokens_max + 1 tokens. With token_labels some can be left out; the label of a
        token is the token itself, it is predicted at the token before it, and every sample must have one. A model in
        pretraining needs labels and token_labels, and predicts the ids where they stand; some samples may have
        none."""
        batch = _Batch(self._model, x, labels, targets, segments, token_labels, indices)
        with self._alone("step()") as pointer:
            check(lib.ls_trainer_step(pointer, batch.pointer, self._report))
            return report_of(self._report)

    def backward(
        self,
        x: Any,
        labels: Optional[Any] = None,
        *,
        targets: Optional[Any] = None,
        segments: Optional[Sequence[Any]] = None,
        token_labels: Optional[Sequence[Any]] = None,
        indices: Optional[Any] = None,
    ) -> Report:
        """Forward and backward alone, of samples as for step(): the gradient is kept, the weights stay. If it is called
        again before update(), gradients add up to that of all samples together."""
        batch = _Batch(self._model, x, labels, targets, segments, token_labels, indices)
        with self._alone("backward()") as pointer:
            check(lib.ls_trainer_backward(pointer, batch.pointer, self._report))
            return report_of(self._report)

    def update(self) -> float:
        """Update the weights with the gradient of backward(). Returns its norm before clipping; NaN without
        clip_norm."""
        norm = ffi.new("double *")
        with self._alone("update()") as pointer:
            check(lib.ls_trainer_update(pointer, norm))
        return float(norm[0])

    def zero_grad(self) -> None:
        """Discard the gradient, without an update."""
        with self._alone("zero_grad()") as pointer:
            check(lib.ls_trainer_zero_gradient(pointer))

    def gradients(self) -> Gradients:
        """The gradient of the mean loss since the last update, by parameter name. Reading copies it, assigning sets
        what update() will use."""
        return Gradients(self)

    def run(self, data: Union[Dataset, Any], *, steps: int = 0, on_step: Optional[Callable[[Report], Any]] = None) -> Report:
        """Train on a Dataset or arrays (images, labels), in the order of train(): `steps` steps, or with 0 to the end
        of the epoch. The next run() goes on from there. `on_step` is called with a Report after every step; an
        exception in it ends the run and is raised by run(). Returns a report of all these steps."""
        check_callables(on_step=on_step)
        dataset = as_dataset(data, "data")
        caught = dataset._caught

        def hook(_: Any, report: Any) -> int:
            if on_step is not None:
                on_step(report_of(report))
            return 0

        function = caught.callback("ls_trainer_hook", hook, 1)
        with contextlib.ExitStack() as uses:
            uses.enter_context(_end.stoppable(lambda: caught.keep(InterruptedRunError("the program ends"))))
            pointer, samples = uses.enter_context(self._alone("run()")), uses.enter_context(dataset._turn())
            check(lib.ls_trainer_set_hook(pointer, function, ffi.NULL))
            try:
                caught.check(lib.ls_trainer_run(pointer, samples, number("steps", steps, "int64_t"), self._report))
                return report_of(self._report)
            finally:
                lib.ls_trainer_set_hook(pointer, ffi.NULL, ffi.NULL)

    def evaluate(
        self,
        data: Any,
        labels: Optional[Any] = None,
        *,
        targets: Optional[Any] = None,
        segments: Optional[Sequence[Any]] = None,
        token_labels: Optional[Sequence[Any]] = None,
    ) -> EvalResult:
        """Loss and accuracy with the current weights, of a Dataset, or of samples as for step(), as many as there are.
        Nothing is updated. Ctrl-C ends it after a micro-batch."""
        if isinstance(data, Dataset) or (labels is None and targets is None and not self._model.masked_max):
            given = dict(labels=labels, targets=targets, segments=segments, token_labels=token_labels)
            name = next((name for name, value in given.items() if value is not None), None)
            if name is not None and isinstance(data, Dataset):
                raise TypeError(f"{name}: a Dataset has its own")
            if name is not None:
                raise TypeError(f"{name}: give labels or targets, too: evaluate(samples, labels, {name}=...)")
            dataset = as_dataset(data, "data")
            return self._evaluate(lib.ls_trainer_evaluate_dataset, dataset._turn, dataset._caught)
        batch = _Batch(self._model, data, labels, targets, segments, token_labels, None)
        return self._evaluate(lib.ls_trainer_evaluate, lambda: contextlib.nullcontext(batch.pointer), Caught())

    def _evaluate(
        self, function: Callable[..., int], use_samples: Callable[[], ContextManager[Any]], caught: Caught
    ) -> EvalResult:
        result, handle = ffi.new("ls_eval_result *"), new_stop()
        guard, is_running = threading.Lock(), False

        def call() -> EvalResult:
            nonlocal is_running
            with self._turn() as pointer, self._model._in_use() as model, use_samples() as samples:
                check(lib.ls_trainer_set_stop(pointer, handle))
                try:
                    is_running = True
                    caught.check(function(pointer, samples, result))
                finally:
                    with guard:
                        is_running = False
                        if isinstance(caught.error, InterruptedRunError):
                            caught.error = None  # it came too late to be seen
                    lib.ls_trainer_set_stop(pointer, ffi.NULL)
                return _with_fingerprint(result, model)

        def stop() -> None:
            lib.ls_stop_request(handle)
            with guard:
                if is_running:  # else the dataset is at another call
                    caught.keep(InterruptedRunError("stopped on request"))  # a class of Python ends at its next sample

        return interruptible(call, stop)

    @contextlib.contextmanager
    def _alone(self, call: str) -> Iterator[Any]:
        """A turn for a call that changes weights or gradients, which cannot be inside another such call: in its
        callbacks."""
        with self._turn() as pointer:
            if self._call is not None:
                raise InvalidError(f"{call} inside {self._call} of the same trainer: call it when that has returned; a callback may "
                                   "evaluate, save, set `lr` and use the model")  # fmt: skip
            try:
                self._call = call
                yield pointer
            finally:
                self._call = None

    # ---- the rest

    @property
    def lr(self) -> float:
        """The learning rate of the next step. Setting it replaces the schedule."""
        out = ffi.new("double *")
        with self._turn() as pointer:
            check(lib.ls_trainer_get_lr(pointer, out))
        return float(out[0])

    @lr.setter
    def lr(self, value: float) -> None:
        with self._turn() as pointer:
            check(lib.ls_trainer_set_lr(pointer, number("lr", value, "double")))

    @property
    def position(self) -> Position:
        """Steps so far, the epoch and the step in it, devices, threads and micro-batch."""
        out = ffi.new("ls_trainer_position *")
        with self._turn() as pointer:
            check(lib.ls_trainer_get_position(pointer, out))
        return Position(*(getattr(out, field) for field in Position._fields))

    def save(self, directory: Path, *, keep: int = 2) -> None:
        """A checkpoint of weights, optimizer and position; `keep` of them stay there (0: all)."""
        with self._turn() as pointer:
            check(lib.ls_trainer_save(pointer, c_text(directory), number("keep", keep, "int64_t")))

    def load(self, directory: Path) -> None:
        """Go on from the newest checkpoint, with the same bits as if there had been no stop."""
        with self._alone("load()") as pointer:
            check(lib.ls_trainer_load(pointer, c_text(directory)))


EMPTY_BATCH = Options("ls_batch").pointer


class _Batch:
    """ls_batch of arrays, which it keeps."""

    def __init__(
        self,
        model: Model,
        x: Any,
        labels: Any,
        targets: Optional[Any],
        segments: Optional[Sequence[Any]],
        token_labels: Optional[Sequence[Any]],
        indices: Optional[Any],
    ) -> None:
        if model.predicts_next and (labels is not None or targets is not None):
            raise TypeError(f"{'labels' if labels is not None else 'targets'}: a language model predicts tokens; leave them out, and each token "
                            "predicts the next, or give token_labels")  # fmt: skip
        if not model.predicts_next and (labels is None) == (targets is None):
            raise TypeError(f"give labels or targets, not {'both' if targets is not None else 'neither'}")
        self.pointer = ffi.new("ls_batch *", EMPTY_BATCH[0])
        self.kept: List[Any] = []
        if model.is_text:
            text = _training_texts(model, x, labels, segments, token_labels)
            self.kept += [text]
            self.pointer.count, self.pointer.text = len(text), text.samples
        else:
            if token_labels is not None:
                raise TypeError("token_labels are for models of text")
            pixels = model._images(x, segments)
            self.kept.append(pixels.pointer)
            self.pointer.count, self.pointer.images = len(pixels), pixels.pointer
            if labels is not None:
                self.kept.append(_arrays.pointer(_arrays.labels(labels, "labels", len(pixels)), "int32_t"))
                self.pointer.labels = self.kept[-1]
        if targets is not None:
            wanted = _arrays.targets(targets, "targets", self.pointer.count, model.outputs)
            self.kept.append(_arrays.pointer(wanted, "float"))
            self.pointer.targets = self.kept[-1]
        if indices is not None:
            places = _arrays.indices(indices, "indices")
            if places.shape != (self.pointer.count,):
                raise ValueError(f"indices: shape {places.shape} does not fit ({self.pointer.count},)")
            self.kept.append(_arrays.pointer(places, "uint64_t"))
            self.pointer.indices = self.kept[-1]


def _training_texts(model: Model, x: Any, labels: Any, segments: Optional[Sequence[Any]], token_labels: Optional[Sequence[Any]]) -> _ModelTexts:
    """Text to learn from: what it needs follows from the model."""
    text = _ModelTexts(model, x, segments)
    if labels is not None:
        text.set_labels(_arrays.labels(labels, "labels", len(text)))
    if model.predicts_next:
        text.predict_next(token_labels)
    elif model.masked_max and token_labels is None:
        raise TypeError("token_labels: the model predicts masked tokens and needs the id of each, -100 for the other tokens")
    elif model.masked_max:
        assert token_labels is not None
        text.predict_masked(token_labels)
    elif token_labels is not None:
        raise TypeError(f"token_labels: {model!r} predicts no tokens; Model(..., masked=N) makes one for pretraining")
    text.check_length(model.tokens_max)
    return text


class Gradients(MutableMapping[str, Floats]):
    """The gradients of a trainer by parameter name, like a dict: reading copies one out, assigning copies one in."""

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        self._rows = {row.name: row for row in trainer._model.parameter_infos() if row.is_trained}

    __reduce__ = no_copies("the gradients", "dict(trainer.gradients()) has the values")

    def __repr__(self) -> str:
        return f"<gradients of {self._trainer!r}>"

    def _shape(self, name: str) -> Any:
        return row_of(self._rows, name, "gradient").shape

    def __getitem__(self, name: str) -> Floats:
        values = np.empty(self._shape(name), dtype=np.float32)
        trainer = self._trainer
        with trainer._alone("gradients()") as pointer:
            check(lib.ls_trainer_get_gradient(pointer, name.encode(), _arrays.pointer(values, "float"), values.size))
        return values

    def __setitem__(self, name: str, values: Any) -> None:
        array = _arrays.floats(values, name, self._shape(name))
        trainer = self._trainer
        with trainer._alone("gradients()") as pointer:
            check(lib.ls_trainer_set_gradient(pointer, name.encode(), _arrays.pointer(array, "float"), array.size))

    def __delitem__(self, name: str) -> None:
        raise TypeError("a gradient cannot be removed; set it to zeros")

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

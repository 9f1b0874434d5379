"""A model in memory: from a name, a graph, a run or a file; predict, look at parameters and change them, save."""

from __future__ import annotations

import difflib
import math
import os
import time
from typing import Any, Callable, Dict, Iterator, List, Mapping, MutableMapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from lockstep import _arrays
from lockstep._arrays import Floats
from lockstep._binding import ffi
from lockstep._data import TASKS, normalisation_of
from lockstep._graph import Graph, Node, nodes_of
from lockstep._handle import no_copies
from lockstep._library import Caught, Options, Path, c_text, check, interruptible, lib, number, text
from lockstep._samples import Samples
from lockstep._text import Texts

# Ctrl-C is seen between calls of C, which get as many samples as take this time, and no more than that. No prediction depends on that.
CHUNK_S, CHUNK = 0.2, 4096
MICRO_BATCH = 32  # what a core predicts at a time


class Parameter(NamedTuple):
    """What a parameter is; its values are model.parameters()[name]."""

    name: str
    shape: Tuple[int, ...]
    is_trained: bool  # False: running statistics


class Model(Samples):
    """A graph and its weights.

        model = lockstep.Model("resnet18", classes=10)      # initial weights, those of train() with the same seed
        model = lockstep.Model(graph)                       # of your own graph, which the model takes over
        model = lockstep.Model.load("runs/first")           # a run, or a safetensors file
        probabilities = model.predict(images, probabilities=True)

    A prediction has the same bits whatever is predicted with it, on any number of devices and threads.
    """

    _instead = "save() and load() a file, or send state_dict() to a Model of the same arguments"

    def __init__(
        self,
        model: Union[str, Graph],
        *,
        seed: int = 1,
        input: Tuple[int, int, int] = (1, 28, 28),
        classes: int = 10,
        dropout: float = 0.0,
        label_smoothing: float = 0.0,
        tokens: int = 0,
        masked: int = 0,
        vocabulary: int = 0,
        layers: int = 0,
        hidden: int = 0,
        heads: int = 0,
        ffn: int = 0,
        positions: int = 0,
    ) -> None:
        """A new model with initial weights: by name (models() lists them) or of a finished Graph, which the model
        then owns.

        seed                     of the initial weights
        input, classes           images (channels, height, width), and the number of outputs
        dropout                  the probability to drop a value, in models that have dropout
        label_smoothing          of the loss, for training
        tokens, vocabulary       text: the longest sample and the number of token ids
        masked                   text: how many tokens of a sample are masked, to pretrain BERT (0: it classifies)
        layers, hidden, heads, ffn, positions
                                 text: number of layers, hidden size, attention heads, feed-forward size, longest position

        0 is the model's own default. For a Graph give `seed` alone."""
        out = ffi.new("ls_model **")
        seed = number("seed", seed, "uint64_t")
        if isinstance(model, Graph):
            model._give_away(lambda graph: check(lib.ls_model_new(out, graph, seed)))
        else:
            if not isinstance(model, str):
                raise TypeError(f"model: a name or a Graph, not {type(model).__name__}")
            shape_of(input)
            if number("classes", classes, "int") < 1:
                raise ValueError(f"classes: {classes}; a model has at least 1")
            options = Options("ls_model_options")
            options.set(name=model, classes=classes, dropout=dropout, label_smoothing=label_smoothing)
            options.pointer.channels, options.pointer.height, options.pointer.width = input
            for field, value in dict(tokens=tokens, masked=masked, vocabulary=vocabulary, layers=layers, hidden=hidden, heads=heads, ffn=ffn,
                                     positions=positions).items():  # fmt: skip
                setattr(options.pointer.text, field, number(field, value, "int"))
            check(lib.ls_model_new_named(out, options.pointer, seed))
        self._begin(out[0])

    @classmethod
    def load(
        cls,
        source: Path,
        *,
        best: bool = False,
        model: Optional[str] = None,
        input: Optional[Tuple[int, int, int]] = None,
        data: Optional[Path] = None,
        data_dir: Optional[Path] = None,
        vocab: Optional[Path] = None,
        cased: bool = False,
        replace_invalid: bool = False,
        mean: Union[float, Sequence[float], None] = None,
        deviation: Union[float, Sequence[float], None] = None,
        labels: Optional[Path] = None,
        seq_len: int = 0,
        layers: int = 0,
        width: int = 0,
        heads: int = 0,
        ffn: int = 0,
        max_len: int = 0,
        devices: int = 0,
        threads: int = 0,
    ) -> Model:
        """Load a trained model: the newest checkpoint of a run directory, its best weights (`best=True`, of a run
        with keep_best), or a .safetensors file. Runs and files of Lockstep say what the model is; nothing else need
        be given.

        Files of other programs need `model`, the name, and `input` (channels, height, width); `mean` and `deviation`
        of pixels from 0 to 1, one number or one per channel, if images are to be read or bytes predicted; and
        `labels`, a file with the name of each class on a line. `data` and `data_dir` name the dataset whose shape,
        classes and constants are to be used.

        Text: `vocab` is the vocabulary file of the tokenizer; `cased` keeps case and accents, `replace_invalid` drops
        bytes that are not UTF-8, which are an error otherwise; `seq_len`, `layers`, `width`, `heads`, `ffn` and
        `max_len` are the sizes, as train() names them (0: what the file says).

        `devices` and `threads` are for predictions, as in set_devices()."""
        options = Options("ls_model_load_options")
        options.set(source=source, best=int(best), model=model, data=data, data_dir=data_dir, vocab=vocab, cased=cased,
                    replace_invalid=replace_invalid, mean=_numbers("mean", mean), deviation=_numbers("deviation", deviation),
                    labels=labels, seq_len=seq_len, layers=layers, width=width, heads=heads, ffn=ffn, max_len=max_len, devices=devices, threads=threads,
                    input="x".join(str(n) for n in shape_of(input)) if input is not None else None)  # fmt: skip
        out = ffi.new("ls_model **")
        check(lib.ls_model_load(out, options.pointer))
        made = cls.__new__(cls)
        made._begin(out[0])
        return made

    def _begin(self, pointer: Any) -> None:
        super().__init__(pointer, lib.ls_model_free)
        facts = self._facts()
        self.name: Optional[str] = text(facts.name) or None
        self.input_shape: Tuple[int, int, int] = (facts.channels, facts.height, facts.width)
        self.is_text: bool = facts.tokens_max > 0
        self.predicts_next: bool = bool(facts.predicts_next)
        self.tokens_max: int = facts.tokens_max
        self.vocabulary: int = facts.vocabulary
        self.masked_max: int = facts.masked_max
        self.outputs: int = facts.outputs
        self.task: str = TASKS[facts.task]
        self.parameter_count: int = facts.parameters
        self._infos = {row.name: row for row in self._list_parameters()}

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return "<lockstep.Model, closed>"
        what = f"{self.tokens_max} tokens" if self.is_text else "x".join(map(str, self.input_shape))
        return f"<lockstep.Model {self.name or 'of a graph'}: {what} to {self.outputs}, {self.parameter_count} parameters>"

    def _facts(self) -> Any:
        facts = ffi.new("ls_model_facts *")
        with self._turn() as pointer:
            check(lib.ls_model_describe(pointer, facts))
        return facts

    @property
    def fingerprint(self) -> str:
        """xxh64 of parameters and running statistics, 16 hexadecimal digits, as `lockstep train` prints it."""
        return f"{self._facts().fingerprint:016x}"

    @property
    def precision(self) -> str:
        """What it computes in: "fp32", "bf16", "bf16-amx", or "bf16-layers" for bf16 models of earlier versions."""
        return text(self._facts().precision)

    @property
    def normalisation(self) -> Optional[Tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]:
        """(mean, deviation) of the images that it was trained on; None: not known, or text."""
        with self._turn() as pointer:
            return normalisation_of(lib.ls_model_normalisation(pointer))

    def set_devices(self, devices: int = 0, threads: int = 0) -> None:
        """Predict on this many devices (0: one per core) with this many threads each (0: one). The bits stay the
        same."""
        with self._turn() as pointer:
            check(lib.ls_model_set_devices(pointer, number("devices", devices, "int64_t"), number("threads", threads, "int64_t")))

    # ---- prediction

    def predict(self, x: Any, *, probabilities: bool = False, segments: Optional[Sequence[Any]] = None) -> Floats:
        """Logits (N, outputs). With `probabilities`, what they mean: probabilities of classes (softmax) or labels
        (sigmoid), or for regression numbers in the units of the targets.

        `x` is an array of images (N, C, H, W), normalised as the model wants them (`normalisation`); bytes (uint8)
        are normalised here where the model knows how. C-contiguous float32 is not copied. For a model of text, `x` is
        a list of texts or of sequences of token ids, and `segments`, if given, a list with a 0 or 1 for every token.
        read_image() and read_row() make samples from files and rows of tables. Ctrl-C ends a long prediction.
        """
        samples = self._token_rows(x, segments) if self.is_text else self._images(x, segments).finite()
        logits = np.empty((len(samples), self.outputs), dtype=np.float32)
        out = _arrays.pointer(logits, "float")
        first, chunk, smallest = 0, _smallest_chunk(), _smallest_chunk()
        while first < len(samples):
            count, begin = min(chunk, len(samples) - first), time.monotonic()
            with self._turn() as pointer:
                check(samples.predict(pointer, first, count, out + first * self.outputs))
            seconds = max(time.monotonic() - begin, 1e-6)
            first, chunk = first + count, max(smallest, min(CHUNK, int(count * CHUNK_S / seconds)))
        return self.interpret(logits) if probabilities and len(logits) else logits

    def generate(
        self,
        prompt: Union[str, bytes] = "",
        *,
        max_new_tokens: int = 200,
        num_samples: int = 1,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 1,
        threads: int = 0,
        ignore_eos: bool = False,
        lookup: int = 15,
        on_token: Optional[Callable[[int, bytes], Any]] = None,
    ) -> List[str]:
        """Continuations of the prompt by a language model, without the prompt: `num_samples` of them, each of up to
        `max_new_tokens` tokens, or up to an end-of-text token unless `ignore_eos`. An empty prompt begins a new text.

        Logits are divided by `temperature` (0: always the most probable token); tokens are sampled from the `top_k`
        most probable ones (0: from all), and of those from the most probable whose probabilities add up to `top_p`.
        `on_token` is called with the number of the sample and the bytes of every token, which may end inside a
        character; what it raises ends the call and is raised here. The same model, prompt and seed give the same
        texts on any number of threads, and with any `lookup`, which is for speed: up to that many tokens of a single
        sample are guessed where the text repeats itself.
        """
        options, caught = Options("ls_generate_options"), Caught()
        encoded = prompt.encode() if isinstance(prompt, str) else bytes(prompt)
        written, stopped = [bytearray() for _ in range(max(num_samples, 0))], [False]

        def write(_: Any, number: int, piece: Any, count: int) -> None:
            got = bytes(ffi.buffer(piece, count))
            written[number] += got
            if on_token is not None and count and caught.error is None:
                on_token(number, got)

        options.set(prompt_bytes=len(encoded), max_new_tokens=max_new_tokens, num_samples=num_samples,
                    temperature=temperature, top_k=top_k, top_p=top_p, seed=seed, threads=threads,
                    ignore_eos=int(ignore_eos), lookup=lookup)  # fmt: skip
        options.pointer.prompt = options.keep(ffi.new("char[]", encoded))
        options.pointer.write = options.keep(ffi.callback(
            "void(void *, int64_t, const char *, size_t)", write, onerror=lambda _, error, __: caught.keep(error)))  # fmt: skip
        options.pointer.stop = options.keep(ffi.callback(
            "int(void *)", lambda _: int(stopped[0] or caught.error is not None), error=1))  # fmt: skip

        def call() -> None:
            with self._turn() as pointer:
                caught.check(lib.ls_generate(pointer, options.pointer, ffi.NULL))

        def stop() -> None:
            stopped[0] = True

        interruptible(call, stop)
        return [text.decode(errors="replace") for text in written]

    def _token_rows(self, x: Any, segments: Any) -> _ModelTexts:
        found = _ModelTexts(self, x, segments)
        found.check_length(self.tokens_max)
        return found

    def _images(self, x: Any, segments: Any) -> _Images:
        if segments is not None:
            raise TypeError("segments are for models of text")
        self._check()  # an error if it was closed
        array = _arrays.numbers(x, "x")
        if array.dtype.kind == "f":  # the usual case, which every step of a loop pays for
            return _Images(_arrays.floats(array, "x", (-1, *self.input_shape)))
        found = self.normalisation
        constants = (found[0].tolist(), found[1].tolist()) if found is not None else None
        return _Images(_arrays.images(array, "x", self.input_shape, constants))

    # ---- layers and parameters

    def nodes(self) -> List[Node]:
        """The layers of the model, in the order in which they run: operator, layer, inputs, shape, parameters."""
        with self._turn() as pointer:
            return nodes_of(lib.ls_model_graph(pointer))

    def _list_parameters(self) -> List[Parameter]:
        found: List[Parameter] = []
        row = ffi.new("ls_model_param *")
        with self._turn() as pointer:
            while lib.ls_model_param_at(pointer, len(found), row):
                found.append(Parameter(text(row.name), tuple(row.shape[0 : row.rank]), bool(row.is_trained)))
        return found

    def parameter_infos(self) -> List[Parameter]:
        """Name and shape of all parameters and running statistics."""
        return list(self._infos.values())

    def parameters(self) -> Parameters:
        """All parameters and running statistics by name. Reading copies the values, assigning changes them:

            weights = model.parameters()
            weights["fc.bias"] = numpy.zeros(10)
        """
        return Parameters(self)

    def state_dict(self) -> Dict[str, Floats]:
        """Copies of all parameters and running statistics by name, as PyTorch names and shapes them."""
        return dict(self.parameters())

    def load_state_dict(self, values: Mapping[str, Any], strict: bool = True) -> None:
        """Set parameters from a dict of arrays, for example of load_file(). With `strict` the dict must have all
        names of the model and no others; else names that only one of them has are left alone. Nothing changes if an
        array does not fit."""
        missing = [name for name in self._infos if name not in values]
        unknown = [name for name in values if name not in self._infos]
        if strict and (missing or unknown):
            raise KeyError(f"missing: {_some(missing)}; unknown: {_some(unknown)}")
        ready = {name: _arrays.floats(values[name], name, self._infos[name].shape) for name in self._infos if name in values}
        for name, array in ready.items():
            self.parameters()[name] = array

    # ---- files

    def save(self, path: Path) -> None:
        """A safetensors file that load() and PyTorch read."""
        with self._turn() as pointer:
            check(lib.ls_model_save(pointer, c_text(path)))

    def export_safetensors(self, path: Path) -> None:
        """A safetensors file for other programs: adapters (LoRA) are added to the weights they adapt, and left out."""
        with self._turn() as pointer:
            check(lib.ls_model_export_safetensors(pointer, c_text(path)))

    def export_onnx(self, path: Path) -> None:
        """An ONNX file for other programs. It computes in fp32: of a model in fp32 the logits are the same but for
        rounding (1e-5 of the largest); of one in bf16 (`precision`, which the file's metadata name) they differ by
        about 0.1 % of the largest."""
        with self._turn() as pointer:
            check(lib.ls_model_export_onnx(pointer, c_text(path)))


class Parameters(MutableMapping[str, Floats]):
    """The parameters of a model by name, like a dict: reading copies an array out of the model, assigning copies one
    in."""

    __reduce__ = no_copies("the parameters", "model.state_dict() has the values")

    def __init__(self, model: Model) -> None:
        self._model = model

    def __getitem__(self, name: str) -> Floats:
        row = row_of(self._model._infos, name, "parameter")
        values = np.empty(row.shape, dtype=np.float32)
        with self._model._turn() as pointer:
            check(lib.ls_model_get(pointer, name.encode(), _arrays.pointer(values, "float"), values.size))
        return values

    def __setitem__(self, name: str, values: Any) -> None:
        row = row_of(self._model._infos, name, "parameter")
        array = _arrays.floats(values, name, row.shape)
        with self._model._turn() as pointer:
            check(lib.ls_model_set(pointer, name.encode(), _arrays.pointer(array, "float"), array.size))

    def __delitem__(self, name: str) -> None:
        raise TypeError("a parameter cannot be removed from a model")

    def __iter__(self) -> Iterator[str]:
        return iter(self._model._infos)

    def __len__(self) -> int:
        return len(self._model._infos)

    def __repr__(self) -> str:
        return f"<parameters of {self._model!r}>"


def row_of(rows: Mapping[str, Parameter], name: str, what: str) -> Parameter:
    """The row of that name; an exception that names those that look like it."""
    row = rows.get(name)
    if row is None:
        near = difflib.get_close_matches(str(name), rows, n=3) or list(rows)
        raise KeyError(f"no {what} {name!r}; there is {_some(near)}")
    return row


def _some(names: Sequence[str]) -> str:
    """Names for a message: all, or the first of many."""
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "") if names else "none"


def _smallest_chunk() -> int:
    """Work for all cores."""
    return MICRO_BATCH * len(os.sched_getaffinity(0))


class _Images:
    """Images to predict."""

    def __init__(self, array: Floats) -> None:
        self.array = array
        self.pointer = _arrays.pointer(array, "float")

    def __len__(self) -> int:
        return len(self.array)

    def finite(self) -> _Images:
        """Itself; an exception if a value is infinite or not a number."""
        if self.array.size and not np.isfinite(self.array.sum(dtype=np.float64)):
            sample = int(np.flatnonzero(~np.isfinite(self.array).reshape(len(self), -1).all(axis=1))[0])
            raise ValueError(f"x: a value of sample {sample} is infinite or not a number")
        return self

    def predict(self, model: Any, first: int, count: int, out: Any) -> int:
        return int(lib.ls_model_predict(model, self.pointer + first * math.prod(self.array.shape[1:]), count, out))


class _ModelTexts(Texts):
    """Sequences of tokens to predict, or to train on."""

    def __init__(self, model: Model, x: Sequence[Any], segments: Optional[Sequence[Any]]) -> None:
        super().__init__(x, model.vocabulary, segments, lambda words: model.tokenize(words).tokens)

    def predict(self, model: Any, first: int, count: int, out: Any) -> int:
        return int(lib.ls_model_predict_text(model, self.samples + first, count, out))


def _numbers(name: str, values: Any) -> Optional[str]:
    """Numbers as the library reads them, "0.485,0.456,0.406"; all digits that they have."""
    if values is None:
        return None
    array = np.asarray(values)
    if array.dtype.kind not in "fiu" or array.ndim > 1 or array.size == 0:
        raise TypeError(f"{name}: a number or one per channel, not {values!r}")
    return ",".join(repr(float(each)) for each in array.reshape(-1))


def shape_of(input: Any) -> Tuple[int, int, int]:
    """The shape of an image; an exception if it is none."""
    if isinstance(input, str) or not hasattr(input, "__iter__"):
        raise TypeError(f"input: {input!r}; it is (channels, height, width)")
    sizes = [number("input", size, "int") for size in input]
    if len(sizes) != 3 or min(sizes) < 1:
        raise ValueError(f"input: {input}; it must be (channels, height, width), each 1 or more")
    return sizes[0], sizes[1], sizes[2]


class ModelRow(NamedTuple):
    """A model that comes with Lockstep. pretrains: it learns from masked words (BERT); predicts_next: it is a
    language model (GPT)."""

    name: str
    summary: str
    is_text: bool
    pretrains: bool
    predicts_next: bool


def models() -> List[ModelRow]:
    """All models that have names, for Model(name) and train(model=name)."""
    found: List[ModelRow] = []
    while True:
        row = lib.ls_model_row_at(len(found))
        if row == ffi.NULL:
            return found
        found.append(ModelRow(text(row.name), text(row.summary), bool(row.is_text), bool(row.pretrains),
                              bool(row.predicts_next)))  # fmt: skip

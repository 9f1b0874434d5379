"""Datasets: by name, from numpy arrays, or from a Python class."""

from __future__ import annotations

import operator
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from lockstep import _arrays
from lockstep._arrays import Floats, Labels, Normalisation
from lockstep._binding import ffi
from lockstep._handle import Handle
from lockstep._library import Caught, Options, Path, c_text, check, lib, number, text
from lockstep._text import Texts


TASKS = ("classification", "multi-label", "regression")  # in the order of ls_task


class TextSample(NamedTuple):
    """A sample of text: token ids and segments (length); `places`, the positions of masked tokens, and `targets`, the
    token ids to predict there; and the label."""

    tokens: Labels
    segments: Labels
    places: Labels
    targets: Labels
    label: int


class Dataset(Handle):
    """Samples to train, evaluate or predict with. len(data) is their number, data[i] a sample: (image, label), or a
    TextSample.

        digits = lockstep.Dataset("glyphs", samples=6000)          # by name, or a directory
        mine = lockstep.Dataset.from_arrays(images, labels)        # numpy
        lazy = lockstep.Dataset.wrap(MyDataset(), classes=10)      # __len__ and __getitem__
    """

    _instead = "make it there, by the same call"

    def __init__(
        self,
        name: Path,
        split: str = "train",
        *,
        dir: Optional[Path] = None,
        samples: int = 0,
        seed: int = 1,
        classes: int = 0,
        normalisation: Optional[Normalisation] = None,
        vocab: Optional[Path] = None,
        cased: bool = False,
        tokens: int = 0,
        next_token: bool = False,
        phrases: bool = False,
        replace_invalid: bool = False,
        image_size: int = 0,
        cache: Optional[Path] = None,
        target: Optional[str] = None,
        task: Optional[str] = None,
        text_column: Optional[str] = None,
        skip_bad: int = 0,
        columns: Optional[str] = None,
    ) -> None:
        """Open a dataset by its name (datasets() lists them), a directory of images or a file of text or rows.

        split           "train" or "test"
        dir             where the files are, if not in the cache
        samples         how many samples a generated dataset has, and of others a maximum (0: all)
        seed            of generated datasets
        classes         how many classes a generated dataset has (0: its default)
        normalisation   (mean, deviation) per channel in place of the dataset's own

        Images from files: `image_size` scales them to that many pixels each way (0: the size of the first image);
        `cache` keeps decoded images: "auto", "off" or a folder.

        Text: `vocab` is the vocabulary file of the tokenizer, `cased` keeps case and accents, `tokens` is the longest
        sample (0: the default), `next_token` is for language models (each token predicts the next), `phrases` takes
        every phrase of a treebank (sst5), not whole sentences alone, and `replace_invalid` replaces bytes that are not
        UTF-8, which are an error otherwise.

        Tables (CSV, TSV, JSONL): `target` names the columns to predict, `task` is "classification", "multi-label" or
        "regression", `text_column` is the column of text, `skip_bad` how many bad rows may be left out, and `columns`
        says how columns become numbers: give test data the `Dataset.columns` of the training data."""
        if split not in ("train", "test"):
            raise ValueError(f"split={split!r}; it is 'train' or 'test'")
        options = Options("ls_dataset_options")
        options.set(name=name, dir=dir, samples=samples, seed=seed, classes=classes, vocab=vocab, cased=int(cased),
                    tokens=tokens, next_token=int(next_token), phrases=int(phrases), replace_invalid=int(replace_invalid), image_size=image_size, cache=cache,
                    target=target, task=task, text_column=text_column, skip_bad=skip_bad, columns=columns,
                    split=lib.LS_SPLIT_TRAIN if split == "train" else lib.LS_SPLIT_TEST)  # fmt: skip
        if normalisation is not None:
            options.pointer.normalisation = _normalisation_struct(normalisation, options)
        out = ffi.new("ls_dataset **")
        check(lib.ls_dataset_open(out, options.pointer))
        self._begin(out[0])

    def _begin(self, pointer: Any, kept: Any = None, caught: Optional[Caught] = None) -> None:
        super().__init__(pointer, lib.ls_dataset_free)
        self._kept = kept  # arrays and callbacks that the C dataset uses
        self._caught = caught or Caught()
        info = lib.ls_dataset_describe(pointer)
        self.name: str = text(info.name)
        self.classes: int = info.classes
        self.task: str = TASKS[info.task]
        self.target_count: int = info.targets
        columns = lib.ls_dataset_columns(pointer)
        self.columns: Optional[str] = text(columns) if columns != ffi.NULL else None
        self.is_text: bool = info.tokens_max > 0
        self.tokens_max: int = info.tokens_max
        self.vocabulary: int = info.vocabulary
        self.masked_max: int = info.masked_max
        self.shape: Tuple[int, int, int] = (info.channels, info.height, info.width)
        self._samples: int = info.samples

    @classmethod
    def from_arrays(
        cls,
        images: Any,
        labels: Optional[Any] = None,
        *,
        targets: Optional[Any] = None,
        task: str = "regression",
        classes: Optional[int] = None,
        normalisation: Optional[Normalisation] = None,
        name: str = "arrays",
    ) -> Dataset:
        """Images (N, C, H, W) and labels (N); rows of F numbers are images (N, F, 1, 1). C-contiguous float32 images
        and int32 labels are not copied: do not change them while the dataset is used. Bytes (uint8) need a
        normalisation, (mean, deviation) of pixels from 0 to 1. Without `classes`, the largest label + 1 is their
        number.

        Instead of labels: `targets`, floats (N, M) or (N), and their `task`: "regression", "multi-label" (each from 0
        to 1), or "classification" (a probability per class)."""
        pixels = _arrays.images(images, "images", None, normalisation)
        if (labels is None) == (targets is None):
            raise TypeError(f"give labels or targets, not {'both' if targets is not None else 'neither'}")
        if targets is None:
            numbers = _arrays.labels(labels, "labels", len(pixels))
            info = _info(name, len(pixels), pixels.shape[1:], classes if classes is not None else _classes(numbers))
            make, wanted = lib.ls_dataset_from_arrays, _arrays.pointer(numbers, "int32_t")
        else:
            _refuse_classes(classes)
            values = _arrays.targets(targets, "targets", len(pixels))
            info = _info(name, len(pixels), pixels.shape[1:], values.shape[1])
            info.task, info.targets = _task(task), values.shape[1]
            make, wanted = lib.ls_dataset_from_targets, _arrays.pointer(values, "float")
        kept = [_arrays.pointer(pixels, "float"), wanted]
        return cls._made(lambda out: make(out, info, *kept), kept)

    @classmethod
    def wrap(cls, samples: Any, *, classes: int, name: str = "python") -> Dataset:
        """A dataset of any object with __len__ and __getitem__, for example one of PyTorch. Its samples are (image,
        label): floats (C, H, W), normalised, and a whole number below `classes`. Several threads call __getitem__, in
        any order; the same index must always return the same sample. An exception in it ends the run, and train()
        raises it."""
        if not hasattr(samples, "__len__") or not hasattr(samples, "__getitem__"):
            raise TypeError(f"samples: an object with __len__ and __getitem__ is wanted, not {type(samples).__name__}")
        if len(samples) == 0:
            raise ValueError("samples: there are none")
        classes = number("classes", classes, "int")
        first = samples[0]
        shape = np.asarray(_sample(first, 0)[0]).shape
        if len(shape) != 3:
            raise ValueError(f"sample 0: an image of shape {shape}; it must be (C, H, W)")
        caught = Caught()

        def read(_: Any, index: int, image: Any, label: Any) -> int:
            pixels, number = _sample(samples[index], index)
            target = np.frombuffer(ffi.buffer(image, 4 * pixels_of(shape)), dtype=np.float32).reshape(shape)
            target[...] = _arrays.floats(pixels, f"sample {index}", shape)
            number = _whole(number, f"sample {index}: label")
            if not 0 <= number < classes:
                raise ValueError(f"sample {index}: label {number}; labels are 0 to {classes - 1}")
            if not bool(np.isfinite(target).all()):
                raise ValueError(f"sample {index}: a value is not finite")
            label[0] = number
            return int(lib.LS_OK)

        ops = ffi.new("ls_dataset_ops *")
        function = caught.callback("ls_status(void *, uint64_t, float *, int32_t *)", read, lib.LS_EINVALID)
        ops.read = function
        info = _info(name, len(samples), shape, classes)
        return cls._made(lambda out: lib.ls_dataset_new(out, info, ops, ffi.NULL), [function, samples], caught)

    @classmethod
    def from_tokens(
        cls,
        samples: Sequence[Any],
        labels: Optional[Any] = None,
        *,
        vocabulary: int,
        classes: Optional[int] = None,
        targets: Optional[Any] = None,
        task: str = "regression",
        segments: Optional[Sequence[Any]] = None,
        token_labels: Optional[Sequence[Any]] = None,
        name: str = "tokens",
    ) -> Dataset:
        """Text: `samples` are sequences of token ids from 0 to `vocabulary` - 1, each as long as it is, without padding.

        To classify, give labels (N), or float targets and their task as in from_arrays(). `segments` are a 0 or 1 for
        every token, for pairs of sentences. To pretrain, also give `token_labels`: for every token the id to predict
        there, or -100 where nothing is.

        Without labels and targets the dataset is for a language model: each token predicts the next, and the last one
        is only predicted. `token_labels` may then leave some out: the label of a token is the token itself, or -100 if
        it is not to be predicted. See Trainer.step()."""
        vocabulary = number("vocabulary", vocabulary, "int")
        text = Texts(samples, vocabulary, segments)
        if not len(text):
            raise ValueError("samples: there are none")
        if labels is not None and targets is not None:
            raise TypeError("give labels or targets, not both")
        known, floats = 1, None
        if labels is not None:
            numbers = _arrays.labels(labels, "labels", len(text))
            known = classes if classes is not None else _classes(numbers)
            if numbers.min() < 0 or numbers.max() >= known:
                raise ValueError(f"labels: {numbers.min()} to {numbers.max()}; labels are 0 to {known - 1}")
            text.set_labels(numbers)
        elif targets is not None:
            _refuse_classes(classes)
            floats = _arrays.targets(targets, "targets", len(text))
            known = floats.shape[1]
        elif classes is not None:
            raise TypeError("classes: without labels the dataset is for a language model, which has none")
        if labels is None and targets is None:
            text.predict_next(token_labels)
        elif token_labels is not None:
            text.predict_masked(token_labels)
        info = _info(name, len(text), (0, 0, 0), known)
        info.tokens_max, info.masked_max, info.vocabulary = text.longest(), text.most_predicted(), vocabulary
        if floats is not None:
            info.task, info.targets = _task(task), known
        wanted = _arrays.pointer(floats, "float") if floats is not None else ffi.NULL
        return cls._made(lambda out: lib.ls_dataset_from_texts(out, info, text.samples, wanted), [text, wanted])

    @classmethod
    def _made(cls, make: Callable[[Any], int], kept: List[Any], caught: Optional[Caught] = None) -> Dataset:
        """What a function of the library makes of `kept`, which the dataset keeps alive."""
        out = ffi.new("ls_dataset **")
        check(make(out))
        made = cls.__new__(cls)
        made._begin(out[0], kept, caught)
        return made

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return self._samples

    def __getitem__(self, index: int) -> Union[Tuple[Floats, int], TextSample]:
        if isinstance(index, slice):
            raise TypeError("a sample's number, not a slice; arrays(start, stop) returns several samples")
        index = operator.index(index)
        place = index + self._samples if index < 0 else index
        if not 0 <= place < self._samples:
            raise IndexError(f"sample {index} of {self._samples}")
        return self._read_text(place) if self.is_text else self._read_image(place)

    def __repr__(self) -> str:
        what = f"{self.tokens_max} tokens" if self.is_text else "x".join(map(str, self.shape))
        return f"<lockstep.Dataset '{self.name}': {self._samples} samples of {what}, {self.classes} classes>"

    @property
    def normalisation(self) -> Optional[Tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]:
        """(mean, deviation) of its images; None: text, or data of your own."""
        with self._in_use() as pointer:
            return normalisation_of(lib.ls_dataset_normalisation(pointer))

    def arrays(self, start: int = 0, stop: Optional[int] = None) -> Tuple[Floats, Labels]:
        """Images (N, C, H, W) and labels (N) of the samples from `start` up to, but not including, `stop`, as new
        arrays."""
        if self.is_text:
            raise ValueError(f"'{self.name}' has text; read its samples one by one")
        places = range(*slice(start, stop).indices(self._samples))
        pixels = np.empty((len(places), *self.shape), dtype=np.float32)
        numbers = np.empty(len(places), dtype=np.int32)
        to, label = _arrays.pointer(pixels, "float"), _arrays.pointer(numbers, "int32_t")
        values = pixels_of(self.shape)
        with self._in_use() as pointer:
            for row, place in enumerate(places):
                self._caught.check(lib.ls_dataset_read(pointer, place, to + row * values, label + row))
        return pixels, numbers

    def targets(self, start: int = 0, stop: Optional[int] = None) -> Floats:
        """Float targets (N, target_count) of the samples from `start` up to, but not including, `stop`."""
        places = range(*slice(start, stop).indices(self._samples))
        wanted = np.empty((len(places), self.target_count), dtype=np.float32)
        to = _arrays.pointer(wanted, "float")
        with self._in_use() as pointer:
            for row, place in enumerate(places):
                self._caught.check(lib.ls_dataset_read_targets(pointer, place, to + row * self.target_count))
        return wanted

    def _read_image(self, index: int) -> Tuple[Floats, int]:
        pixels, numbers = self.arrays(index, index + 1)
        return pixels[0], int(numbers[0])

    def _read_text(self, index: int) -> TextSample:
        arrays = {field: np.zeros(max(size, 1), dtype=np.int32) for field, size in (
            ("tokens", self.tokens_max), ("segments", self.tokens_max), ("places", self.masked_max), ("targets", self.masked_max))}  # fmt: skip
        sample = ffi.new("ls_text_sample *")
        kept = {field: _arrays.pointer(array, "int32_t") for field, array in arrays.items()}
        for field, place in kept.items():
            setattr(sample, field, place)
        with self._in_use() as pointer:
            self._caught.check(lib.ls_dataset_read_text(pointer, index, 0, sample))
        length, masked = sample.length, sample.masked
        return TextSample(arrays["tokens"][:length], arrays["segments"][:length], arrays["places"][:masked],
                          arrays["targets"][:masked], sample.label)  # fmt: skip


def as_dataset(data: Any, what: str) -> Dataset:
    """A Dataset, or a pair of arrays."""
    if isinstance(data, Dataset):
        return data
    if isinstance(data, tuple) and len(data) == 2:
        return Dataset.from_arrays(data[0], data[1])
    raise TypeError(f"{what}: a Dataset or (images, labels), not {type(data).__name__}; wrap() makes one of a Python class, "
                    "from_tokens() of text")


def pixels_of(shape: Tuple[int, ...]) -> int:
    return int(np.prod(shape))


def normalisation_of(found: Any) -> Optional[Tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]:
    """Of a C struct, copied."""
    if found == ffi.NULL:
        return None
    return np.array(ffi.unpack(found.mean, found.channels)), np.array(ffi.unpack(found.deviation, found.channels))


def _normalisation_struct(normalisation: Normalisation, options: Options) -> Any:
    mean, deviation = (np.asarray(values, dtype=np.float64).reshape(-1) for values in _arrays.pair(normalisation))
    if mean.size != deviation.size or mean.size == 0:
        raise ValueError(f"normalisation: {mean.size} means and {deviation.size} deviations")
    struct = ffi.new("ls_normalisation *")
    struct.channels = mean.size
    struct.mean = options.keep(_arrays.pointer(mean, "double"))
    struct.deviation = options.keep(_arrays.pointer(deviation, "double"))
    return options.keep(struct)


def _info(name: str, samples: int, shape: Tuple[int, ...], classes: int) -> Any:
    info = ffi.new("ls_dataset_info *")
    info.name = name.encode()[:63]
    info.samples = samples
    info.channels, info.height, info.width = shape
    info.classes = number("classes", classes, "int")
    return info


def _classes(numbers: Labels) -> int:
    return int(numbers.max()) + 1 if numbers.size else 0


def _refuse_classes(classes: Optional[int]) -> None:
    """With targets there is nothing to choose."""
    if classes is not None:
        raise TypeError("classes: leave them out; targets (N, M) are of M classes, labels or numbers")


def _task(task: str) -> int:
    if task not in TASKS:
        raise ValueError(f"task={task!r}; it is one of {', '.join(map(repr, TASKS))}")
    return TASKS.index(task)


def _whole(number: Any, what: str) -> int:
    array = np.asarray(number)
    if array.ndim != 0 or array.dtype.kind not in "iub":
        raise TypeError(f"{what} is {number!r}, not a whole number")
    return int(array)


def _sample(sample: Any, index: int) -> Tuple[Any, Any]:
    try:
        image, label = sample
    except (TypeError, ValueError):
        raise TypeError(f"sample {index} is of type {type(sample).__name__}, not a pair (image, label)") from None
    return image, label


class DatasetRow(NamedTuple):
    """A dataset that comes with Lockstep. needs_download: download(name) fetches it first."""

    name: str
    summary: str
    needs_download: bool
    is_text: bool


def datasets() -> List[DatasetRow]:
    """All datasets that have names, for Dataset(name) and train(data=name)."""
    found: List[DatasetRow] = []
    while True:
        row = lib.ls_dataset_row_at(len(found))
        if row == ffi.NULL:
            return found
        found.append(DatasetRow(text(row.name), text(row.summary), bool(row.needs_download), bool(row.is_text)))

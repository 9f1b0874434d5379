"""From files, texts and rows of tables to what a model takes."""

from __future__ import annotations

import os
from typing import Any, Mapping, NamedTuple, Optional, Union

import numpy as np

from lockstep import _arrays
from lockstep._arrays import Floats, Labels
from lockstep._binding import ffi
from lockstep._handle import Handle
from lockstep._library import Options, Path, c_text, check, lib, number, text

RESIZE = {"cover": "LS_RESIZE_COVER", "stretch": "LS_RESIZE_STRETCH"}


class Tokens(NamedTuple):
    """A text as a model takes it: token ids and segments (length); `cut` is how many tokens were too many and left
    out."""

    tokens: Labels
    segments: Labels
    cut: int


class Samples(Handle):
    """The part of Model that makes samples. Several threads may do so at a time, also while the model predicts."""

    input_shape: Any
    tokens_max: int
    outputs: int

    def read_image(self, source: Union[Path, bytes], *, resize: str = "cover") -> Floats:
        """A PNG or JPEG file, or its bytes, as a sample (C, H, W), normalised. Colour becomes grey, or grey colour,
        as the model wants it. An image of another size is scaled; of another aspect ratio, `resize` decides: "cover"
        takes the largest central part, "stretch" the whole image.

            logits = model.predict([model.read_image(name) for name in names])
        """
        if resize not in RESIZE:
            raise ValueError(f"resize={resize!r}; it is one of {', '.join(RESIZE)}")
        options = Options("ls_image_options")
        if isinstance(source, (str, os.PathLike)):
            options.set(name=source)
            with open(source, "rb") as file:
                content = file.read()
        elif isinstance(source, (bytes, bytearray, memoryview)):
            content = bytes(source)
        else:
            raise TypeError(f"source: a file name or bytes, not {type(source).__name__}")
        options.set(resize=getattr(lib, RESIZE[resize]))
        image = np.empty(self.input_shape, dtype=np.float32)
        with self._in_use() as pointer:
            check(lib.ls_model_read_image(pointer, content, len(content), options.pointer, _arrays.pointer(image, "float")))
        return image

    def normalise(self, pixels: Any) -> Floats:
        """Pixels (C, H, W) from 0 to 255, of bytes or floats, as the model takes them: (pixel / 255 - mean) /
        deviation."""
        image = np.array(_arrays.floats(pixels, "pixels", self.input_shape))
        with self._in_use() as pointer:
            check(lib.ls_model_normalise(pointer, _arrays.pointer(image, "float")))
        return image

    def tokenize(self, words: str) -> Tokens:
        """A text in the model's own tokens: [CLS] tokens [SEP], or of a language model the tokens alone, the last
        ones of a text that is too long. predict() tokenizes texts by itself."""
        if not isinstance(words, str):
            raise TypeError(f"a text is wanted, not {type(words).__name__}")
        encoded = words.encode()
        arrays = [np.zeros(max(self.tokens_max, 1), dtype=np.int32) for _ in range(2)]
        kept = [_arrays.pointer(array, "int32_t") for array in arrays]
        sample, cut = ffi.new("ls_text_sample *"), ffi.new("int *")
        sample.tokens, sample.segments = kept
        with self._in_use() as pointer:
            check(lib.ls_model_tokenize(pointer, encoded, len(encoded), sample, cut))
        return Tokens(arrays[0][: sample.length], arrays[1][: sample.length], cut[0])

    def read_row(self, row: Mapping[str, Any]) -> Floats:
        """A row of a table, a dict of values by column, as a sample (C, 1, 1) for a model that was trained on a table
        of numbers and categories. A column that is missing or None counts as a missing value; columns that the model
        does not know are ignored."""
        if not isinstance(row, Mapping):
            raise TypeError(f"row: values by column, not {type(row).__name__}")
        given = {str(name): value for name, value in row.items() if value is not None}
        names = [c_text(name) for name in given]
        values = [c_text(value if isinstance(value, str) else repr(_plain(value))) for value in given.values()]
        features = np.empty(self.input_shape, dtype=np.float32)
        with self._in_use() as pointer:
            check(lib.ls_model_read_row(pointer, ffi.new("char *[]", names), ffi.new("char *[]", values), len(names),
                                        _arrays.pointer(features, "float")))  # fmt: skip
        return features

    def class_name(self, i: int) -> Optional[str]:
        """The name of class i, for example "very negative"; None where the names are not known."""
        with self._in_use() as pointer:
            return text(lib.ls_model_class_name(pointer, number("i", i, "int64_t"))) or None

    def interpret(self, logits: Any) -> Floats:
        """What logits (N, outputs) mean: probabilities of classes or labels, or numbers in the units of the targets."""
        values = np.array(_arrays.floats(logits, "logits", (-1, self.outputs)))
        with self._in_use() as pointer:
            check(lib.ls_model_interpret(pointer, _arrays.pointer(values, "float"), len(values)))
        return values


def _plain(value: Any) -> Any:
    """A number of numpy as one of Python; True and False are no numbers of a table."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"row: {value!r} is neither a number nor a text")
    return value

"""Sequences of token ids as the library takes them, with what they are to predict."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence

import numpy as np

from lockstep import _arrays
from lockstep._arrays import Labels
from lockstep._binding import ffi
from lockstep._library import check, lib

IGNORED = -100  # LS_IGNORE_INDEX: the label of a token that is not predicted, as in PyTorch and transformers


class Texts:
    """Samples of text: `samples`, an array of ls_text_sample, and what it points to."""

    def __init__(
        self, x: Sequence[Any], vocabulary: int, segments: Optional[Sequence[Any]] = None, tokenize: Optional[Callable[[str], Any]] = None
    ) -> None:
        if isinstance(x, (str, bytes)):
            raise TypeError("x: a sequence of texts, or of token ids, not one text; put it into a list")
        if segments is not None and len(segments) != len(x):
            raise ValueError(f"segments: {len(segments)} for {len(x)} samples")
        self.vocabulary = vocabulary
        self.tokens: List[Labels] = []
        self.kept: List[Any] = []
        self.samples = ffi.new("ls_text_sample[]", len(x))
        for i, row in enumerate(x):
            sample = self.samples[i]
            row = tokenize(row) if tokenize is not None and isinstance(row, str) else row
            self.tokens.append(_ids(row, vocabulary, f"sample {i}: tokens"))
            sample.tokens, sample.length = self._keep(self.tokens[i]), len(self.tokens[i])
            if segments is not None:
                own = _ids(segments[i], 2, f"sample {i}: segments")
                if len(own) != sample.length:
                    raise ValueError(f"sample {i}: {len(own)} segments for {sample.length} tokens")
                sample.segments = self._keep(own)

    def __len__(self) -> int:
        return len(self.samples)

    def check_length(self, most: int) -> None:
        """What a model takes: up to `most` tokens."""
        for i in range(len(self)):
            if self.samples[i].length > most:
                more = f", and one more that is only predicted, not {len(self.tokens[i])}" if self.samples[i].masked else ""
                count = "" if more else f"{self.samples[i].length} tokens; "
                raise ValueError(f"sample {i}: {count}the model takes up to {most}{' tokens' if more else ''}{more}")

    def set_labels(self, labels: Labels) -> None:
        """A class per sample."""
        for sample, label in zip(self.samples, labels.tolist()):
            sample.label = label

    def predict_next(self, token_labels: Optional[Sequence[Any]]) -> None:
        """For a language model: every token but the first is predicted at the place before it. The last one is only
        predicted, so a sample ends before it."""
        self._check_count(token_labels)
        for i, tokens in enumerate(self.tokens):
            if len(tokens) < 2:
                raise ValueError(f"sample {i}: 1 token; a language model learns from 2 or more, for each predicts the next")
            labels = tokens if token_labels is None else self._labels(token_labels[i], i)
            if labels is not tokens and _are_moved(labels, tokens):
                raise ValueError(f"sample {i}: token_labels are the tokens moved by one; give them unmoved, as transformers does: the label "
                                 "of a token is the token itself, and is predicted at the one before it")  # fmt: skip
            self.samples[i].length = len(tokens) - 1
            self._set_targets(i, labels[1:])
            if self.samples[i].masked == 0:
                raise ValueError(f"sample {i}: token_labels are {IGNORED} for all tokens but the first, so there is nothing to predict; leave the "
                                 "sample out")  # fmt: skip

    def predict_masked(self, token_labels: Sequence[Any]) -> None:
        """For pretraining: tokens are predicted where they stand."""
        self._check_count(token_labels)
        for i in range(len(self)):
            self._set_targets(i, self._labels(token_labels[i], i))
        if len(self) and self.most_predicted() == 0:
            raise ValueError(f"token_labels: {IGNORED} for every token, so there is nothing to predict; give the ids of the masked tokens")

    def longest(self) -> int:
        """Tokens of the longest sample."""
        return max((sample.length for sample in self.samples), default=0)

    def most_predicted(self) -> int:
        """Tokens to predict in the sample that has most."""
        return max((sample.masked for sample in self.samples), default=0)

    def _check_count(self, token_labels: Optional[Sequence[Any]]) -> None:
        if isinstance(token_labels, (str, bytes)) or not (token_labels is None or hasattr(token_labels, "__len__")):
            raise TypeError(f"token_labels: a sequence of labels per sample, not {type(token_labels).__name__}")
        if token_labels is not None and len(token_labels) != len(self):
            raise ValueError(f"token_labels: {len(token_labels)} for {len(self)} samples")

    def _labels(self, row: Any, i: int) -> Labels:
        what = f"sample {i}: token_labels"
        array = _integer_row(row, what)
        if len(array) != len(self.tokens[i]):
            raise ValueError(f"sample {i}: {len(array)} token_labels for {len(self.tokens[i])} tokens; {IGNORED} is that of a token that is not predicted")
        wrong = array[(array != IGNORED) & ((array < 0) | (array >= self.vocabulary))]
        if wrong.size:
            raise ValueError(f"{what}: {wrong[0]}; they are 0 to {self.vocabulary - 1}, or {IGNORED} where nothing is predicted")
        return np.ascontiguousarray(array, dtype=np.int32)

    def _set_targets(self, i: int, labels: Labels) -> None:
        sample = self.samples[i]
        sample.places, sample.targets = (self._keep(np.empty(len(labels), dtype=np.int32)) for _ in range(2))
        check(lib.ls_text_sample_set_targets(ffi.addressof(sample), _arrays.pointer(labels, "int32_t")))

    def _keep(self, array: Labels) -> Any:
        self.kept.append(_arrays.pointer(array, "int32_t"))
        return self.kept[-1]


def _integer_row(row: Any, what: str) -> Any:
    array = np.asarray(row)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
        raise TypeError(f"{what} must be a sequence of at least one whole number")
    return array


def _ids(row: Any, limit: int, what: str) -> Labels:
    array = _integer_row(row, what)
    if int(array.min()) < 0 or int(array.max()) >= limit:
        raise ValueError(f"{what} {array.min()} to {array.max()}; they are 0 to {limit - 1}")
    return np.ascontiguousarray(array, dtype=np.int32)


def _are_moved(labels: Labels, tokens: Labels) -> bool:
    """Labels for a loss that compares without moving them: what comes next, not the token itself."""
    return len(tokens) > 2 and np.array_equal(labels[:-1], tokens[1:]) and not np.array_equal(labels[1:], tokens[1:])

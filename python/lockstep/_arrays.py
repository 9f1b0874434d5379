"""numpy arrays in and out. C-contiguous float32 is used where it is; what is safe to convert is converted, once; the
rest is refused."""

from __future__ import annotations

import math
from typing import Any, Optional, Sequence, Tuple

import numpy as np
import numpy.typing as npt

from lockstep._binding import ffi

Floats = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int32]
POINTERS = {kind: ffi.typeof(f"{kind}[]") for kind in ("float", "double", "int32_t", "uint64_t")}
Normalisation = Tuple[Sequence[float], Sequence[float]]


def numbers(values: Any, what: str) -> npt.NDArray[Any]:
    """numpy's array of it; an exception that says what is wrong where it is no array of numbers."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"{what}: its parts have different shapes; an array has one shape for all samples") from None
    if array.dtype.kind not in "fiubc":
        kind = type(values).__name__ if array.ndim == 0 else f"an array of dtype {array.dtype}"
        raise TypeError(f"{what}: an array of numbers is wanted, not {kind}")
    return array


def floats(values: Any, what: str, shape: Optional[Tuple[int, ...]] = None) -> Floats:
    """Contiguous float32 of any floating-point array; whole numbers only where they are exact. -1 in `shape` fits any
    length."""
    array = numbers(values, what)
    if array.dtype.kind not in "fiub" or (array.dtype.kind in "iu" and array.dtype.itemsize > 2):
        raise TypeError(f"{what}: dtype {array.dtype} is not converted to float32 silently; use .astype(numpy.float32)")
    if shape is not None and (array.ndim != len(shape) or any(s >= 0 and s != a for s, a in zip(shape, array.shape))):
        raise misfit(array.shape, what, shape)
    if array.dtype == np.float32 and array.flags.c_contiguous:
        return array
    if array.dtype.kind == "f" and array.dtype.itemsize > 4:
        with np.errstate(over="ignore"):
            narrow = np.ascontiguousarray(array, dtype=np.float32)
        if bool(np.any(np.isinf(narrow) & ~np.isinf(array))):
            raise ValueError(f"{what}: a value is too large for float32")
        return narrow
    return np.ascontiguousarray(array, dtype=np.float32)


def misfit(found: Tuple[int, ...], what: str, wanted: Tuple[int, ...]) -> ValueError:
    """An array has another shape; how to get the wanted one, where that can be guessed."""
    return ValueError(f"{what}: shape {found} does not fit {shape_text(wanted)}{_way_to_fit(found, wanted)}")


def shape_text(shape: Tuple[int, ...]) -> str:
    """(N, 1, 28, 28) of (-1, 1, 28, 28)."""
    names = "NCHW" if len(shape) == 4 else "N" + "M" * (len(shape) - 1)
    return str(tuple(name if length < 0 else length for name, length in zip(names, shape))).replace("'", "")


def _way_to_fit(found: Tuple[int, ...], wanted: Tuple[int, ...]) -> str:
    """What a message says about images (N, C, H, W) that come in another form."""
    sample = wanted[1:]
    if len(wanted) != 4 or wanted[0] != -1:
        return ""
    if -1 in sample:
        ways = {3: "; images without channels: array[:, None]", 2: "; rows of numbers: array[:, :, None, None]"}
        return ways.get(len(found), "")
    if found == sample:
        return "; of one sample make a batch: array[None]"
    if len(found) == 4 and found[1:] == (*sample[1:], sample[0]):
        return "; put channels first: array.transpose(0, 3, 1, 2)"
    if len(found) > 1 and math.prod(found[1:]) == math.prod(sample):
        return f"; use array.reshape{(-1, *sample)}"
    return ""


def images(values: Any, what: str, sample: Optional[Tuple[int, int, int]], normalisation: Optional[Normalisation]) -> Floats:
    """Images (N, C, H, W) as the model wants them. Bytes are normalised, (x / 255 - mean) / deviation, where the
    constants are known; floats are taken as they are."""
    array = numbers(values, what)
    shape = (-1, -1, -1, -1) if sample is None else (-1, *sample)
    if array.dtype.kind in "iub":
        if array.dtype != np.uint8:
            raise TypeError(f"{what}: images of {array.dtype}; give floats, normalised as the model wants them, or bytes: "
                            ".astype(numpy.uint8)")  # fmt: skip
        if normalisation is None:
            missing = "give normalisation=(mean, deviation), or"
            if sample is not None:
                missing = "the model does not know how to normalise them; give"
            raise TypeError(f"{what}: images of uint8; {missing} floats: (images / 255 - mean) / deviation")
        if array.ndim != 4 or (sample is not None and array.shape[1:] != sample):
            raise misfit(array.shape, what, shape)
        return normalise(array, *pair(normalisation))
    return floats(array, what, shape)


def pair(normalisation: Normalisation) -> Normalisation:
    """(mean, deviation); an exception if it is anything else."""
    if not isinstance(normalisation, (tuple, list)) or len(normalisation) != 2:
        raise TypeError(f"normalisation={normalisation!r}; it is (mean, deviation), each a number or one per channel")
    return normalisation[0], normalisation[1]


def normalise(array: Any, mean: Sequence[float], deviation: Sequence[float]) -> Floats:
    """Bytes (N, C, H, W) to floats as the library does it, through float32."""
    channels = array.shape[1]
    shift, scale = (np.asarray(values, dtype=np.float64).reshape(-1).astype(np.float32) for values in (mean, deviation))
    if shift.size not in (1, channels) or scale.size not in (1, channels):
        raise ValueError(f"normalisation: {shift.size} means and {scale.size} deviations for {channels} channels")
    if not (bool(np.all(np.isfinite(shift))) and bool(np.all(np.isfinite(scale))) and bool(np.all(scale > 0))):
        raise ValueError("normalisation: means must be finite and deviations positive")
    unit = array.astype(np.float32) / np.float32(255)
    return np.ascontiguousarray((unit - shift.reshape(1, -1, 1, 1)) / scale.reshape(1, -1, 1, 1), dtype=np.float32)


def labels(values: Any, what: str, count: int) -> Labels:
    """Contiguous int32 (count)."""
    array = numbers(values, what)
    if array.ndim == 2 and array.shape[0] == count:
        way = ".reshape(-1)" if array.shape[1] == 1 else "of one-hot labels .argmax(axis=1)"
        raise ValueError(f"{what}: shape {array.shape} does not fit ({count},), one label per sample; use {way}")
    if array.dtype.kind not in "iub":
        raise TypeError(f"{what}: dtype {array.dtype}; labels are whole numbers: .astype(int); numbers to predict are targets")
    if array.shape != (count,):
        raise ValueError(f"{what}: shape {array.shape} does not fit ({count},), one label per sample")
    if array.dtype == np.int32 and array.flags.c_contiguous:
        return array
    fits = array.dtype.itemsize < 4 or array.dtype == np.int32
    if not fits and array.size and (int(array.min()) < -(2**31) or int(array.max()) >= 2**31):
        raise ValueError(f"{what}: a label does not fit into 32 bits")
    return np.ascontiguousarray(array, dtype=np.int32)


def indices(values: Any, what: str) -> npt.NDArray[np.uint64]:
    """Contiguous uint64 of whole numbers from 0 on."""
    array = numbers(values, what)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{what}: dtype {array.dtype}; they are whole numbers")
    if array.size and int(array.min()) < 0:
        raise ValueError(f"{what}: {int(array.min())}; they are 0 or more")
    return np.ascontiguousarray(array, dtype=np.uint64)


def targets(values: Any, what: str, count: int, outputs: int = -1) -> Floats:
    """Contiguous float32 (count, outputs); (count) is (count, 1)."""
    array = numbers(values, what)
    if array.ndim == 1 and outputs in (-1, 1):
        array = array.reshape(-1, 1)
    return floats(array, what, (count, outputs))


def pointer(array: Any, kind: str) -> Any:
    """The array as a C pointer, which keeps it alive."""
    return ffi.from_buffer(POINTERS[kind], array)

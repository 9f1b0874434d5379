"""Read a safetensors file: an 8-byte length, a JSON header with dtype, shape and place of each tensor, and the bytes."""

from __future__ import annotations

import json
import os
from typing import Any, Dict

import numpy as np

from lockstep._errors import FormatError
from lockstep._library import Path

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1", "U8": "|u1", "BOOL": "|b1"}
HEADER_MAX = 100_000_000


def load_file(path: Path) -> Dict[str, Any]:
    """All tensors of a safetensors file by name, for Model.load_state_dict(). bf16 becomes float32."""
    name = os.fspath(path)
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(HEADER_MAX, size - 8):
            raise FormatError(f"{name} is not a safetensors file")
        header = file.read(length)
        data = np.fromfile(file, dtype=np.uint8)
    try:
        entries = json.loads(header)
        return {key: _tensor(entry, data) for key, entry in entries.items() if key != "__metadata__"}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(f"{name} is not a safetensors file, or damaged: {error}") from None


def _tensor(entry: Any, data: Any) -> Any:
    first, last = entry["data_offsets"]
    if not 0 <= first <= last <= data.size:
        raise ValueError(f"a tensor at bytes {first} to {last} of {data.size}")
    part, shape = data[first:last], entry["shape"]
    if entry["dtype"] == "BF16":  # the upper half of a float32
        return (part.view("<u2").astype(np.uint32) << 16).view(np.float32).reshape(shape)
    return part.view(np.dtype(DTYPES[entry["dtype"]])).reshape(shape).copy()

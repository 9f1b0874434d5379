"""What the scripts that compare with PyTorch share: safetensors files, and results as TAP."""
import contextlib
import json
import struct
import tempfile

import numpy as np
import torch

TOLERANCE = 1e-4
TYPES = {"F32": np.float32, "F64": np.float64, "I64": np.int64, "I32": np.int32}


# ---- safetensors: u64 length of a JSON header, the header, the data


def read_safetensors(path):
    with open(path, "rb") as f:
        (length,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(length))
        data = f.read()
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            flat = np.frombuffer(data[begin:end], dtype=TYPES[entry["dtype"]])
            tensors[name] = torch.from_numpy(flat.reshape(entry["shape"]).copy())
    return tensors


def write_safetensors(path, tensors):
    header, blobs, offset = {"__metadata__": {"format": "pt"}}, [], 0  # earlier versions of transformers ask for it
    names = {np.dtype(dtype): name for name, dtype in TYPES.items()}
    for name, tensor in tensors.items():
        array = np.array(tensor.detach().numpy(), order="C")
        header[name] = {"dtype": names[array.dtype], "shape": list(array.shape),
                        "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
        blobs.append(array.tobytes())
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


# ---- TAP


class Tap:
    def __init__(self):
        self.count = self.failed = 0

    def check(self, name, good, note=""):
        self.count += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.count} - {name}", flush=True)
        if not good and note:
            print("\n".join("# " + line for line in str(note).splitlines()), flush=True)
        return good

    def close(self, name, got, expected):
        if got.shape != expected.shape:
            return self.check(name, False, f"shapes {tuple(got.shape)} and {tuple(expected.shape)}")
        error = float((got - expected).abs().max() / max(1.0, float(expected.abs().max())))
        return self.check(name, error <= TOLERANCE, f"largest difference {error:.3g} of the largest value, or of 1; "
                          f"allowed {TOLERANCE:g}")

    @contextlib.contextmanager
    def comparison(self):
        """Gives a temporary directory; an exception in the body is a failed check."""
        with tempfile.TemporaryDirectory(prefix="lockstep-test.") as temporary:
            try:
                yield temporary
            except (RuntimeError, OSError, KeyError, ValueError) as error:
                self.check("the comparison runs to its end", False, repr(error) + "\n" + str(error))

    def end(self):
        print(f"1..{self.count}")
        return 1 if self.failed else 0

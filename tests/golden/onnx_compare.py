#!/usr/bin/env python3
"""onnx_compare.py LOCKSTEP DIRECTORY: what onnxruntime makes of exported models against `lockstep eval --logits`.

Trains every kind of model for two steps in DIRECTORY, exports it, has onnx check the file, and compares the logits of
several batch sizes. Prints TAP.
"""
import json
import os
import struct
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime

TOLERANCE = 1e-5  # of the largest logit, or of 1
SAMPLES = 24
TYPES = {"F32": np.float32, "I64": np.int64, "I32": np.int32}
JOBS = [("mlp", "glyphs"), ("cnn", "glyphs"), ("resnet18", "glyphs"), ("resnet50", "glyphs"),
        ("transformer", "babble"), ("bert-tiny", "babble"), ("bert-tiny", "babble-pairs")]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")


def read_safetensors(path):
    with open(path, "rb") as f:
        data = f.read()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:begin])
    return {name: np.frombuffer(data[begin + t["data_offsets"][0]:begin + t["data_offsets"][1]], TYPES[t["dtype"]])
            .reshape(t["shape"]) for name, t in header.items() if name != "__metadata__"}


def image_feed(tensors, samples, names):
    return {"input": tensors["images"][samples.start:samples.stop]}


def text_feed(tensors, samples, names):
    """Padded with an arbitrary token, which the mask hides."""
    starts = tensors["starts"]
    longest = max(int(starts[k + 1] - starts[k]) for k in samples)
    shape = (len(samples), longest)
    feed = {"input_ids": np.full(shape, 7, np.int64), "attention_mask": np.zeros(shape, np.int64),
            "token_type_ids": np.zeros(shape, np.int64), "masked_positions": np.zeros((len(samples), 2), np.int64)}
    for row, k in enumerate(samples):
        length = int(starts[k + 1] - starts[k])
        feed["input_ids"][row, :length] = tensors["tokens"][starts[k]:starts[k + 1]]
        feed["token_type_ids"][row, :length] = tensors["segments"][starts[k]:starts[k + 1]]
        feed["attention_mask"][row, :length] = 1
    return {name: feed[name] for name in names}


def distance(session, tensors, batch):
    names = [value.name for value in session.get_inputs()]
    make = image_feed if "images" in tensors else text_feed
    parts = [session.run(["logits"], make(tensors, range(i, min(i + batch, SAMPLES)), names))[0]
             for i in range(0, SAMPLES, batch)]
    ours = tensors["logits"]
    return float(np.abs(np.concatenate(parts) - ours).max() / max(1.0, np.abs(ours).max()))


def compare(lockstep, directory, model, data):
    """The largest difference over batch sizes."""
    place = os.path.join(directory, f"{model}-{data}")
    size = ["--layers", "2"] if model == "transformer" else []
    run(lockstep, "train", "--model", model, "--data", data, "--samples", "64", "--test-samples", str(SAMPLES), "--steps",
        "2", "--batch", "16", "--run", place, "--quiet", *size)
    run(lockstep, "eval", place, "--logits", place + ".safetensors", "--quiet")
    run(lockstep, "export", place, "--onnx", place + ".onnx")
    onnx.checker.check_model(place + ".onnx", full_check=True)
    session = onnxruntime.InferenceSession(place + ".onnx", providers=["CPUExecutionProvider"])
    tensors = read_safetensors(place + ".safetensors")
    return max(distance(session, tensors, batch) for batch in (1, 5, SAMPLES))


def main():
    failed = 0
    for number, (model, data) in enumerate(JOBS, 1):
        try:
            worst = compare(sys.argv[1], sys.argv[2], model, data)
            good, note = worst <= TOLERANCE, f"largest difference {worst:.2g}, allowed {TOLERANCE:g}"
        except Exception as error:  # of any library: a test that fails
            good, note = False, str(error)
        failed += not good
        print(f"{'ok' if good else 'not ok'} {number} - {model} on {data}: onnxruntime computes the same logits")
        print("\n".join("# " + line for line in note.splitlines()), flush=True)
    print(f"1..{len(JOBS)}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

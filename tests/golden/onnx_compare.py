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
        ("vit-tiny", "glyphs"), ("transformer", "babble"), ("bert-tiny", "babble"), ("bert-tiny", "babble-pairs")]


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


def compare_gpt(lockstep, directory):
    """The most probable tokens by onnxruntime, each fed back, and what `lockstep generate` makes of the same prompt."""
    place, text = os.path.join(directory, "gpt"), os.path.join(directory, "text.txt")
    with open(text, "w") as f:
        f.write("the quick brown fox jumps over a lazy dog\n" * 200)
    run(lockstep, "train", "--model", "gpt-nano", "--data", text, "--seq-len", "40", "--batch", "16", "--steps", "30", "--lr",
        "3e-3", "--run", place, "--quiet")
    run(lockstep, "export", place, "--onnx", place + ".onnx")
    onnx.checker.check_model(place + ".onnx", full_check=True)
    session = onnxruntime.InferenceSession(place + ".onnx", providers=["CPUExecutionProvider"])
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    order = visible + [byte for byte in range(256) if byte not in visible]  # the vocabulary of bytes
    ids = [order.index(byte) for byte in b"the quick"]
    for _ in range(20):
        feed = {"input_ids": np.array([ids], np.int64), "attention_mask": np.ones((1, len(ids)), np.int64)}
        ids.append(int(session.run(["logits"], feed)[0][0, -1].argmax()))
    expected = subprocess.run([lockstep, "generate", place, "the quick", "--max-new-tokens", "20", "--temperature", "0", "--quiet"],
                              capture_output=True, check=True).stdout
    return bytes(order[i] for i in ids), expected.rstrip(b"\n")


def report(number, good, name, note):
    print(f"{'ok' if good else 'not ok'} {number} - {name}")
    print("\n".join("# " + line for line in note.splitlines()), flush=True)
    return good


def main():
    failed = 0
    for number, (model, data) in enumerate(JOBS, 1):
        try:
            worst = compare(sys.argv[1], sys.argv[2], model, data)
            good, note = worst <= TOLERANCE, f"largest difference {worst:.2g}, allowed {TOLERANCE:g}"
        except Exception as error:  # of any library: a test that fails
            good, note = False, str(error)
        failed += not report(number, good, f"{model} on {data}: onnxruntime computes the same logits", note)
    try:
        got, expected = compare_gpt(sys.argv[1], sys.argv[2])
        good, note = got.rstrip(b"\n") == expected, f"{got!r}, expected {expected!r}"
    except Exception as error:
        good, note = False, str(error)
    failed += not report(len(JOBS) + 1, good, "gpt-nano: onnxruntime generates the same text", note)
    print(f"1..{len(JOBS) + 1}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

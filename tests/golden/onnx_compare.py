#!/usr/bin/env python3
"""onnx_compare.py LOCKSTEP PROGRAMS DIRECTORY: what onnxruntime makes of exported models against `lockstep eval --logits`.

Trains every kind of model for two steps in DIRECTORY, and a mlp and a cnn until they have learned; exports it, has onnx check the file,
and compares the logits of several batch sizes. `eval --logits` writes no logits of masked tokens and of language models: they are compared with
those of the program made of text_dump.c. Operators that no model has are in the graphs of operator_dump.c; PROGRAMS has both. No logit may
differ by more than TOLERANCE times the largest one, or TOLERANCE where all are smaller than 1: fp32 rounds relative to what is added.
Prints TAP.
"""
import glob
import json
import os
import struct
import subprocess
import sys
import zlib

import numpy as np
import onnx
import onnxruntime

TOLERANCE = 1e-5
SAMPLES = 24
TWO_STEPS = ["--samples", "64", "--steps", "2", "--batch", "16"]
CONVERGED = ["--samples", "6000", "--epochs", "8"]
TYPES = {"F64": np.float64, "F32": np.float32, "I64": np.int64, "I32": np.int32}
JOBS = [("mlp", "glyphs"), ("cnn", "glyphs"), ("resnet18", "glyphs"), ("resnet18", "64x64"), ("resnet18-cifar", "32x32"), ("resnet50", "glyphs"),
        ("vit-tiny", "glyphs"), ("transformer", "babble"), ("bert-tiny", "babble")]
DUMPED = [("bert-tiny", "babble-pairs", 64, 0), ("gpt-nano", "text.txt", 40, 0), ("gpt-nano", "text.txt", 40, 4)]  # logits of tokens; rank of adapters


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


# ---- data ---------------------------------------------------------------------------------------------------------


def write_png(path, pixels):
    """Bytes (height, width, 3)."""
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    parts = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n")
        for kind, data in parts:
            f.write(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)))


def write_images(directory, size):
    """Folders of colour noise, ten classes, 64 images to train on and SAMPLES to test."""
    rng = np.random.default_rng(size)
    for split, count in (("train", 64), ("test", SAMPLES)):
        for i in range(count):
            place = os.path.join(directory, split, f"class{i % 10}")
            os.makedirs(place, exist_ok=True)
            write_png(os.path.join(place, f"{i}.png"), rng.integers(0, 256, (size, size, 3), dtype=np.uint8))


def make_data(directory):
    for size in (32, 64):
        write_images(os.path.join(directory, f"{size}x{size}"), size)
    with open(os.path.join(directory, "text.txt"), "w") as f:
        f.write("the quick brown fox jumps over a lazy dog\n" * 200)


def path_of(directory, data):
    """Of data that was made; the others have names."""
    path = os.path.join(directory, data)
    return path if os.path.exists(path) else data


# ---- onnxruntime --------------------------------------------------------------------------------------------------


def export(lockstep, run_directory):
    run(lockstep, "export", run_directory, "--onnx", run_directory + ".onnx")
    return open_model(run_directory + ".onnx")


def open_model(path):
    onnx.checker.check_model(path, full_check=True)
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def image_feed(tensors, samples, names):
    return {"input": tensors["images"][samples.start:samples.stop]}


def text_feed(tensors, samples, names):
    """Padded with an arbitrary token, which the mask hides, and with the first position."""
    starts, masked = tensors["starts"], masked_places(tensors)
    longest = max(int(starts[k + 1] - starts[k]) for k in samples)
    shape = (len(samples), longest)
    feed = {"input_ids": np.full(shape, 7, np.int64), "attention_mask": np.zeros(shape, np.int64), "token_type_ids": np.zeros(shape, np.int64),
            "masked_positions": np.zeros((len(samples), max(len(masked[k]) for k in samples)), np.int64)}  # fmt: skip
    for row, k in enumerate(samples):
        length = int(starts[k + 1] - starts[k])
        feed["input_ids"][row, :length] = tensors["tokens"][starts[k]:starts[k + 1]]
        feed["token_type_ids"][row, :length] = tensors["segments"][starts[k]:starts[k + 1]]
        feed["attention_mask"][row, :length] = 1
        feed["masked_positions"][row, :len(masked[k])] = masked[k]
    return {name: feed[name] for name in names}


def masked_places(tensors):
    """Of each sample, in it: of a language model all places that something follows."""
    starts, all_of_them = tensors["starts"], tensors.get("masked_positions", np.zeros(0, np.int64))
    sample = np.searchsorted(starts, all_of_them, side="right") - 1
    return [all_of_them[sample == k] - starts[k] for k in range(len(starts) - 1)]


def infer(session, tensors, batch):
    """Outputs of onnxruntime by name, in batches: logits of all samples, and token_logits of all masked positions."""
    inputs, outputs = ([value.name for value in values] for values in (session.get_inputs(), session.get_outputs()))
    make, found = image_feed if "images" in tensors else text_feed, {}
    for first in range(0, SAMPLES, batch):
        samples = range(first, min(first + batch, SAMPLES))
        for name, values in zip(outputs, session.run(outputs, make(tensors, samples, inputs))):
            if name == "token_logits":
                values = np.concatenate([row[:len(masked_places(tensors)[k])] for row, k in zip(values, samples)])
            elif values.ndim == 3:  # of a language model, at every place
                name = "token_logits"
                values = np.concatenate([row[masked_places(tensors)[k]] for row, k in zip(values, samples)])
            found.setdefault(name, []).append(values)
    return {name: np.concatenate(parts) for name, parts in found.items()}


def compare(session, tensors):
    """Whether all outputs are close enough with all batch sizes, and the largest difference and logit of each."""
    all_are_close, notes = True, []
    for batch in (1, 5, SAMPLES):
        for name, values in infer(session, tensors, batch).items():
            ours = tensors[name]
            assert values.shape == ours.shape, f"{name}: shapes {values.shape} and {ours.shape}"
            difference, largest = float(np.abs(values - ours).max()), float(np.abs(ours).max())
            all_are_close &= difference <= TOLERANCE * max(1.0, largest)
            notes.append(f"{name} {ours.shape}, batch {batch}: difference {difference:.2g}, largest logit {largest:.3g}")
    return all_are_close, "\n".join(notes)


# ---- comparisons --------------------------------------------------------------------------------------------------


def compare_eval(lockstep, directory, model, data, length):
    """With `lockstep eval --logits`."""
    place = os.path.join(directory, f"{model}-{data}-{length[1]}")
    size = ["--layers", "2"] if model == "transformer" else []
    run(lockstep, "train", "--model", model, "--data", path_of(directory, data), "--test-samples", str(SAMPLES), "--run", place, "--quiet", *length, *size)
    run(lockstep, "eval", place, "--logits", place + ".safetensors", "--quiet")
    return compare(export(lockstep, place), read_safetensors(place + ".safetensors"))


def compare_converged(lockstep, directory, model):
    """The same of a model that has learned, whose logits are large."""
    close, notes = compare_eval(lockstep, directory, model, "glyphs", CONVERGED)
    largest = float(np.abs(read_safetensors(os.path.join(directory, f"{model}-glyphs-{CONVERGED[1]}.safetensors"))["logits"]).max())
    return close and largest > 10, notes


def compare_operators(program, directory):
    """Graphs of the program made of operator_dump.c."""
    run(program, directory)
    found = [compare(open_model(os.path.join(directory, name + ".onnx")), read_safetensors(os.path.join(directory, name + ".safetensors")))
             for name in ("images", "text")]  # fmt: skip
    return all(close for close, _ in found), "\n".join(notes for _, notes in found)


def compare_dump(lockstep, text_dump, directory, model, data, tokens, lora):
    """With what text_dump computes from the same weights: logits of samples and of tokens."""
    place, data = os.path.join(directory, f"{model}-{data}-{lora}-dump"), path_of(directory, data)
    job = ["--model", model, "--data", data, "--samples", "640", "--test-samples", str(SAMPLES), "--batch", "16", "--seq-len", str(tokens), "--quiet"]
    run(lockstep, "train", *job, "--run", place, "--steps", "2")
    if lora:  # adapters start as nothing: they get steps enough to count
        place, base = place + "-adapted", place
        run(lockstep, "train", *job, "--run", place, "--init", base, "--lora", str(lora), "--steps", "30", "--lr", "1e-2")
    weights = max(glob.glob(place + "/ckpt/step-*/model.safetensors"))
    if lora:
        adapters = [values for name, values in read_safetensors(weights).items() if ".lora_B" in name]
        assert adapters and min(float(np.abs(values).max()) for values in adapters) > 1e-3, "the adapters were not trained"
    run(text_dump, model, data, str(tokens), str(SAMPLES), place + ".safetensors", weights, str(lora))
    tensors = read_safetensors(place + ".safetensors")
    tensors |= {"starts": tensors["start"], "tokens": tensors["token"], "segments": tensors["segment"]}
    assert len(tensors["token_logits"]) == len(tensors["masked_positions"]) > SAMPLES
    return compare(export(lockstep, place), tensors)


def compare_generated(lockstep, directory):
    """The most probable tokens by onnxruntime, each fed back, and what `lockstep generate` makes of the same prompt."""
    place = os.path.join(directory, "gpt")
    run(lockstep, "train", "--model", "gpt-nano", "--data", path_of(directory, "text.txt"), "--seq-len", "40", "--batch", "16", "--steps", "30",
        "--lr", "3e-3", "--run", place, "--quiet")
    session = export(lockstep, place)
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    order = visible + [byte for byte in range(256) if byte not in visible]  # the vocabulary of bytes
    ids = [order.index(byte) for byte in b"the quick"]
    for _ in range(20):
        feed = {"input_ids": np.array([ids], np.int64), "attention_mask": np.ones((1, len(ids)), np.int64)}
        ids.append(int(session.run(["logits"], feed)[0][0, -1].argmax()))
    expected = subprocess.run([lockstep, "generate", place, "the quick", "--max-new-tokens", "20", "--temperature", "0", "--quiet"],
                              capture_output=True, check=True).stdout
    got = bytes(order[i] for i in ids)
    return got.rstrip(b"\n") == expected.rstrip(b"\n"), f"{got!r}, expected {expected!r}"


def main():
    lockstep, programs, directory = sys.argv[1:]
    text_dump, operator_dump = (os.path.join(programs, name) for name in ("text_dump", "operator_dump"))
    make_data(directory)
    checks = [(f"{model} on {data}: the same logits", lambda m=model, d=data: compare_eval(lockstep, directory, m, d, TWO_STEPS))
              for model, data in JOBS]  # fmt: skip
    checks += [(f"{model} that has learned: the same logits", lambda m=model: compare_converged(lockstep, directory, m)) for model in ("mlp", "cnn")]
    checks.append(("operators that no model has: the same logits", lambda: compare_operators(operator_dump, directory)))
    checks += [(f"{job[0]} on {job[1]}{', with adapters' * (job[3] > 0)}: the same logits of tokens",
                lambda job=job: compare_dump(lockstep, text_dump, directory, *job)) for job in DUMPED]  # fmt: skip
    checks.append(("gpt-nano: onnxruntime generates the same text", lambda: compare_generated(lockstep, directory)))
    failed = 0
    for number, (name, check) in enumerate(checks, 1):
        try:
            good, note = check()
        except Exception as error:  # of any library: a test that fails
            good, note = False, f"{type(error).__name__}: {error}"
        failed += not good
        print(f"{'ok' if good else 'not ok'} {number} - {name}")
        print("\n".join("# " + line for line in note.splitlines()), flush=True)
    print(f"1..{len(checks)}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""The initial weights that bench/convergence gives to PyTorch are distributed as Lockstep's, tensor by tensor. Prints TAP.

    python3 tests/golden/torch_init.py LOCKSTEP

Two samples are of one distribution when the largest distance of their distribution functions, times sqrt(nm / (n + m)), is
at most LIMIT (Kolmogorov and Smirnov; by chance more in one of 8,000 tensors). Seeds are fixed.
"""
import glob
import os
import subprocess
import sys
import tempfile

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "bench"), HERE]  # torch_text.py is that of bench/
sys.dont_write_bytecode = True

import torch_models  # noqa: E402
import torch_text  # noqa: E402
from torch_common import Tap, read_safetensors  # noqa: E402

LIMIT = 2.2
VOCABULARY, MOODS = 4061, 5  # of babble


def initial(lockstep, model):
    """Lockstep's initial weights: a step that is too small to change any of them shows them."""
    data = ["babble", "--seq-len", "16"] if model == "transformer" else ["glyphs"]
    with tempfile.TemporaryDirectory(prefix="lockstep-test.") as directory:
        subprocess.run([lockstep, "train", "--model", model, "--data", *data, "--samples", "8", "--batch", "8", "--steps",
                        "1", "--optimizer", "sgd", "--momentum", "0", "--lr", "1e-30", "--schedule", "constant",
                        "--eval-every", "0", "--quiet", "--run", os.path.join(directory, "run")], check=True)
        (file,) = glob.glob(os.path.join(directory, "run/ckpt/step-*/model.safetensors"))
        return {name: tensor * (tensor.abs() > 1e-20) for name, tensor in read_safetensors(file).items()}


def reference(model):
    torch.manual_seed(1)
    if model == "transformer":
        made = torch_text.Transformer(VOCABULARY, MOODS)
        torch_text.start_as_lockstep(made)
    else:
        made = torch_models.build(model)
        torch_models.start_as_lockstep(made, model)
    return {name: p.detach() for name, p in made.named_parameters()}


def distance(a, b):
    """Of two samples' distribution functions, in units of what chance makes it."""
    a, b = a.flatten().double().sort().values, b.flatten().double().sort().values
    at = torch.cat([a, b])
    below = [torch.searchsorted(x, at, right=True) / len(x) for x in (a, b)]
    return float((below[0] - below[1]).abs().max()) * (len(a) * len(b) / (len(a) + len(b))) ** 0.5


def compare(tap, model, ours, theirs):
    missing = {name for name in theirs if name not in ours or ours[name].shape != theirs[name].shape}
    if not tap.check(f"{model} has the same tensors", not missing, missing):
        return
    off = {name: distance(ours[name], theirs[name]) for name in theirs}
    worst = max(off, key=off.get)
    tap.check(f"{model}: initial values of {len(off)} tensors are distributed alike", off[worst] <= LIMIT,
              "\n".join(f"{name}: {d:.1f}, deviations {float(ours[name].std()):.4g} and {float(theirs[name].std()):.4g}"
                        for name, d in off.items() if d > LIMIT))
    print(f"# {model}: largest distance {off[worst]:.2f} ({worst}), allowed {LIMIT}")


def main():
    torch.set_num_threads(1)  # two wait for each other, spinning, where the machine is busy
    tap = Tap()
    for model in ("mlp", "cnn", "resnet18", "transformer"):
        compare(tap, model, initial(sys.argv[1], model), reference(model))
    # The comparison itself: PyTorch's own initial weights of cnn are others.
    torch.manual_seed(1)
    own = torch_models.build("cnn").conv2.weight.detach()
    d = distance(own, reference("cnn")["conv2.weight"])
    tap.check("PyTorch's own distribution is told apart", d > LIMIT, d)
    sys.exit(tap.end())


if __name__ == "__main__":
    main()

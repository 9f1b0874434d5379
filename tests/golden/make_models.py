#!/usr/bin/env python3
"""Make the golden files: what PyTorch gets for each model family on weights and inputs that formula.h also computes.

    python3 tests/golden/make_models.py [--check | --search N] [NAME...]

Everything is computed in float64, so a golden value is exact to the digits written. The same step is also done in
PyTorch's float32; its distance from float64, as the C test would measure it, is printed beside the tolerance, which
must leave room for it. --check computes float64 only, writes nothing and fails when the files in the tree differ.
--search tries N seeds and prints the margin of each (see margin() below). README.md describes the files.
"""
import argparse
import copy
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "bench")]
sys.dont_write_bytecode = True

import formula  # noqa: E402


class Case:
    """One golden file. `tolerance` bounds what README.md says; `samples` elements of every gradient are listed."""

    def __init__(self, model, seed, channels=1, size=28, classes=10, batch=8, samples=2, **tolerance):
        self.model, self.seed, self.samples, self.tolerance = model, seed, samples, tolerance
        self.channels, self.size, self.classes, self.batch = channels, size, classes, batch


CASES = {
    "mlp": Case("mlp", 1, samples=6, loss=1e-6, logits=1e-5, grad=1e-5, buffer=1e-5),
    "cnn": Case("cnn", 3, batch=70, samples=6, loss=1e-6, logits=1e-5, grad=1e-5, buffer=1e-5),
    "resnet18": Case("resnet18", 7, loss=5e-6, logits=2e-5, grad=1e-4, buffer=5e-6),
    "resnet18-rgb32": Case("resnet18", 1, channels=3, size=32, classes=7, batch=5,
                           loss=5e-6, logits=2e-5, grad=1e-4, buffer=5e-6),
    "resnet50": Case("resnet50", 46, loss=5e-6, logits=2e-5, grad=1e-4, buffer=5e-6),
}
LR = 1e-3


def build(case, dtype):
    """The model with the formula's parameters and running statistics, and one batch."""
    import torch

    import torch_models

    model = torch_models.build(case.model, case.channels, case.size, case.classes).to(dtype)
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if not name.endswith("num_batches_tracked"):
                tensor.copy_(torch.from_numpy(formula.fill_param(case.seed, name, tuple(tensor.shape))))
    shape = (case.batch, case.channels, case.size, case.size)
    x = torch.from_numpy(formula.fill(case.seed, "input", 0.0, 1.0, int(np.prod(shape))).reshape(shape)).to(dtype)
    return model, x, torch.from_numpy(formula.labels(case.seed, case.classes, case.batch))


def run_case(case, dtype):
    """One training step; returns everything the file holds, as float64 arrays."""
    import torch

    model, x, y = build(case, dtype)
    with torch.no_grad():
        eval_logits = copy.deepcopy(model).eval()(x)
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=LR)
    logits = model(x)
    loss = torch.nn.functional.cross_entropy(logits, y)
    loss.backward()
    grads = {n: p.grad.double().numpy().ravel().copy() for n, p in model.named_parameters()}
    optimizer.step()
    return {
        "loss": float(loss.double()),
        "correct": int((logits.argmax(1) == y).sum()),
        "logits": eval_logits.double().numpy(),
        "grads": grads,
        "after": {n: p.detach().double().numpy().ravel() for n, p in model.named_parameters()},
        "buffers": {n: b.double().numpy() for n, b in model.named_buffers() if b.dim() > 0},
    }


def kink_inputs(case, dtype):
    """What enters each ReLU, and the lead of the largest over the second in each max-pooling window, in order."""
    import torch
    from torch import nn

    found = []

    def at_relu(_module, args):
        found.append(args[0].double().clone().ravel())

    def at_pool(pool, args):
        x = nn.functional.pad(args[0].double(), [pool.padding] * 4, value=-1.0)
        windows = x.unfold(2, pool.kernel_size, pool.stride).unfold(3, pool.kernel_size, pool.stride)
        top = windows.flatten(4).topk(2, dim=4).values
        # A window of zeros (all cut by the ReLU before) passes no gradient, so its ties do not matter.
        found.append(torch.where(top[..., 0] > 0, top[..., 0] - top[..., 1], torch.ones(())).ravel())

    model, x, _ = build(case, dtype)
    for module in model.modules():
        if isinstance(module, nn.ReLU):
            module.register_forward_pre_hook(at_relu)
        elif isinstance(module, nn.MaxPool2d):
            module.register_forward_pre_hook(at_pool)
    with torch.no_grad():
        model.train()(x)
    return found


def margin(case):
    """How far the nearest ReLU input is from 0 (or the nearest pooling winner from its rival), in units of the float32
    rounding error there. One element that falls on the other side moves a gradient by a few thousandths, right or
    wrong, so a case uses a seed for which no element is near: 10 and more is good."""
    import torch

    worst = float("inf")
    for wide, narrow in zip(kink_inputs(case, torch.float64), kink_inputs(case, torch.float32)):
        error = (wide - narrow).pow(2).mean().sqrt()
        worst = min(worst, float(wide.abs().min() / error))
    return worst


def sample_indices(case, name, grad, count):
    """`count` indices drawn by the formula. Adam's first step is about lr*sign(gradient), so elements whose gradient is
    lost in rounding are passed over; zeros are welcome where there are many (filter taps that never meet the image)."""
    size = grad.size
    floor = 0.05 * np.sqrt(np.mean(grad**2))
    has_dead = np.mean(grad == 0) > 0.05
    picked = []
    for word in formula.words(case.seed, name + "/sample", 64 * count):
        index = int(word) % size
        if index not in picked and (has_dead and grad[index] == 0 or abs(grad[index]) >= floor):
            picked.append(index)
        if len(picked) == min(count, size):
            break
    return picked


def probe(case, name, grad):
    """A projection on pseudo-random signs: unlike norm and sum it notices elements that changed places."""
    return float(np.dot(grad, formula.units(case.seed, name + "/probe", grad.size).astype(np.float64)))


def number(x):
    return f"{x:.7g}"


def pairs(indices, values):
    return " ".join(f"{i} {number(values[i])}" for i in indices)


def render(case, got):
    lines = [
        "# made by make_models.py; README.md explains the lines",
        f"model {case.model} {case.channels} {case.size} {case.size} {case.classes} {case.batch} {case.seed}",
        "tolerance " + " ".join(f"{key} {value:g}" for key, value in case.tolerance.items()),
        f"adam {LR:g}",
        f"loss {number(got['loss'])} {number(got['loss'] * case.batch)} {got['correct']}",
    ]
    lines += [f"logits {i} " + " ".join(map(number, row)) for i, row in enumerate(got["logits"])
              if i < 6 or i >= case.batch - 2]
    for name, grad in got["grads"].items():
        chosen = sample_indices(case, name, grad, case.samples)
        facts = (np.linalg.norm(grad), grad.sum(), probe(case, name, grad))
        lines.append(f"param {name} {grad.size} " + " ".join(map(number, facts)))
        lines.append(f"grad {len(chosen)} " + pairs(chosen, grad))
        chosen = chosen[: case.samples // 2]
        lines.append(f"after {len(chosen)} " + pairs(chosen, got["after"][name]))
    for name, values in got["buffers"].items():
        chosen = sample_indices(case, name, values, 1)
        facts = (np.linalg.norm(values), values.sum(), probe(case, name, values))
        lines.append(f"buffer {name} {values.size} " + " ".join(map(number, facts)))
        lines.append(f"value {len(chosen)} " + pairs(chosen, values))
    return "\n".join(lines) + "\nend\n"


def distances(wide, narrow):
    """How far float32 is from float64, in the units of the tolerances: worst over tensors."""

    def relative(a, b):
        return float(np.max(np.abs(a - b)) / max(np.max(np.abs(a)), 1e-30))

    grad = 0.0
    for name, g in wide["grads"].items():
        norm = np.linalg.norm(g)
        if norm > 0:
            grad = max(grad, np.linalg.norm(narrow["grads"][name] - g) / norm)
    buffers = [relative(b, narrow["buffers"][n]) for n, b in wide["buffers"].items()]
    return {
        "loss": abs(wide["loss"] - narrow["loss"]) / abs(wide["loss"]),
        "logits": relative(wide["logits"], narrow["logits"]),
        "grad": grad,
        "buffer": max(buffers, default=0.0),
    }


def render_formula():
    """Checksums of a few tensors made by the formula: FNV-1a over their words as bits, one multiplication a word."""
    lines = ["# checksums of tensors made by the formula with seed 1: name, shape, FNV-1a over the float bits"]
    for name, shape in (("conv1.weight", (64, 3, 7, 7)), ("bn1.weight", (64,)), ("bn1.running_mean", (64,)),
                        ("bn1.running_var", (64,)), ("fc.weight", (10, 512)), ("fc.bias", (10,))):
        checksum = 2166136261
        for bits in formula.fill_param(1, name, shape).view(np.uint32).ravel().tolist():
            checksum = ((checksum ^ bits) * 16777619) & 0xFFFFFFFF
        lines.append(f"tensor {name} {len(shape)} {' '.join(map(str, shape))} {checksum:08x}")
    return "\n".join(lines) + "\nend\n"


def close(a, b):
    """Same text, or the same words but for the last digits of numbers (another BLAS, another version)."""
    a, b = a.split(), b.split()
    if len(a) != len(b):
        return False
    for x, y in zip(a, b):
        if x != y:
            try:
                if not abs(float(x) - float(y)) <= 1e-6 * max(abs(float(x)), 1e-4):
                    return False
            except ValueError:
                return False
    return True


def publish(file, text, check):
    path = os.path.join(HERE, "models", file + ".txt")
    if check:
        with open(path) as f:
            same = close(f.read(), text)
        print(f"{file}: {'same' if same else 'DIFFERS from the file in the tree'}")
        return same
    with open(path, "w") as f:
        f.write(text)
    return True


def make(file, check):
    import torch

    case = CASES[file]
    wide = run_case(case, torch.float64)
    if check:
        return publish(file, render(case, wide), check)
    found = distances(wide, run_case(case, torch.float32))
    ok = True
    for key, limit in case.tolerance.items():
        room = found[key] <= limit / 3
        ok &= room
        print(f"{file}: {key} float32 is off by {found[key]:.1e}, tolerance {limit:g}{'' if room else ': TOO TIGHT'}")
    return publish(file, render(case, wide), check) and ok


def search(file, count):
    case = copy.copy(CASES[file])
    for case.seed in range(1, count + 1):
        print(f"{file}: seed {case.seed} margin {margin(case):.1f}", flush=True)


def main():
    import torch

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="of " + ", ".join(CASES))
    parser.add_argument("--check", action="store_true", help="compare with the files in the tree, write nothing")
    parser.add_argument("--search", type=int, metavar="N", help="print the margins of seeds 1 .. N, write nothing")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in CASES]
    if unknown:
        parser.error(f"no case named {unknown[0]}; there are {', '.join(CASES)}")
    torch.set_num_threads(1)
    if options.search:
        for file in options.names or CASES:
            search(file, options.search)
        return
    os.makedirs(os.path.join(HERE, "models"), exist_ok=True)
    ok = publish("formula", render_formula(), options.check)
    for file in options.names or CASES:
        ok &= make(file, options.check)
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Weights move between Lockstep and torchvision in both directions, and mean the same on both sides, gradients of the Vision
Transformer included. Prints TAP.

    python3 tests/golden/torch_roundtrip.py LOCKSTEP [DIRECTORY]

LOCKSTEP is the command; DIRECTORY, where files are made, is a temporary one when not given.
"""
import glob
import os
import shutil
import subprocess
import sys

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "bench")]
sys.dont_write_bytecode = True

import torch_models  # noqa: E402
from torch_common import TOLERANCE, Tap, read_safetensors, write_safetensors  # noqa: E402
from torch_vit import SIZES, Vit  # noqa: E402

# ---- the two sides


class Lockstep:
    def __init__(self, binary, directory):
        self.binary, self.directory = os.path.abspath(binary), directory

    def run(self, *arguments):
        done = subprocess.run([self.binary, *arguments], cwd=self.directory, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"lockstep {' '.join(arguments)}: exit status {done.returncode}\n{done.stderr}")
        return done.stdout

    def logits(self, source, *arguments):
        """Outputs on the first 40 test glyphs: logits, labels, images."""
        self.run("eval", source, *arguments, "--samples", "40", "--logits", "logits.safetensors", "--quiet")
        return read_safetensors(os.path.join(self.directory, "logits.safetensors"))

    def train(self, run, *arguments):
        self.run("train", "--data", "glyphs", "--samples", "128", "--eval-every", "0", "--batch", "32", "--devices", "1",
                 "--quiet", "--run", run, *arguments)
        (file,) = glob.glob(os.path.join(self.directory, run, "ckpt", "step-*", "model.safetensors"))
        return read_safetensors(file)


def torch_logits(model, images):
    with torch.no_grad():
        return model.eval()(images)


def build(name):
    if name in SIZES:
        model = Vit(name)
        for parameter in (model.vit.embeddings.cls_token, model.vit.embeddings.position_embeddings):
            torch.nn.init.normal_(parameter, 0, 0.5)
        return model
    model = torch_models.build(name.removesuffix("-cifar"))
    if name.endswith("-cifar"):
        model.conv1, model.maxpool = torch.nn.Conv2d(1, 64, 3, 1, 1, bias=False), torch.nn.Identity()
    return model


def busy_model(name):
    """Weights no initialisation gives: every tensor of the model, running statistics included, is off its default."""
    torch.manual_seed(20)
    model = build(name)
    with torch.no_grad():
        for key, tensor in model.state_dict().items():
            if key.endswith("running_var"):
                tensor.uniform_(0.5, 2.0)
            elif key.endswith("num_batches_tracked"):
                tensor.fill_(11)
            elif tensor.dim() == 1:
                tensor.add_(0.2 * torch.randn_like(tensor))
            else:
                tensor.mul_(1 + 0.1 * torch.randn_like(tensor))
    return model


# ---- the tests


def from_lockstep(tap, lockstep):
    saved = lockstep.train("trained", "--model", "resnet18", "--steps", "4")
    out = lockstep.logits("trained")
    model = torch_models.build("resnet18")
    try:
        model.load_state_dict(saved, strict=True)
    except RuntimeError as error:
        tap.check("a trained ResNet-18 loads into torchvision, strict", False, error)
        return
    tap.check("a trained ResNet-18 loads into torchvision, strict", True)
    tap.check("its counter of batches is the number of steps", int(saved["bn1.num_batches_tracked"]) == 4,
              saved["bn1.num_batches_tracked"])
    tap.check("images and labels come with the logits", tuple(out["images"].shape) == (40, 1, 28, 28)
              and out["labels"].min() >= 0 and out["labels"].max() <= 9)
    tap.close("torchvision gets the same logits", torch_logits(model, out["images"]), out["logits"])


def to_lockstep(tap, lockstep, name):
    file = f"{name}.safetensors"
    model = busy_model(name)
    write_safetensors(os.path.join(lockstep.directory, file), model.state_dict())
    out = lockstep.logits(file, "--model", name, "--data", "glyphs")
    expected = torch_logits(model, out["images"])
    tap.check(f"{name}: the outputs are not trivial", float(expected.std()) > 0.01 and bool(expected.isfinite().all()))
    tap.close(f"{name}: Lockstep gets the same logits with PyTorch's weights", out["logits"], expected)


def start_from_torch(tap, lockstep):
    """A step that is too small to change any weight shows what --init loaded."""
    given = busy_model("resnet18").state_dict()
    saved = lockstep.train("started", "--model", "resnet18", "--init", "resnet18.safetensors", "--steps", "1",
                           "--optimizer", "sgd", "--momentum", "0", "--lr", "1e-30")
    different = [key for key, tensor in given.items() if "running" not in key and "num_batches" not in key
                 and not torch.equal(saved[key], tensor)]
    tap.check("train --init starts from PyTorch's weights, bit for bit", saved.keys() == given.keys() and not different,
              different)
    tap.check("and goes on counting batches", int(saved["bn1.num_batches_tracked"]) == 12,
              saved["bn1.num_batches_tracked"])
    means = saved["bn1.running_mean"], given["bn1.running_mean"]
    tap.check("and moves the running statistics from PyTorch's", not torch.equal(*means)
              and bool(((means[0] - 0.9 * means[1]).abs() < 1).all()))


def one_step(tap, lockstep, name):
    """A step of plain SGD on one micro-batch, from PyTorch's weights: what it took away is the gradient."""
    lockstep.run("data", "make", "glyphs", "--samples", "32", "--out", "one", "--quiet")
    for kind in ("images-idx3", "labels-idx1"):  # test on what is trained on
        shutil.copy(os.path.join(lockstep.directory, f"one/train-{kind}-ubyte"),
                    os.path.join(lockstep.directory, f"one/t10k-{kind}-ubyte"))
    out = lockstep.logits(f"{name}.safetensors", "--model", name, "--data", "one")
    rate, model = 16.0, busy_model(name).eval()
    loss = torch.nn.functional.cross_entropy(model(out["images"]), out["labels"].long())
    loss.backward()
    lockstep.run("train", "--data", "one", "--model", name, "--init", f"{name}.safetensors", "--steps", "1", "--batch", "32",
                 "--optimizer", "sgd", "--momentum", "0", "--lr", str(rate), "--schedule", "constant", "--eval-every", "0",
                 "--devices", "1", "--quiet", "--run", "step")
    (file,) = glob.glob(os.path.join(lockstep.directory, "step", "ckpt", "step-*", "model.safetensors"))
    saved, errors = read_safetensors(file), {}
    largest = max(float(p.grad.abs().max()) for p in model.parameters())
    for key, p in model.named_parameters():
        rounding = 1e-7 * p.detach().abs().max().item() / rate
        error = float(((p.detach() - saved[key]) / rate - p.grad).abs().max())
        scale = float(p.grad.abs().max())
        if error > TOLERANCE * (scale if scale > 1e-4 * largest else largest) + rounding:
            errors[key] = (error, scale)
    tap.check(f"{name}: gradients of all {len(list(model.parameters()))} tensors", not errors, errors)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    torch.set_num_threads(1)
    tap = Tap()
    with tap.comparison() as temporary:
        lockstep = Lockstep(sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else temporary)
        from_lockstep(tap, lockstep)
        for name in ("resnet18", "resnet18-cifar", "resnet50", "cnn", "mlp", "vit-tiny"):
            to_lockstep(tap, lockstep, name)
        one_step(tap, lockstep, "vit-tiny")
        start_from_torch(tap, lockstep)
    sys.exit(tap.end())


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""torchvision's ResNet-50 of 1,000 classes gets a head of four and learns nothing but that: the trunk is the file's
afterwards, bit for bit, and the head's step is PyTorch's. Prints TAP.

    python3 tests/golden/torch_fine_tune.py LOCKSTEP
"""
import glob
import os
import subprocess
import sys

import numpy as np
import torch
import torchvision
from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
sys.dont_write_bytecode = True

from torch_common import Tap, read_safetensors, write_safetensors  # noqa: E402

CLASSES = ("ant", "bee", "cat", "dog")
SAMPLES = 16
TRUNK = "conv1.*,bn1.*,layer*"
RATE = 0.5


def weights():
    """As torchvision makes them, nothing is downloaded; running statistics are off their defaults."""
    torch.manual_seed(30)
    model = torchvision.models.resnet50(weights=None)
    with torch.no_grad():
        for key, tensor in model.state_dict().items():
            if key.endswith("running_var"):
                tensor.uniform_(0.5, 2.0)
            elif key.endswith("running_mean"):
                tensor.uniform_(-0.1, 0.1)
            elif key.endswith("num_batches_tracked"):
                tensor.fill_(11)
    return model


def write_images(directory):
    """Noise of four colours, as a folder per class; the test images are those that are trained on."""
    noise = np.random.default_rng(31)
    for split in ("train", "test"):
        for name in CLASSES:
            os.makedirs(os.path.join(directory, split, name))
    for i in range(SAMPLES):
        pixels = noise.integers(0, 160, (32, 32, 3), dtype=np.uint8)
        pixels[:, :, i % 3] += 24 * (i % 4)
        for split in ("train", "test"):
            Image.fromarray(pixels).save(os.path.join(directory, split, CLASSES[i % 4], f"{i}.png"))


def run(directory, *arguments):
    done = subprocess.run(arguments, cwd=directory, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)}: exit status {done.returncode}\n{done.stderr}")
    return done.stdout, done.stderr


def tune(lockstep, directory, name, rate):
    """One step of plain SGD on all images: what is printed, and the weights afterwards."""
    printed = run(directory, lockstep, "train", "--model", "resnet50", "--data", "./four", "--init", "resnet50.safetensors",
                  "--freeze", TRUNK, "--steps", "1", "--batch", str(SAMPLES), "--optimizer", "sgd", "--momentum", "0",
                  "--schedule", "constant", "--lr", str(rate), "--eval-every", "0", "--seed", "5", "--run", name)  # fmt: skip
    (file,) = glob.glob(os.path.join(directory, name, "ckpt", "step-*", "model.safetensors"))
    return printed, read_safetensors(file)


def head_after(model, head, images, labels):
    """The head after PyTorch's step; the trunk works as in inference."""
    model.fc = torch.nn.Linear(2048, len(CLASSES))
    model.fc.load_state_dict(head)
    for name, parameter in model.named_parameters():
        parameter.requires_grad = name.startswith("fc.")
    torch.nn.functional.cross_entropy(model.eval()(images), labels.long()).backward()
    return {name: head[name] - RATE * getattr(model.fc, name).grad for name in head}


def compare(tap, lockstep, directory):
    model = weights()
    given = model.state_dict()
    write_safetensors(os.path.join(directory, "resnet50.safetensors"), given)
    write_images(os.path.join(directory, "four"))
    _, begun = tune(lockstep, directory, "begun", 1e-30)  # a step that changes nothing
    (out, err), tuned = tune(lockstep, directory, "tuned", RATE)
    tap.check("a new head is said to be one", "has 1000 classes, this model 4: its layer fc is not used, the model's own is newly initialised"
              in err and "newly initialised from seed 5: fc.weight (4, 2048) ~ U(" in err, err)  # fmt: skip
    # All norms have one counter of batches, which goes on.
    trunk = [key for key in given if not key.startswith("fc.") and not key.endswith("num_batches_tracked")]
    frozen = sum(parameter.numel() for name, parameter in model.named_parameters() if not name.startswith("fc."))
    tap.check("and the rest frozen", f" parameters from resnet50.safetensors, {frozen} of them frozen;" in out, out)
    different = [key for key in trunk if not torch.equal(tuned[key], given[key])]
    tap.check(f"all {len(trunk)} tensors of the trunk are the file's, running statistics included",
              tuned.keys() == given.keys() and not different, different)  # fmt: skip

    run(directory, lockstep, "eval", "begun", "--logits", "logits.safetensors", "--quiet")
    seen = read_safetensors(os.path.join(directory, "logits.safetensors"))
    head = {name: begun[f"fc.{name}"] for name in ("weight", "bias")}
    tap.check("the head has four classes, and learned", tuple(tuned["fc.weight"].shape) == (4, 2048) and
              all(not torch.equal(row, first) for row, first in zip(tuned["fc.weight"], begun["fc.weight"])))  # fmt: skip
    expected = head_after(model, head, seen["images"], seen["labels"])
    for name in head:
        moved = expected[name] - head[name]
        tap.close(f"fc.{name} moved as in PyTorch", (tuned[f"fc.{name}"] - head[name]) / moved.abs().max(), moved / moved.abs().max())


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    tap = Tap()
    with tap.comparison() as temporary:
        compare(tap, os.path.abspath(sys.argv[1]), temporary)
    sys.exit(tap.end())


if __name__ == "__main__":
    main()

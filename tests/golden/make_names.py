#!/usr/bin/env python3
"""Write names-<model>.txt: torchvision's state_dict, one line a tensor: name and shape, for 1 input channel and 10 classes.

The first line, after '#', is the number of trainable parameters. Run it where torchvision is installed:

    tests/golden/make_names.py
"""
import os

import torch
import torchvision

MODELS = ["resnet18", "resnet50"]
HERE = os.path.dirname(os.path.abspath(__file__))


def build(name):
    net = getattr(torchvision.models, name)(num_classes=10)
    net.conv1 = torch.nn.Conv2d(1, 64, kernel_size=7, stride=2, padding=3, bias=False)
    return net


def main():
    for name in MODELS:
        net = build(name)
        with open(os.path.join(HERE, f"names-{name}.txt"), "w", encoding="utf-8") as out:
            out.write(f"# {sum(p.numel() for p in net.parameters())}\n")
            for key, tensor in net.state_dict().items():
                shape = "x".join(str(n) for n in tensor.shape)
                out.write(f"{key} {shape or 'scalar'}\n")


if __name__ == "__main__":
    main()

"""What the tests of the Python package share. tests/python/t8500-package.sh runs them."""

import os
import subprocess

import numpy as np
import pytest

import lockstep

SMALL = dict(samples=320, test_samples=64, batch=64, micro_batch=32)


@pytest.fixture(scope="session")
def digits():
    """320 images and labels of the built-in digits."""
    with lockstep.Dataset("glyphs", samples=320) as data:
        return data.arrays()


@pytest.fixture
def model():
    with lockstep.Model("mlp") as made:
        yield made


def command(*arguments):
    """Output of the command `lockstep`."""
    return subprocess.run([os.environ["LOCKSTEP"], *arguments], check=True, capture_output=True, text=True).stdout


def own_graph(classes=10):
    graph = lockstep.Graph()
    x = graph.input(1, 28, 28)
    x = graph.conv2d(x, "conv", out_channels=8, kernel=3, stride=2, padding=1)
    return graph.finish(graph.linear(graph.relu(x), "fc", out_features=classes))


class Digits:
    """A dataset as PyTorch users write them."""

    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


def as_bytes(images):
    """The pixels that the built-in digits were normalised from."""
    return np.rint((images * np.float32(0.3081) + np.float32(0.1307)) * 255).astype(np.uint8)

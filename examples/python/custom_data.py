"""Data of your own: numpy arrays, or a class that makes samples when they are asked for; and a model of your own.

The data are stripes that lean one way or the other, in noise. The class and the arrays hold the same samples, so training
gives the same weights, to the bit.

python custom_data.py
"""

import numpy as np

import lockstep

SIDE = 16


class Stripes:
    """What PyTorch calls a map-style dataset: sample i depends on i alone."""

    def __init__(self, first, count):
        self.first, self.count = first, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        random = np.random.default_rng(self.first + index)
        label = int(random.integers(2))
        angle = random.uniform(0.15, 1.35) * (1 if label else -1)
        y, x = np.mgrid[0:SIDE, 0:SIDE]
        wave = np.cos((x * np.cos(angle) + y * np.sin(angle)) * random.uniform(0.8, 1.6) + random.uniform(0, 6.28))
        image = wave + random.uniform(-1, 1, wave.shape)
        return image[np.newaxis].astype(np.float32), label


def model():
    g = lockstep.Graph()
    x = g.input(1, SIDE, SIDE)
    for i, channels in enumerate((16, 32)):
        x = g.conv2d(x, f"conv{i}", out_channels=channels, kernel=3, padding=1, bias=False)
        x = g.max_pool2d(g.relu(g.batch_norm(x, f"norm{i}")), kernel=2)
    return g.finish(g.linear(x, "fc", out_features=2))


def main():
    train, test = Stripes(0, 2048), Stripes(10**6, 512)
    images, labels = (np.stack(part) for part in zip(*(train[i] for i in range(len(train)))))
    settings = dict(epochs=2, batch=64, lr=3e-3, test_data=lockstep.Dataset.wrap(test, classes=2))

    from_arrays = lockstep.train(model(), (images, labels), **settings)
    from_class = lockstep.train(model(), lockstep.Dataset.wrap(train, classes=2), **settings)
    print(f"arrays: accuracy {from_arrays.test_accuracy:.4f}, parameters {from_arrays.fingerprint}")
    print(f"class:  accuracy {from_class.test_accuracy:.4f}, parameters {from_class.fingerprint}")
    assert from_arrays.fingerprint == from_class.fingerprint


if __name__ == "__main__":
    main()

"""Train a CNN on MNIST (downloaded the first time, 12 MB) and look at a few predictions.

python mnist.py [--data glyphs]
"""
import sys

import lockstep

data = sys.argv[2] if sys.argv[1:2] == ["--data"] else "mnist"
if data == "mnist":
    lockstep.download("mnist")
result = lockstep.train("cnn", data, epochs=1, samples=6000, run="runs/mnist")
print(f"test accuracy {result.test_accuracy:.4f}, parameters {result.fingerprint}")

images, labels = lockstep.Dataset(data, "test").arrays(0, 8)
predicted = result.load().predict(images, probabilities=True)
print("labels   ", labels, "\npredicted", predicted.argmax(axis=1))

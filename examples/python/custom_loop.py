"""A custom training loop: batches in any order you like, a learning rate of your own, accumulated gradients, and
a checkpoint to go on from.

python custom_loop.py
"""

import math
import tempfile

import numpy as np

import lockstep

STEPS, BATCH = 60, 64


def main():
    images, labels = lockstep.Dataset("glyphs", samples=4000).arrays()
    test = lockstep.Dataset("glyphs", "test", samples=500)
    random = np.random.default_rng(1)

    with lockstep.Model("cnn", seed=1) as model, lockstep.Trainer(model, batch=BATCH, optimizer="adamw", clip_norm=1) as trainer:
        for step in range(STEPS):
            trainer.lr = 2e-3 * 0.5 * (1 + math.cos(math.pi * step / STEPS))
            chosen = random.choice(len(labels), size=BATCH, replace=False)
            report = trainer.step(images[chosen], labels[chosen])
            if step % 20 == 0:
                print(f"step {report.steps}: loss {report.loss:.4f}, gradient norm {report.gradient_norm:.2f}")

        # A step on more samples than fit into one batch: backward several times, update once.
        for part in np.array_split(np.arange(2 * BATCH), 2):
            trainer.backward(images[part], labels[part])
        largest = max(trainer.gradients().items(), key=lambda item: float(np.abs(item[1]).max()))
        print(f"largest gradient: {np.abs(largest[1]).max():.4f} in {largest[0]}")
        trainer.update()

        with tempfile.TemporaryDirectory() as directory:
            trainer.save(directory)
            trainer.step(images[:BATCH], labels[:BATCH])
            after = model.fingerprint
            trainer.load(directory)
            trainer.step(images[:BATCH], labels[:BATCH])
            assert model.fingerprint == after  # the same bits again
        print(f"test accuracy {trainer.evaluate(test).accuracy:.4f}, parameters {model.fingerprint}")


if __name__ == "__main__":
    main()

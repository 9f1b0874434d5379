"""What an installed package must do, without pytest: tools/python-versions runs it with every CPython."""

import os
import signal
import threading
import time

import numpy as np

import lockstep

assert "LOCKSTEP_LIBRARY" not in os.environ
print("python", lockstep.__file__, lockstep.version)

steps = []
result = lockstep.train("cnn", "glyphs", samples=320, test_samples=64, batch=64, run="run", on_step=steps.append, progress=True)
assert len(steps) == result.steps == 5
print("fingerprint", result.fingerprint)

images, labels = lockstep.Dataset("glyphs", "test", samples=64).arrays()
with result.load() as model:
    assert model.fingerprint == result.fingerprint
    accuracy = float((model.predict(images).argmax(axis=1) == labels).mean())
    assert abs(accuracy - result.test_accuracy) < 1e-6, (accuracy, result)
    with lockstep.Trainer(model, batch=64) as trainer:
        assert np.isfinite(trainer.step(images, labels).loss)

try:
    lockstep.train("mlp", "glyphs", samples=320, on_step=lambda step: 1 / 0)
    raise SystemExit("an exception in a callback was lost")
except ZeroDivisionError:
    pass

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
began = time.monotonic()
try:
    lockstep.train("mlp", "glyphs", samples=3200, epochs=10**6, eval_every=0)
    raise SystemExit("Ctrl-C was lost")
except KeyboardInterrupt:
    assert time.monotonic() - began < 60

data = lockstep.Dataset.wrap(list(zip(images, labels)), classes=10)
graph = lockstep.Graph()
graph.finish(graph.linear(graph.input(1, 28, 28), "fc", out_features=10))
with lockstep.Trainer(lockstep.Model(graph), batch=32) as trainer:
    assert trainer.run(data).samples == 64
print("well")

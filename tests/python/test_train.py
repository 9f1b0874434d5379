"""train() gives what the command gives; callbacks, exceptions, Ctrl-C, threads."""

import math
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import lockstep
from conftest import SMALL, Digits, command, own_graph


def small(**more):
    return lockstep.train("mlp", "glyphs", **{**SMALL, **more})


def test_same_fingerprint_as_the_command():
    flags = ["--samples", "320", "--test-samples", "64", "--batch", "64", "--micro-batch", "32", "--epochs", "2", "--lr", "2e-3"]
    out = command("train", "--model", "cnn", "--data", "glyphs", *flags, "--devices", "1", "--clip-norm", "1")
    result = lockstep.train("cnn", "glyphs", epochs=2, lr=2e-3, clip_norm=1, devices=2, **SMALL)
    assert f"parameters xxh64 {result.fingerprint}\n" in out
    assert result.steps == 10 and 0 <= result.test_accuracy <= 1 and result.run is None
    assert float(re.findall(r"test accuracy: ([\d.]+)", out)[-1]) == pytest.approx(result.test_accuracy, abs=1e-4)


def test_callbacks_hear_all_of_it(tmp_path):
    steps, epochs, checkpoints, lines = [], [], [], []
    result = small(epochs=2, run=tmp_path / "run", on_step=steps.append, on_epoch=epochs.append,
                   on_checkpoint=checkpoints.append, on_log=lambda *line: lines.append(line))  # fmt: skip
    assert [step.step for step in steps] == list(range(1, 11)) and steps[0].steps == 10
    assert all(step.samples == 64 and step.lr > 0 and math.isfinite(step.loss) for step in steps)
    assert [epoch.epoch for epoch in epochs] == [0, 1] and epochs[1].test_accuracy == result.test_accuracy
    assert checkpoints[-1].fingerprint == result.fingerprint and checkpoints[-1].run == str(tmp_path / "run")
    assert ("result", f"parameters xxh64 {result.fingerprint}") in lines
    with result.load() as model:
        assert model.fingerprint == result.fingerprint and model.name == "mlp"
    again = lockstep.evaluate(tmp_path / "run")
    assert again.accuracy == result.test_accuracy and again.fingerprint == result.fingerprint


def test_the_best_weights_and_an_early_end(tmp_path):
    tests = []
    result = small(epochs=20, run=tmp_path / "run", keep_best="accuracy", early_stop=2, early_stop_delta=1, ema=0.5,
                   on_test=tests.append)  # fmt: skip
    assert result.stopped_early and len(tests) == 3 and tests[-1].stale == 2 and tests[-1].step == result.steps
    best = max(tests, key=lambda test: (test.accuracy, -test.step))
    assert best.is_best is True and best.metric == best.accuracy == result.best and best.step == result.best_step
    assert lockstep.evaluate(tmp_path / "run", best=True, save=True).accuracy == result.best
    assert (tmp_path / "run" / "eval.json").exists()
    with result.load(best=True) as model, lockstep.Model.load(tmp_path / "run" / "best.safetensors") as same:
        assert model.fingerprint == same.fingerprint
    plain = small(epochs=1)
    assert not plain.stopped_early and plain.best_step == 0


def test_nothing_is_printed(capfd):
    small(steps=2)
    assert capfd.readouterr() == ("", "")
    small(steps=2, verbose=True)
    assert "parameters xxh64" in capfd.readouterr().out


def test_progress_without_tqdm(capfd, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    small(steps=3, progress=True)
    assert re.search(r"step 3 of 3, loss \d\.\d+\s*\n$", capfd.readouterr().err)


def steps_of(run):
    """How far a run has come."""
    try:
        return max(row["step"] for row in lockstep.metrics(run))
    except FileNotFoundError:
        return 0


@pytest.mark.parametrize("kind", ["on_step", "on_epoch", "on_test", "on_checkpoint", "on_log"])
def test_an_exception_in_a_callback_ends_the_run(tmp_path, kind):
    calls = []

    def fail(*arguments):
        calls.append(arguments)
        raise ZeroDivisionError(kind)

    with pytest.raises(ZeroDivisionError, match=kind):
        small(epochs=50, run=tmp_path / "run", **{kind: fail})
    assert len(calls) == 1
    assert steps_of(tmp_path / "run") < 250
    assert small(steps=1).steps == 1  # the process is as before


def test_a_run_that_a_callback_ended_can_be_resumed(tmp_path):
    def fail(step):
        if step.step == 7:
            raise KeyError("enough")

    whole = small(epochs=3, run=tmp_path / "whole")
    with pytest.raises(KeyError):
        small(epochs=3, run=tmp_path / "run", on_step=fail)
    resumed = lockstep.train(run=tmp_path / "run", resume=True)
    assert resumed.steps == 15 and resumed.fingerprint == whole.fingerprint


def test_graph_arrays_and_class_give_the_same_bits(digits):
    images, labels = digits
    results = []
    for data in ((images, labels), lockstep.Dataset.wrap(Digits(images, labels), classes=10),
                 lockstep.Dataset("glyphs", samples=320)):  # fmt: skip
        with own_graph() as graph:
            results.append(lockstep.train(graph, data, test_data=(images, labels), epochs=1, batch=64, micro_batch=16))
    assert len({result.fingerprint for result in results}) == 1
    assert results[0].test_accuracy > 0.1


def test_a_model_in_memory_is_trained(digits):
    whole = small(epochs=1)
    with lockstep.Model("mlp") as model:
        assert lockstep.train(model, "glyphs", epochs=1, **SMALL).fingerprint == whole.fingerprint == model.fingerprint
        assert (model.predict(digits[0]).argmax(axis=1) == digits[1]).mean() > 0.2
    with pytest.raises(lockstep.ClosedError):
        lockstep.train(model, "glyphs", steps=1)


def test_an_exception_in_a_dataset_is_raised(digits):
    class Broken(Digits):
        def __getitem__(self, index):
            if index == 77:
                raise OSError("disk 77 is gone")
            return super().__getitem__(index)

    with own_graph() as graph, lockstep.Dataset.wrap(Broken(*digits), classes=10) as data:
        with pytest.raises(OSError, match="disk 77 is gone"), pytest.warns(RuntimeWarning, match="^eval_every has no effect"):
            lockstep.train(graph, data, epochs=3, batch=64, micro_batch=16, eval_every=0)
        with pytest.raises(OSError, match="disk 77"):
            data[77]
        assert data[78][1] == digits[1][78]


@pytest.mark.parametrize("change, message", [
    (lambda image: image[:, :5], "shape .* does not fit"),
    (lambda image: image.astype(np.complex64), "dtype complex64"),
    (lambda image: image * np.nan, "not finite"),
])  # fmt: skip
def test_bad_samples_of_a_class(digits, change, message):
    class Broken(Digits):
        def __getitem__(self, index):
            image, label = super().__getitem__(index)
            return (change(image) if index == 9 else image), label

    with lockstep.Dataset.wrap(Broken(*digits), classes=10) as data:
        with pytest.raises((TypeError, ValueError), match=f"sample 9.*{message}"):
            data[9]


def test_wrong_settings_are_named():
    for settings, message in [
        (dict(lrr=1), "unknown setting 'lrr'; did you mean 'lr'"),
        (dict(learning_rate=1), "unknown setting 'learning_rate'; here it is 'lr'"),
        (dict(lr_minn=True), "unknown setting 'lr_minn'; did you mean 'lr_min'"),
        (dict(on_step=3), "^on_step: a function is wanted, not int"),
        (dict(on_log="x"), "^on_log: a function is wanted, not str"),
        (dict(lr="fast"), "lr: 'fast' is not a number"),
        (dict(optimizer="adamm"), "did you mean 'adam'"),
        (dict(clip_norm=-3), "clip_norm must be at least 0"),
        (dict(resume=1), "True or False"),
        (dict(epochs=True), "not bool"),
        (dict(epochs=2.0), "whole number"),
        (dict(epochs=[1]), "not list"),
    ]:  # fmt: skip
        with pytest.raises((lockstep.InvalidError, TypeError), match=message):
            lockstep.train("mlp", "glyphs", samples=64, **settings)
    with pytest.raises(lockstep.InvalidError, match="did you mean 'glyphs'"):
        lockstep.train("mlp", "glyhps")
    with pytest.raises(TypeError, match="wrap"):
        lockstep.train("mlp", object())
    with pytest.raises(lockstep.NotFoundError, match=r'lockstep.download\("mnist"\) or use data="glyphs"$'):
        lockstep.train("mlp", "mnist", data_dir=os.devnull)
    with lockstep.Graph() as graph, pytest.raises(lockstep.InvalidError, match="finish"):
        lockstep.train(graph, "glyphs", steps=1)


def test_wrong_types_are_named(model, digits):
    """With the setting or argument, and what is wanted."""
    trainer = lambda **settings: lockstep.Trainer(model, **settings)  # noqa: E731
    graph = lockstep.Graph()
    graph.input(1, 8, 8)
    for call, kind, message in [
        (lambda: lockstep.Trainer("cnn"), TypeError, r"^model: a Model, not str; Model\(name\)"),
        (lambda: lockstep.Trainer(None), TypeError, "^model: a Model, not NoneType"),
        (lambda: trainer(lr="x"), TypeError, "^lr='x': a number is wanted, not str"),
        (lambda: trainer(batch=128.0), TypeError, "^batch=128.0: a whole number is wanted, not float"),
        (lambda: trainer(batch=10**30), ValueError, r"^batch=10{30}; it is from -\d+ to 9223372036854775807"),
        (lambda: trainer(lr=10**400), ValueError, "^lr=10+ is too large"),
        (lambda: trainer(optimizer=3), TypeError, "^optimizer=3: a text is wanted, not int"),
        (lambda: lockstep.Model("cnn", seed=-1), ValueError, "^seed=-1; it is from 0 to 18446744073709551615"),
        (lambda: lockstep.Model("cnn", classes=2**31), ValueError, "^classes=2147483648; it is from"),
        (lambda: lockstep.Model("cnn", input="1x28x28"), TypeError, r"^input: '1x28x28'; it is \(channels"),
        (lambda: lockstep.Model("bert-tiny", tokens=1.5), TypeError, "^tokens=1.5: a whole number"),
        (lambda: lockstep.Model(None), TypeError, "^model: a name or a Graph, not NoneType"),
        (lambda: lockstep.Model(graph), lockstep.InvalidError, r"^the graph is not finished; call finish\(\)$"),
        (lambda: lockstep.Dataset.wrap(5, classes=10), TypeError, "^samples: an object with __len__ and __getitem__ is wanted, not int"),
        (lambda: lockstep.Dataset.wrap([], classes=10), ValueError, "^samples: there are none"),
        (lambda: lockstep.Dataset.from_arrays(*digits)[0:1], TypeError, r"not a slice; arrays\(start, stop\)"),
        (lambda: lockstep.Dataset("glyphs", samples="many"), TypeError, "^samples='many'"),
        (lambda: model.set_devices("all"), TypeError, "^devices='all'"),
    ]:
        with pytest.raises(kind, match=message):
            call()
    with trainer(batch=np.int32(64), lr=np.float32(0.5), nesterov=np.bool_(False)) as made:
        assert made.lr == 0.5
        with pytest.raises(TypeError, match="^lr='fast'"):
            made.lr = "fast"
        with pytest.raises(TypeError, match="^steps=1.5"):
            made.run(digits, steps=1.5)


def test_the_main_thread_works_while_a_thread_trains():
    """The GIL is released: Python code goes on while C trains, at more than a crawl."""
    done, results = threading.Event(), []

    def work():
        results.append(lockstep.train("cnn", "glyphs", samples=2000, test_samples=64, epochs=1, devices=1))
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    counted = 0
    while not done.wait(0.001):
        counted += 1
    thread.join()
    assert results[0].steps == 16 and counted > 50


def test_runs_in_threads_have_the_bits_of_runs_alone():
    alone = small(epochs=2).fingerprint
    heard, results = [], []

    def work():
        results.append(small(epochs=2, devices=1, on_step=lambda step: heard.append(threading.get_ident())).fingerprint)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [alone] * 3 and len(heard) == 30


INTERRUPTED = """
import signal, sys, lockstep
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
def ready(step):
    if step.step == 3:
        print("ready", flush=True)
try:
    lockstep.train("mlp", "glyphs", samples=3200, epochs=100000, eval_every=0, run=sys.argv[1], on_step=ready)
except KeyboardInterrupt:
    print("interrupted", flush=True)
model = lockstep.Model.load(sys.argv[1])
print("loaded", model.name, flush=True)
"""


def interrupted(program, *arguments):
    """What a program prints after Ctrl-C, which comes once it has printed "ready"."""
    running = subprocess.Popen([sys.executable, "-c", program, *map(str, arguments)], stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout.readline() == "ready\n"
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(timeout=60)
    finally:
        running.kill()
    assert running.returncode == 0
    return out


def test_ctrl_c_stops_a_run_with_a_checkpoint(tmp_path):
    assert interrupted(INTERRUPTED, tmp_path / "run") == "interrupted\nloaded mlp\n"


def test_ctrl_c_stops_a_trainer():
    program = textwrap.dedent("""
        import signal
        import lockstep
        signal.signal(signal.SIGINT, signal.default_int_handler)
        trainer = lockstep.Trainer(lockstep.Model("mlp"), batch=64)
        data = lockstep.Dataset("glyphs", samples=3200)
        def ready(report):
            if report.steps == 3:
                print("ready", flush=True)
        try:
            trainer.run(data, steps=10**9, on_step=ready)
        except KeyboardInterrupt:
            print("interrupted", trainer.position.steps >= 3, flush=True)
        """)
    assert interrupted(program) == "interrupted True\n"


def test_ctrl_c_stops_an_evaluation(tmp_path):
    """Of a dataset that takes hours to read; the test ends it after a few samples."""
    small(epochs=1, run=tmp_path / "run")
    program = textwrap.dedent("""
        import signal, sys, time
        import numpy as np
        import lockstep
        signal.signal(signal.SIGINT, signal.default_int_handler)
        class Slow:
            def __len__(self):
                return 10**6
            def __getitem__(self, index):
                if index == 20:
                    print("ready", flush=True)
                time.sleep(0.01)
                return np.zeros((1, 28, 28), np.float32), 0
        try:
            lockstep.evaluate(sys.argv[1], data=lockstep.Dataset.wrap(Slow(), classes=10), batch=8, devices=1)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        """)
    assert interrupted(program, tmp_path / "run") == "interrupted\n"


def test_ctrl_c_stops_an_evaluation_of_a_trainer_on_a_long_dataset():
    """One of the library's own, which calls nothing of Python's; afterwards the trainer goes on."""
    program = textwrap.dedent("""
        import signal
        import lockstep
        signal.signal(signal.SIGINT, signal.default_int_handler)
        digits = lockstep.Dataset("glyphs", samples=10**7)
        trainer = lockstep.Trainer(lockstep.Model("cnn", seed=1), batch=32, devices=1, threads=1)
        try:
            print("ready", flush=True)
            trainer.evaluate(digits)
        except KeyboardInterrupt:
            print("interrupted", trainer.run(lockstep.Dataset("glyphs", samples=64), steps=1).steps, flush=True)
        """)
    assert interrupted(program) == "interrupted 1\n"


def test_ctrl_c_stops_an_evaluation_of_a_trainer_on_arrays():
    """It ends after a micro-batch, long before the last of 20,000 images: in less than half the time that all would take."""
    program = textwrap.dedent("""
        import signal, time
        import numpy as np
        import lockstep
        signal.signal(signal.SIGINT, signal.default_int_handler)
        images, labels = np.zeros((20000, 1, 28, 28), dtype=np.float32), np.zeros(20000, dtype=np.int32)
        trainer = lockstep.Trainer(lockstep.Model("resnet18", seed=1), batch=32, devices=1, threads=1)
        began = time.monotonic()
        trainer.evaluate(images[:200], labels[:200])
        all_of_them = 100 * (time.monotonic() - began)
        try:
            print("ready", flush=True)
            began = time.monotonic()
            trainer.evaluate(images, labels)
        except KeyboardInterrupt:
            print("interrupted", time.monotonic() - began < all_of_them / 2, trainer.step(images[:8], labels[:8]).steps, flush=True)
        """)
    assert interrupted(program) == "interrupted True 1\n"


def test_ctrl_c_stops_an_evaluation_of_a_trainer(digits):
    """Of a dataset that takes hours to read; afterwards trainer and dataset are as before."""

    class Slow(Digits):
        slow = True

        def __len__(self):
            return 10**6 if self.slow else len(self.labels)

        def __getitem__(self, index):
            if index == 20 and self.slow:
                os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01 if self.slow else 0)
            return self.images[index % 320], self.labels[index % 320]

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with lockstep.Model("mlp") as model, lockstep.Trainer(model, batch=64) as trainer:
            own = Slow(*digits)
            data = lockstep.Dataset.wrap(own, classes=10)
            began = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                trainer.evaluate(data)
            assert time.monotonic() - began < 30
            own.slow = False
            assert data[21][1] == digits[1][21]
            assert trainer.evaluate(lockstep.Dataset.wrap(own, classes=10)).accuracy == trainer.evaluate(*digits).accuracy
    finally:
        signal.signal(signal.SIGINT, before)


def test_plot_and_metrics(tmp_path):
    small(epochs=2, run=tmp_path / "run", log_every=1)
    kinds = {row["kind"] for row in lockstep.metrics(tmp_path / "run")}
    assert {"step", "epoch", "test", "end"} <= kinds
    with pytest.raises(FileNotFoundError, match="not a run directory"):
        lockstep.metrics(tmp_path)
    try:
        import matplotlib
    except ImportError:
        with pytest.raises(ImportError, match="matplotlib"):
            lockstep.plot(tmp_path / "run")
    else:
        matplotlib.use("Agg")
        assert panels(lockstep.plot(tmp_path / "run")) == {"loss": 3, "accuracy": 2}


def panels(figure):
    """How many lines each panel has, which its legend names."""
    for axis in figure.axes:
        assert len(axis.get_legend().get_texts()) == len(axis.lines)
    return {axis.get_ylabel(): len(axis.lines) for axis in figure.axes}


def test_plot_draws_what_the_run_has(tmp_path, digits):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    images, labels = digits[0][:64], digits[1][:64]
    wanted = {"regression": {"loss": 2, "error": 2, "R²": 1}, "multi-label": {"loss": 2, "accuracy": 2, "F1": 2}}
    for task, lines in wanted.items():
        targets = np.eye(10, dtype=np.float32)[labels]
        data = lockstep.Dataset.from_arrays(images, targets=targets, task=task)
        lockstep.train("mlp", data, test_data=data, run=tmp_path / task, batch=16)
        assert panels(lockstep.plot(tmp_path / task)) == lines
    for model, dataset, lines in (("gpt-nano", "babble", {"loss": 2, "accuracy": 2, "perplexity": 1}),
                                  ("bert-tiny", "babble-pairs", {"loss": 2, "accuracy": 2, "accuracy of masked tokens": 1})):  # fmt: skip
        lockstep.train(model, dataset, run=tmp_path / model, samples=32, test_samples=16, batch=16, seq_len=32)
        assert panels(lockstep.plot(tmp_path / model)) == lines
    _, axes = pyplot.subplots(1, 1, squeeze=False)
    assert panels(lockstep.plot(tmp_path / "regression", axes=axes[0])) == {"loss": 2}
    pyplot.close("all")

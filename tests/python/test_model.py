"""Models, graphs, trainers and datasets: numpy in and out, and what is refused."""

import gc
import math
import threading
import weakref

import numpy as np
import pytest

import lockstep
from conftest import as_bytes, own_graph


# ---- prediction


def test_strides_and_dtypes_do_not_change_a_prediction(model, digits):
    images = digits[0][:16]
    expected = model.predict(images)
    assert expected.shape == (16, 10) and expected.dtype == np.float32
    for same in (images.astype(np.float64), np.asfortranarray(images), images[::-1][::-1], list(images),
                 np.repeat(images, 2, axis=0)[::2], images.astype(">f4")):  # fmt: skip
        assert np.array_equal(model.predict(same), expected)
    readonly = images.copy()
    readonly.flags.writeable = False
    assert np.array_equal(model.predict(readonly), expected)
    assert np.array_equal(model.predict(images[5:6])[0], expected[5])
    assert model.predict(images[:0]).shape == (0, 10)
    chances = model.predict(images, probabilities=True)
    assert np.allclose(chances.sum(axis=1), 1) and np.array_equal(chances.argmax(axis=1), expected.argmax(axis=1))


def test_wrong_input_is_refused(model, digits):
    images = digits[0][:4]
    for bad, kind, message in [
        (images[0], ValueError, r"^x: shape \(1, 28, 28\) does not fit \(N, 1, 28, 28\); of one sample make a batch: array\[None\]$"),
        (images[:, 0], ValueError, r"; use array.reshape\(-1, 1, 28, 28\)$"),
        (images.transpose(0, 2, 3, 1), ValueError, r"; put channels first: array.transpose\(0, 3, 1, 2\)$"),
        (images[:, :, :27], ValueError, r"does not fit \(N, 1, 28, 28\)$"),
        ([images[0], images[0, :, :5]], (TypeError, ValueError), "different shapes|dtype object"),
        (images.astype(np.int64), TypeError, "images of int64"),
        (as_bytes(images), TypeError, r"know how to normalise them; give floats: \(images / 255 - mean\) / deviation$"),
        (images.astype(np.complex64), TypeError, "complex64"),
        (images.astype(str), TypeError, "an array of numbers is wanted, not an array of dtype"),
        ("a.png", TypeError, "an array of numbers is wanted, not str"),
        (images * np.float32(np.nan), ValueError, "sample 0 is infinite or not a number"),
        (images.astype(np.float64) * 1e300, ValueError, "too large for float32"),
        (None, TypeError, "not NoneType"),
    ]:  # fmt: skip
        with pytest.raises(kind, match=message):
            model.predict(bad)
    broken = images.copy()
    broken[2, 0, 5, 5] = np.inf
    with pytest.raises(ValueError, match="sample 2"):
        model.predict(broken)
    with pytest.raises(TypeError, match="models of text"):
        model.predict(images, segments=[[0]])


def test_bytes_are_normalised_as_the_model_wants_them(tmp_path, digits):
    lockstep.train("mlp", "glyphs", samples=320, test_samples=64, steps=1, run=tmp_path / "run")
    with lockstep.Model.load(tmp_path / "run") as model:
        mean, deviation = model.normalisation
        assert (mean[0], deviation[0]) == (0.1307, 0.3081)
        assert np.array_equal(model.predict(as_bytes(digits[0])), model.predict(digits[0]))


def test_text_models(tmp_path):
    with lockstep.Model("bert-tiny", tokens=32, vocabulary=100, classes=3) as model:
        assert model.is_text and model.tokens_max == 32 and model.vocabulary == 100
        rows = [[1, 2, 3], np.arange(32), [99]]
        logits = model.predict(rows)
        assert logits.shape == (3, 3)
        assert np.array_equal(model.predict([rows[1]])[0], logits[1])
        for bad, message in [([[100]], "0 to 99"), ([[]], "at least one"), ([np.arange(33)], "up to 32"), ([[0.5]], "whole")]:
            with pytest.raises((TypeError, ValueError), match=message):
                model.predict(bad)
        with pytest.raises(TypeError, match="not one text; put it into a list"):
            model.predict("hello")
        with lockstep.Trainer(model, batch=4, lr=1e-3) as trainer:
            first = trainer.step(rows, [0, 1, 2]).loss
            assert first != trainer.step(rows, [0, 1, 2]).loss
            data = lockstep.Dataset.from_tokens(rows * 4, [0, 1, 2] * 4, vocabulary=100)
            assert data[1].tokens.tolist() == list(range(32)) and data[1].label == 1
            assert trainer.run(data).samples == 12


# ---- parameters


def test_parameters_are_read_and_changed(model, digits):
    weights = model.parameters()
    assert len(weights) == len(model.parameter_infos()) == len(model.state_dict())
    name = next(name for name in weights if name.endswith("bias"))
    before, fingerprint = weights[name], model.fingerprint
    weights[name] = before + 1
    assert np.array_equal(weights[name], before + 1) and model.fingerprint != fingerprint
    weights[name] = (before + 0).astype(np.float64)
    assert model.fingerprint == fingerprint
    for bad, kind, message in [
        (before[:-1], ValueError, "does not fit"),
        (before * np.nan, lockstep.NumericError, "finite"),
        (before.astype(np.complex64), TypeError, "complex64"),
        (before.astype(np.int64), TypeError, "int64"),
    ]:  # fmt: skip
        with pytest.raises(kind, match=message):
            weights[name] = bad
    assert model.fingerprint == fingerprint
    with pytest.raises(KeyError, match=f"no parameter '{name}s'; there is {name}"):
        weights[name + "s"]
    with pytest.raises(TypeError):
        del weights[name]


def test_files(tmp_path, model, digits):
    path = tmp_path / "model.safetensors"
    model.save(path)
    tensors = lockstep.load_file(path)
    assert set(tensors) == set(model.parameters())
    with lockstep.Model("mlp", seed=2) as other:
        assert other.fingerprint != model.fingerprint
        other.load_state_dict(tensors)
        assert other.fingerprint == model.fingerprint
        with pytest.raises(KeyError, match="missing: .*; unknown: x"):
            other.load_state_dict({"x": np.zeros(1)})
        other.load_state_dict({"x": np.zeros(1)}, strict=False)
    with lockstep.Model.load(path, input=(1, 28, 28)) as loaded:
        assert np.array_equal(loaded.predict(digits[0]), model.predict(digits[0]))
    model.export_safetensors(tmp_path / "exported.safetensors")
    exported = lockstep.load_file(tmp_path / "exported.safetensors")
    assert all(np.array_equal(exported[name], tensors[name]) for name in tensors) and set(exported) == set(tensors)
    model.export_onnx(tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").stat().st_size > 1000
    with pytest.raises(lockstep.Error, match="nowhere"):
        model.save(tmp_path / "nowhere" / "x.safetensors")
    (tmp_path / "bad").write_bytes(b"\xff" * 100)
    header = b'{"x": {"dtype": "F32", "shape": [1], "data_offsets": [-8, -4]}}'
    (tmp_path / "before").write_bytes(len(header).to_bytes(8, "little") + header + bytes(16))
    (tmp_path / "cut").write_bytes(path.read_bytes()[:-100])
    for name, kind in (("bad", lockstep.FormatError), ("before", lockstep.FormatError), ("cut", lockstep.FormatError), ("none", FileNotFoundError)):
        with pytest.raises(kind):
            lockstep.load_file(tmp_path / name)
    with pytest.raises(lockstep.NotFoundError, match="none"):
        lockstep.Model.load(tmp_path / "none")


# ---- graphs


def test_mistakes_are_raised_where_they_are_made():
    with lockstep.Graph() as graph:
        x = graph.input(1, 8, 8)
        with pytest.raises(TypeError, match="not int"):
            graph.relu(3)
        with lockstep.Graph() as other, pytest.raises(ValueError, match="another graph"):
            graph.add(x, other.input(1, 8, 8))
        with pytest.raises(ValueError, match="stride=0 is not possible.*default"):
            graph.conv2d(x, "a", out_channels=4, kernel=3, stride=0)
        with pytest.raises(ValueError, match="init='he'; it is one of uniform"):
            graph.conv2d(x, "a", out_channels=4, kernel=3, init="he")
        with pytest.raises(TypeError, match="out_channels"):
            graph.conv2d(x, "a", kernel=3)
        with pytest.raises(lockstep.InvalidError, match="kernel"):
            graph.conv2d(x, "a", out_channels=4, kernel=11)
    with lockstep.Graph() as graph, pytest.raises(ValueError, match="not finished"):
        graph.facts()


def test_options_of_operators_arrive():
    """bias, eps, weights of classes and names of enums reach the C structs: other graphs, other parameters."""

    def shapes(**options):
        graph = lockstep.Graph()
        x = graph.conv2d(graph.input(2, 9, 9), "c", out_channels=4, kernel=3, **options)
        with lockstep.Model(graph.finish(graph.linear(x, "fc", out_features=3))) as model:
            return {row.name: row.shape for row in model.parameter_infos()}, model.parameters()["c.weight"]

    assert shapes()[0]["c.bias"] == (4,) and "c.bias" not in shapes(bias=False)[0]
    assert shapes(kernel_w=5)[0]["c.weight"] == (4, 2, 3, 5)
    assert shapes(stride=2)[0]["fc.weight"] == (3, 4 * 4 * 4)
    assert not shapes(init="zero")[1].any() and shapes(init="normal")[1].any()


def test_layers_of_a_graph():
    with own_graph() as graph:
        first, *_, loss = graph.nodes()
        assert (first.operator, first.layer, first.shape) == ("conv2d", "conv", (8, 14, 14))
        assert first.parameters == ("conv.weight", "conv.bias") and first.flop > 0
        assert loss.is_loss and loss.operator == "cross_entropy"
    with lockstep.Graph() as graph, pytest.raises(ValueError, match="not finished"):
        graph.nodes()


def test_layers_of_a_model(tmp_path):
    graph = own_graph()
    rows = graph.nodes()
    with lockstep.Model(graph) as model:
        assert model.nodes() == rows
    with lockstep.Model("cnn") as model:
        model.save(tmp_path / "cnn.safetensors")
        rows = model.nodes()
    loaded = lockstep.Model.load(tmp_path / "cnn.safetensors")
    assert loaded.nodes() == rows and isinstance(rows[0], lockstep.Node)
    assert (rows[0].operator, rows[0].layer, rows[0].inputs) == ("conv2d", "conv1", (-1,)) and rows[-1].is_loss
    assert {name for row in rows for name in row.parameters} == set(loaded.parameters())
    loaded.close()
    with pytest.raises(lockstep.ClosedError):
        loaded.nodes()


def test_losses_and_arithmetic(digits):
    graph = lockstep.Graph()
    x = graph.linear(graph.input(1, 28, 28), "fc", out_features=10)
    x = x + x * x
    graph.cross_entropy(x, label_smoothing=0.1, class_weights=[1.0] * 10)
    graph.finish(x)
    assert graph.facts().parameters == 7850
    with lockstep.Model(graph) as model, lockstep.Trainer(model, batch=32) as trainer:
        assert trainer.step(digits[0][:32], digits[1][:32]).loss > 0
    with pytest.raises(lockstep.ClosedError, match="this Graph is closed"):
        graph.facts()


# ---- trainers


def test_steps_have_the_bits_of_halves_and_of_any_devices(digits):
    images, labels = digits
    marks = set()
    for devices, halves in ((1, False), (2, False), (1, True)):
        with lockstep.Model("cnn", seed=5) as model, lockstep.Trainer(model, batch=64, clip_norm=1, devices=devices) as trainer:
            for first in range(0, 320, 64):
                batch = images[first : first + 64], labels[first : first + 64]
                if halves:
                    trainer.backward(*batch)
                    assert trainer.update() > 0
                else:
                    assert trainer.step(*batch).gradient_norm > 0
            marks.add(model.fingerprint)
    assert len(marks) == 1


def test_run_over_a_dataset_has_the_bits_of_train():
    result = lockstep.train("mlp", "glyphs", samples=320, test_samples=64, batch=64, epochs=2, schedule="constant")
    heard = []
    with lockstep.Model("mlp") as model, lockstep.Trainer(model, batch=64) as trainer:
        data = lockstep.Dataset("glyphs", samples=320)
        for _ in range(2):
            report = trainer.run(data, on_step=heard.append)
        assert report.samples == 320 and [each.steps for each in heard] == list(range(1, 11))
        assert model.fingerprint == result.fingerprint
        test = lockstep.Dataset("glyphs", "test", samples=64)
        assert trainer.evaluate(test).accuracy == result.test_accuracy
        assert trainer.evaluate(*test.arrays()).accuracy == result.test_accuracy


def test_augment_and_label_smoothing_have_the_bits_of_train():
    settings = {"samples": 320, "batch": 64, "epochs": 1, "schedule": "constant", "augment": "crop:3,rotate:20"}
    result = lockstep.train("mlp", "glyphs", test_samples=64, label_smoothing=0.1, **settings)
    data = lockstep.Dataset("glyphs", samples=320)
    with lockstep.Model("mlp", label_smoothing=0.1) as model, lockstep.Trainer(model, batch=64, augment="crop:3,rotate:20") as trainer:
        trainer.run(data)
        assert model.fingerprint == result.fingerprint
    with lockstep.Model("mlp") as model, pytest.raises(lockstep.Error, match="did you mean 'flip'"):
        lockstep.Trainer(model, augment="flop")


def test_bf16_has_the_bits_of_train(tmp_path):
    settings = {"samples": 320, "batch": 64, "epochs": 1, "schedule": "constant"}
    plain = lockstep.train("cnn", "glyphs", test_samples=64, **settings)
    result = lockstep.train("cnn", "glyphs", test_samples=64, precision="bf16", **settings)
    data = lockstep.Dataset("glyphs", samples=320)
    images = data.arrays()[0][:8]
    with lockstep.Model("cnn") as model:
        assert model.precision == "fp32"
        with lockstep.Trainer(model, batch=64, precision="bf16") as trainer:
            trainer.run(data)
        assert model.fingerprint == result.fingerprint != plain.fingerprint
        assert model.precision == "bf16"
        model.save(tmp_path / "cnn.safetensors")
        with lockstep.Model.load(tmp_path / "cnn.safetensors") as loaded:
            assert loaded.precision == "bf16"
            assert np.array_equal(loaded.predict(images), model.predict(images))
        model.export_onnx(tmp_path / "cnn.onnx")
        assert b"precision\x12\x04bf16" in (tmp_path / "cnn.onnx").read_bytes()
        with pytest.raises(lockstep.Error, match="did you mean 'bf16'"):
            lockstep.Trainer(model, precision="bf17")


def test_gradients_are_read_and_set(model, digits):
    images, labels = digits[0][:32], digits[1][:32]
    with lockstep.Trainer(model, batch=32, optimizer="sgd", momentum=0.0, lr=0.5, micro_batch=32) as trainer:
        trainer.backward(images, labels)
        gradients = trainer.gradients()
        name = [name for name in gradients if name.endswith("bias")][-1]
        before, slope = model.parameters()[name], gradients[name]
        assert np.abs(slope).max() > 0
        gradients[name] = slope * 2
        with pytest.raises(ValueError, match="does not fit"):
            gradients[name] = slope[:-1]
        with pytest.raises(lockstep.NumericError):
            gradients[name] = slope * np.nan
        trainer.update()
        assert np.allclose(model.parameters()[name], before - 0.5 * 2 * slope, rtol=1e-5, atol=1e-7)
        trainer.backward(images, labels)
        trainer.zero_grad()
        fingerprint = model.fingerprint
        with pytest.raises(lockstep.Error):
            trainer.update()
        assert model.fingerprint == fingerprint


def test_save_and_load_go_on_with_the_same_bits(tmp_path, digits):
    images, labels = digits
    marks = []
    for stop in (False, True):
        model = lockstep.Model("mlp")
        trainer = lockstep.Trainer(model, batch=64, schedule="cosine", steps=8)
        for step in range(8):
            if stop and step == 4:
                trainer.save(tmp_path / "state")
                trainer.close()
                model = lockstep.Model("mlp", seed=9)
                trainer = lockstep.Trainer(model, batch=64, schedule="cosine", steps=8, devices=1)
                trainer.load(tmp_path / "state")
                assert trainer.position.steps == 4
            trainer.step(images[step * 40 :][:40], labels[step * 40 :][:40])
        marks.append(model.fingerprint)
    assert marks[0] == marks[1]


def test_wrong_batches_are_refused(model, digits):
    images, labels = digits
    with lockstep.Trainer(model, batch=64) as trainer:
        fingerprint = model.fingerprint
        for x, y, kind, message in [
            (images[:8], labels[:7], ValueError, "one label per sample"),
            (images[:8], labels[:8].astype(float), TypeError, "whole numbers"),
            (images[:8], np.eye(10)[labels[:8]], ValueError, r"one-hot labels .argmax\(axis=1\)"),
            (images[:8], labels[:8, None], ValueError, r"use .reshape\(-1\)"),
            (images[:8], None, TypeError, "labels or targets, not neither"),
            (images[:8], labels[:8] + 100, lockstep.InvalidError, "0 to 9"),
            (images[:65], labels[:65], lockstep.InvalidError, "64"),
            (images[:0], labels[:0], lockstep.InvalidError, "from 1 to 64"),
            (images[:8] * np.nan, labels[:8], lockstep.InvalidError, "finite|NaN"),
            (images[:8, 0], labels[:8], ValueError, "does not fit"),
        ]:  # fmt: skip
            with pytest.raises(kind, match=message):
                trainer.step(x, y)
        assert model.fingerprint == fingerprint
        with pytest.raises(lockstep.Error):
            lockstep.Trainer(model)  # it has one
        trainer.lr = 0.25
        assert trainer.lr == 0.25
    with pytest.raises(TypeError, match="no setting 'lrr'; it has batch"):
        lockstep.Trainer(model, lrr=1)


def test_indices_are_whole_numbers(model, digits):
    images, labels = digits
    with lockstep.Trainer(model, batch=4, devices=1) as trainer:
        for indices, kind in (([0.5, 1, 2, 3], TypeError), ([-1, 0, 1, 2], ValueError), ([0, 1], ValueError)):
            with pytest.raises(kind, match="indices"):
                trainer.step(images[:4], labels[:4], indices=indices)
        trainer.step(images[:4], labels[:4], indices=[7, 8, 9, 10])
        with pytest.raises(lockstep.InvalidError, match=r"^there is no gradient: call backward\(\) first"):
            next(iter(trainer.gradients().values()))
        trainer.backward(images[:4], labels[:4])
        with pytest.raises(lockstep.InvalidError, match=r"call update\(\) or zero_grad\(\) first"):
            trainer.step(images[:4], labels[:4])


def test_sizes_of_a_model_are_positive():
    for wrong in ({"classes": 0}, {"classes": -1}, {"input": (1, 0, 28)}, {"input": (1, 28)}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            lockstep.Model("mlp", **wrong)


def test_an_exception_in_a_hook_ends_the_run(model):
    def fail(report):
        if report.steps == 2:
            raise ZeroDivisionError("two")

    with lockstep.Trainer(model, batch=32) as trainer, lockstep.Dataset("glyphs", samples=320) as data:
        with pytest.raises(ZeroDivisionError, match="two"):
            trainer.run(data, on_step=fail)
        assert trainer.position.steps == 2
        assert trainer.run(data).steps == 10


# ---- datasets


def test_datasets_of_arrays(digits):
    images, labels = digits
    data = lockstep.Dataset.from_arrays(images, labels.astype(np.uint8))
    assert len(data) == 320 and data.classes == labels.max() + 1 and data.shape == (1, 28, 28)
    assert np.array_equal(data[-1][0], images[-1]) and data[3][1] == labels[3]
    with pytest.raises(IndexError):
        data[320]
    for x, y, kind, message in [
        (images, labels[:-1], ValueError, "one label per sample"),
        (images[:, 0], labels, ValueError, r"does not fit \(N, C, H, W\); images without channels: array\[:, None\]$"),
        (images[:, 0, 0], labels, ValueError, r"rows of numbers: array\[:, :, None, None\]$"),
        (as_bytes(images), labels, TypeError, r"give normalisation=\(mean, deviation\)"),
        (images, labels - 1, lockstep.InvalidError, "has label -1"),
        (images * np.nan, labels, lockstep.InvalidError, "not finite"),
        (images[:0], labels[:0], lockstep.InvalidError, "no samples"),
    ]:  # fmt: skip
        with pytest.raises(kind, match=message):
            lockstep.Dataset.from_arrays(x, y)
    for wrong in (0.3, (0.1, 0.2, 0.3)):
        with pytest.raises(TypeError, match=r"^normalisation=.*it is \(mean, deviation\)"):
            lockstep.Dataset.from_arrays(as_bytes(images), labels, normalisation=wrong)
    same = lockstep.Dataset.from_arrays(as_bytes(images), labels, normalisation=([0.1307], [0.3081]))
    assert np.array_equal(same.arrays()[0], images)


def test_float_targets():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(48, 4, 1, 1)).astype(np.float32)
    y = (x[:, :2, 0, 0] * 2 + 1).astype(np.float32)
    data = lockstep.Dataset.from_arrays(x, targets=y)
    assert data.task == "regression" and data.target_count == 2 and np.array_equal(data.targets(), y)
    graph = lockstep.Graph()
    out = graph.linear(graph.input(4, 1, 1), "out", out_features=2)
    graph.mean_squared_error(out)
    graph.finish(out)
    with lockstep.Model(graph, seed=1) as model, lockstep.Trainer(model, batch=48, lr=0.1) as trainer:
        first = trainer.step(x, targets=y).loss
        for _ in range(100):
            trainer.step(x, targets=y)
        result = trainer.evaluate(x, targets=y)
        assert result.loss < 0.01 * first and result.loss == trainer.evaluate(data).loss
        assert result.loss == pytest.approx(float(((model.predict(x) - y) ** 2).mean()), rel=1e-4)
        with pytest.raises(TypeError, match="labels or targets"):
            trainer.step(x, np.zeros(48, dtype=np.int32), targets=y)
        with pytest.raises(ValueError, match="does not fit"):
            trainer.step(x, targets=y[:, :1])
    with pytest.raises(lockstep.Error, match="from 0 to 1"):
        lockstep.Dataset.from_arrays(x, targets=y, task="multi-label")
    with pytest.raises(ValueError, match="task="):
        lockstep.Dataset.from_arrays(x, targets=y, task="other")


def test_arrays_are_not_copied(digits):
    images, labels = digits[0].copy(), digits[1].copy()
    data = lockstep.Dataset.from_arrays(images, labels)
    images[4] = 7
    assert (data[4][0] == 7).all()
    del images  # the dataset keeps them
    gc.collect()
    assert (data[4][0] == 7).all()


def test_names():
    assert {"mnist", "glyphs"} <= {row.name for row in lockstep.datasets()}
    assert {"mlp", "resnet18"} <= {row.name for row in lockstep.models()}
    with pytest.raises(lockstep.InvalidError, match="did you mean 'resnet18'"):
        lockstep.Model("resnet-18")
    with pytest.raises(ValueError, match="'train' or 'test'"):
        lockstep.Dataset("glyphs", "dev")


# ---- lifetimes


def test_closed_objects_say_so(digits):
    model, data, graph = lockstep.Model("mlp"), lockstep.Dataset("glyphs", samples=10), lockstep.Graph()
    trainer = lockstep.Trainer(model)
    for thing in (trainer, model, data, graph):
        thing.close()
        thing.close()
        assert thing.closed
    for use in (lambda: model.predict(digits[0]), lambda: model.fingerprint, lambda: model.parameters()["x"],
                lambda: model.save("x"), lambda: data[0], lambda: graph.input(1, 2, 3),
                lambda: trainer.step(digits[0][:8], digits[1][:8]), lambda: trainer.lr,
                lambda: lockstep.train("mlp", data), lambda: lockstep.Trainer(model)):  # fmt: skip
        with pytest.raises((lockstep.ClosedError, KeyError)):
            use()


def test_a_trainer_outlives_the_close_of_its_model(digits):
    model = lockstep.Model("mlp")
    trainer = lockstep.Trainer(model, batch=64)
    model.close()
    with pytest.raises(lockstep.ClosedError):
        trainer.step(digits[0][:8], digits[1][:8])
    trainer.close()


def test_objects_that_nobody_holds_are_freed():
    model = lockstep.Model("mlp")
    mark, freed = weakref.ref(model), model._finalizer
    del model
    gc.collect()
    assert mark() is None and not freed.alive


def test_threads_take_turns_with_a_model(model, digits):
    expected = model.predict(digits[0])
    wrong = []

    def work():
        for _ in range(20):
            if not np.array_equal(model.predict(digits[0]), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# ---- text


@pytest.fixture(scope="module")
def writer(tmp_path_factory):
    """A small language model, trained on a few lines."""
    home = tmp_path_factory.mktemp("gpt")
    (home / "text.txt").write_text("the quick brown fox jumps over a lazy dog\n" * 200)
    lockstep.train(model="gpt-nano", data=home / "text.txt", seq_len=32, batch=16, steps=30, lr=3e-3, run=home / "run",
                   quiet=True)  # fmt: skip
    with lockstep.Model.load(home / "run") as loaded:
        yield loaded


def test_a_model_of_language_generates(writer):
    assert writer.predicts_next and writer.vocabulary == 257
    first = writer.generate("the quick", max_new_tokens=40, temperature=0.7, seed=3)
    assert len(first) == 1 and first[0]
    assert writer.generate(b"the quick", max_new_tokens=40, temperature=0.7, seed=3, num_samples=3, threads=2)[0] == first[0]
    pieces = []
    again = writer.generate("the quick", max_new_tokens=40, temperature=0.7, seed=3, on_token=lambda *piece: pieces.append(piece))
    assert again == first
    assert len(pieces) == 40 and {text for text, _ in pieces} == {0}
    assert b"".join(piece for _, piece in pieces).decode(errors="replace") == first[0]
    assert writer.generate("the quick", max_new_tokens=40, temperature=0.7, seed=3, lookup=0) == first
    assert writer.generate("the quick", max_new_tokens=5, temperature=0) == writer.generate("the quick", max_new_tokens=5, top_k=1, seed=9)


def test_what_cannot_be_generated(writer, model):
    with pytest.raises(lockstep.Error, match="does not predict the next token"):
        model.generate("x")
    with pytest.raises(lockstep.Error, match="top_p"):
        writer.generate("x", top_p=0)
    with pytest.raises(ZeroDivisionError):
        writer.generate("x", on_token=lambda text, piece: 1 / 0)
    assert writer.generate("the", max_new_tokens=2)


def test_a_language_model_is_evaluated(writer, tmp_path):
    assert [row.name for row in lockstep.models() if row.predicts_next][0] == "gpt-nano"
    logits = writer.predict([[1, 2, 3]])
    assert logits.shape == (1, 257)

"""What a model predicts: files, texts and rows of tables, with the bits of the command."""

import json
import os
import struct
import zlib

import numpy as np
import pytest

import lockstep
from conftest import as_bytes, command
from lockstep import _model


def png(pixels):
    """A grey PNG file of bytes (H, W)."""
    height, width = pixels.shape
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))  # noqa: E731
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))  # fmt: skip


def told(run, *arguments):
    """What `lockstep predict` says, a dict per sample."""
    return [json.loads(line) for line in command("predict", str(run), *map(str, arguments), "--format", "jsonl").splitlines()]


# ---- images


@pytest.fixture(scope="module")
def seeing(tmp_path_factory):
    run = tmp_path_factory.mktemp("seeing") / "run"
    lockstep.train("mlp", "glyphs", samples=320, test_samples=64, steps=5, run=run)
    return run


def test_images_from_files(tmp_path, seeing, digits):
    bytes_ = as_bytes(digits[0])
    names = [tmp_path / f"{i}.png" for i in range(4)]
    for name, image in zip(names, bytes_):
        name.write_bytes(png(image[0]))
    with lockstep.Model.load(seeing) as model:
        images = [model.read_image(name) for name in names]
        chances = model.predict(images, probabilities=True)
        assert np.array_equal(chances, model.predict(bytes_[:4], probabilities=True))
        assert np.array_equal(model.normalise(bytes_[0]), images[0]) and np.array_equal(model.interpret(model.predict(images)), chances)
        assert np.array_equal(model.read_image(names[1].read_bytes()), images[1])
        assert [row["label"] for row in told(seeing, *names)] == chances.argmax(axis=1).tolist()
        wide = png(np.arange(56 * 112, dtype=np.uint8).reshape(56, 112))
        assert not np.array_equal(model.read_image(wide), model.read_image(wide, resize="stretch"))
        assert model.task == "classification" and model.class_name(0) is None
        for call, kind, message in [
            (lambda: model.read_image(tmp_path / "none.png"), FileNotFoundError, "none.png"),
            (lambda: model.read_image(b"GIF89a"), lockstep.Error, "image"),
            (lambda: model.read_image(names[0], resize="cut"), ValueError, "resize='cut'; it is one of cover, stretch"),
            (lambda: model.read_image(3), TypeError, "not int"),
            (lambda: model.normalise(np.full((1, 28, 28), 256.0)), lockstep.NumericError, "0 to 255"),
            (lambda: model.normalise(bytes_[0, 0]), ValueError, r"does not fit \(1, 28, 28\)$"),
            (lambda: model.tokenize("a text"), lockstep.MismatchError, "images, not text"),
            (lambda: model.read_row({"a": 1}), lockstep.MismatchError, "table"),
        ]:  # fmt: skip
            with pytest.raises(kind, match=message):
                call()
        (tmp_path / "cut.png").write_bytes(names[0].read_bytes()[:-30])
        with pytest.raises(lockstep.FormatError, match="cut.png"):
            model.read_image(tmp_path / "cut.png")


def test_weights_of_other_programs(tmp_path, digits):
    """They do not say how images were normalised, nor what classes are called."""
    (tmp_path / "names.txt").write_text("".join(f"digit {i}\n" for i in range(10)))
    with lockstep.Model("mlp", seed=3) as made:
        made.save(tmp_path / "foreign.safetensors")
        with pytest.raises(lockstep.InvalidError, match="give mean and deviation"):
            made.read_image(png(as_bytes(digits[0])[0, 0]))
    known = dict(model="mlp", input=(1, 28, 28), labels=tmp_path / "names.txt")
    with lockstep.Model.load(tmp_path / "foreign.safetensors", mean=[0.1307], deviation=0.3081, **known) as model:
        assert np.array_equal(model.read_image(png(as_bytes(digits[0])[5, 0])), digits[0][5])
        assert (model.class_name(3), model.class_name(10)) == ("digit 3", None)
    for bad, kind, message in [(dict(mean=0.5), lockstep.InvalidError, "give both"), (dict(mean="half", deviation=1), TypeError, "mean: a number"),
                               (dict(mean=[1, 2], deviation=[1, 2]), lockstep.InvalidError, "^mean has 2 numbers")]:  # fmt: skip
        with pytest.raises(kind, match=message):
            lockstep.Model.load(tmp_path / "foreign.safetensors", **bad, **known)


# ---- texts and rows


def test_texts(tmp_path):
    words = ["a lovely film", "dull and far too long", "what a warm and lovely story", "a cold dull story"]
    lines = "".join(f"{text} {i},{('good', 'bad')[i % 2]}\n" for i, text in enumerate(words * 30))
    (tmp_path / "reviews.csv").write_text("review,verdict\n" + lines)
    (tmp_path / "words.txt").write_text("\n".join(words * 5))
    command("data", "make", "vocab", str(tmp_path / "words.txt"), "--size", "60", "--out", str(tmp_path / "vocab.txt"), "--quiet")
    run = tmp_path / "run"
    lockstep.train("transformer", tmp_path / "reviews.csv", target="verdict", text_column="review", vocab=tmp_path / "vocab.txt", layers=1, width=32,
                   heads=1, seq_len=16, batch=16, steps=5, run=run)  # fmt: skip
    with lockstep.Model.load(run) as model:
        found = model.tokenize(words[0])
        assert found.tokens.size == found.segments.size <= 16 and found.cut == 0
        assert model.tokenize("lovely " * 40).cut > 0
        logits = model.predict(words)
        assert np.array_equal(logits[:1], model.predict([found.tokens], segments=[found.segments]))
        (tmp_path / "asked.txt").write_text("\n".join(words) + "\n")
        names = [row["name"] for row in told(run, tmp_path / "asked.txt")]
        assert names == [model.class_name(int(label)) for label in logits.argmax(axis=1)] and set(names) <= {"good", "bad"}
        with pytest.raises(TypeError, match="put it into a list"):
            model.predict(words[0])
        with pytest.raises(lockstep.MismatchError, match="text, not images"):
            model.read_image(b"")
    with lockstep.Model("bert-tiny", tokens=32, vocabulary=100, classes=3) as model, pytest.raises(lockstep.Error, match="no vocabulary"):
        model.predict(["a text"])


def test_rows_of_a_table(tmp_path):
    rows = [(30 + 7 * i % 150, ("Oslo", "Lyon")[i % 2]) for i in range(200)]
    (tmp_path / "houses.csv").write_text("area,city,price\n" + "".join(f"{a},{c},{1000 * a + 50000 * (c == 'Oslo')}.5\n" for a, c in rows))
    run = tmp_path / "run"
    lockstep.train("mlp", tmp_path / "houses.csv", target="price", batch=32, steps=20, run=run)
    asked = [{"area": 120, "city": "Oslo"}, {"city": "Lyon", "area": np.float64(55.5), "colour": "red"}, {"area": None}]
    (tmp_path / "asked.jsonl").write_text("".join(json.dumps({k: v for k, v in row.items() if v is not None}) + "\n" for row in asked))
    with lockstep.Model.load(run) as model:
        assert model.task == "regression"
        values = model.predict([model.read_row(row) for row in asked], probabilities=True)
        told_ = [row["values"]["price"] for row in told(run, tmp_path / "asked.jsonl")]
        assert np.allclose(values[:, 0], told_, rtol=1e-6)
        for bad, message in [([1, 2], "values by column"), ({"area": True}, "True is neither a number nor a text")]:
            with pytest.raises(TypeError, match=message):
                model.read_row(bad)
        with pytest.raises(lockstep.Error, match="area"):
            model.read_row({"area": "large"})


# ---- how much is predicted at a time


def test_costly_samples_are_predicted_in_small_calls(model, digits, monkeypatch):
    """Ctrl-C is seen between calls, so these end soon; what is cheap gets large ones."""
    images = np.concatenate([digits[0]] * 30)
    expected, counts = model.predict(images), []
    predict, smallest = _model._Images.predict, 32 * len(os.sched_getaffinity(0))
    clock = [0.0]

    def costly(self, pointer, first, count, out):
        counts.append(count)
        clock[0] += count * cost
        return predict(self, pointer, first, count, out)

    monkeypatch.setattr(_model._Images, "predict", costly)
    monkeypatch.setattr(_model.time, "monotonic", lambda: clock[0])
    for cost, largest in ((1.0, smallest), (0.2 / (2 * smallest), 2 * smallest), (1e-9, 4096)):
        counts.clear()
        assert np.array_equal(model.predict(images), expected)
        assert sum(counts) == len(images) and counts[0] == smallest and max(counts) <= largest < max(counts) + 2

"""Text of the program: what language models, pretraining and pairs of sentences learn from it."""

import re

import numpy as np
import pytest

import lockstep
from conftest import command

SIZES = dict(batch=16, micro_batch=8, devices=1, threads=1)
NANO = dict(tokens=16, vocabulary=50)
TINY = dict(tokens=16, vocabulary=50, classes=2)


def gpt():
    return lockstep.Model("gpt-nano", **NANO)


def bert(masked=3):
    return lockstep.Model("bert-tiny", masked=masked, **TINY)


def rows_of(count=6, vocabulary=50):
    """Sequences of several lengths, from 3 to 13."""
    rng = np.random.default_rng(3)
    return [rng.integers(0, vocabulary, 3 + 2 * i).tolist() for i in range(count)]


def masks_of(rows):
    """Labels of pretraining: the second token is predicted, but not of every third sample."""
    return [[token if at == 1 and i % 3 else -100 for at, token in enumerate(row)] for i, row in enumerate(rows)]


def after(make, *steps):
    """Report and fingerprint after steps with these arguments."""
    with make() as model, lockstep.Trainer(model, batch=16, lr=1e-2, devices=1, threads=1) as trainer:
        reports = [trainer.step(*args, **named) for args, named in steps]
        return reports[-1], model.fingerprint


def step(*args, **named):
    return args, named


# ---- the bits of the command


def printed(model, data, *more):
    """The parameters that `lockstep train` prints."""
    out = command("train", "--model", model, "--data", data, *more, "--batch", "16", "--micro-batch", "8", "--devices", "1",
                  "--threads", "1", "--eval-every", "0")  # fmt: skip
    return re.findall(r"parameters xxh64 ([0-9a-f]{16})", out)[-1]


def test_own_tokens_train_a_language_model_to_the_bits_of_the_command():
    with lockstep.Dataset("babble", samples=48, tokens=16, next_token=True) as corpus:
        assert corpus.masked_max == 16 and corpus.classes == 1
        samples = [corpus[i] for i in range(len(corpus))]
        vocabulary = corpus.vocabulary
    rows = [np.append(sample.tokens, sample.targets[-1]) for sample in samples]  # the last one is only predicted
    with lockstep.Dataset.from_tokens(rows, vocabulary=vocabulary) as mine:
        assert (mine.tokens_max, mine.masked_max, mine.classes) == (16, 16, 1)
        assert mine[5].targets.tolist() == samples[5].targets.tolist() and mine[5].places.tolist() == list(range(16))
        found = lockstep.train("gpt-nano", mine, epochs=2, **SIZES)
    assert found.fingerprint == printed("gpt-nano", "babble", "--samples", "48", "--seq-len", "16", "--epochs", "2")


def test_own_masks_pretrain_to_the_bits_of_the_command():
    with lockstep.Dataset("babble-pairs", samples=48, tokens=24) as pairs:
        samples, vocabulary = [pairs[i] for i in range(len(pairs))], pairs.vocabulary
    labels = [np.full(len(sample.tokens), -100) for sample in samples]
    for sample, row in zip(samples, labels):
        row[sample.places] = sample.targets
    with lockstep.Dataset.from_tokens([s.tokens for s in samples], [s.label for s in samples], vocabulary=vocabulary,
                                      segments=[s.segments for s in samples], token_labels=labels) as mine:  # fmt: skip
        found = lockstep.train("bert-tiny", mine, epochs=1, **SIZES)
    assert found.fingerprint == printed("bert-tiny", "babble-pairs", "--samples", "48", "--seq-len", "24", "--epochs", "1")


# ---- steps


def test_a_language_model_learns_the_next_token():
    rows = rows_of()
    report, bits = after(gpt, step(rows))
    assert report.masked == report.tokens == sum(len(row) - 1 for row in rows) and report.loss > 0
    assert after(gpt, step([np.array(row, dtype=np.int64) for row in rows], token_labels=rows))[1] == bits
    assert after(gpt, step(rows, token_labels=[[-100, *row[1:]] for row in rows]))[1] == bits  # nothing predicts the first
    some, others = after(gpt, step(rows, token_labels=[[*[-100] * (len(row) - 1), row[-1]] for row in rows]))
    assert some.masked == len(rows) and others != bits
    whole, _ = after(gpt, step([list(range(17))]))
    assert whole.tokens == whole.masked == 16
    with gpt() as model, lockstep.Trainer(model, batch=16, lr=1e-2, devices=1, threads=1) as trainer:
        trainer.backward(rows)
        trainer.update()
        assert model.fingerprint == bits
        with lockstep.Dataset.from_tokens(rows, vocabulary=50) as data:
            own, same = trainer.evaluate(rows), trainer.evaluate(data)
            assert (own.loss, own.perplexity, own.masked) == (same.loss, same.perplexity, same.masked) and own.perplexity > 1
            assert trainer.run(data).masked == own.masked
        losses = [trainer.step(rows).loss for _ in range(30)]
        assert losses[-1] < 0.7 * losses[0]


def test_pretraining_takes_masks_and_segments():
    rows = rows_of()
    masks, classes, segments = masks_of(rows), [0, 1] * 3, [[0, *[1] * (len(row) - 1)] for row in rows]
    report, bits = after(bert, step(rows, classes, token_labels=masks))
    assert report.masked == 4 and report.token_loss > 0  # of two samples there is none
    assert after(bert, step(rows, classes, token_labels=masks, segments=[[0] * len(row) for row in rows]))[1] == bits
    assert after(bert, step(rows, classes, token_labels=masks, segments=segments))[1] != bits
    with bert() as model, lockstep.Trainer(model, batch=16) as trainer:
        named = dict(segments=segments, token_labels=masks)
        with lockstep.Dataset.from_tokens(rows, classes, vocabulary=50, **named) as data:
            assert data[1].segments.tolist() == segments[1] and data[1].places.tolist() == [1] and data[1].label == 1
            assert (data.masked_max, data.tokens_max, data.classes) == (1, 13, 2)
            assert trainer.evaluate(rows, classes, **named).loss == trainer.evaluate(data).loss
            with pytest.raises(TypeError, match="segments: a Dataset has its own"):
                trainer.evaluate(data, segments=segments)


def test_pairs_are_classified_by_their_segments():
    rows, classes = rows_of(), [0, 1] * 3
    halves = [[int(2 * at >= len(row)) for at in range(len(row))] for row in rows]
    bits = {after(lambda: bert(0), step(rows, classes, segments=segments))[1] for segments in (None, halves)}
    assert len(bits) == 2
    with bert(0) as model, lockstep.Trainer(model, batch=16) as trainer:
        with lockstep.Dataset.from_tokens(rows, classes, vocabulary=50, segments=halves) as data:
            assert trainer.evaluate(rows, classes, segments=halves).loss == trainer.evaluate(data).loss
            assert trainer.evaluate(rows, classes).loss != trainer.evaluate(data).loss


def test_float_targets_of_text():
    chances = np.linspace(0, 1, 12, dtype=np.float32).reshape(6, 2)
    with lockstep.Dataset.from_tokens(rows_of(), vocabulary=50, targets=chances, task="multi-label") as data:
        assert data.task == "multi-label" and np.array_equal(data.targets(), chances) and data.masked_max == 0
        assert lockstep.train("bert-tiny", data, epochs=1, **SIZES).train_loss > 0


# ---- mistakes


def test_mistakes_of_samples_are_told():
    rows = rows_of()
    masks, zeros = masks_of(rows), [0] * 6
    nothing = [[-100] * len(row) for row in rows]
    moved = [[*row[1:], -100] for row in rows]
    cases = [
        (gpt, step(rows, zeros), TypeError, "^labels: a language model predicts tokens; leave them out"),
        (gpt, step(rows, targets=np.zeros((6, 50))), TypeError, "^targets: a language model"),
        (gpt, step([[7]]), ValueError, "^sample 0: 1 token; a language model learns from 2 or more"),
        (gpt, step([list(range(18))]), ValueError, "the model takes up to 16 tokens, and one more that is only predicted, not 18"),
        (gpt, step(rows, token_labels=nothing), ValueError, "^sample 0: token_labels are -100 for all tokens but the first"),
        (gpt, step(rows, token_labels=moved), ValueError, "moved by one; give them unmoved"),
        (gpt, step(rows, token_labels=rows[:5]), ValueError, "^token_labels: 5 for 6 samples"),
        (gpt, step(rows, token_labels=[row[:-1] for row in rows]), ValueError, "^sample 0: 2 token_labels for 3 tokens; -100 is"),
        (gpt, step(rows, token_labels=[[50] * len(row) for row in rows]), ValueError, "token_labels: 50; they are 0 to 49, or -100"),
        (gpt, step(rows, token_labels=[[-1] * len(row) for row in rows]), ValueError, "token_labels: -1; they are 0 to 49"),
        (gpt, step(rows, token_labels=[[0.5] * len(row) for row in rows]), TypeError, "sequence of at least one whole number"),
        (gpt, step(rows, token_labels=3), TypeError, "^token_labels: a sequence of labels per sample, not int"),
        (gpt, step(rows, segments=rows[:2]), ValueError, "^segments: 2 for 6 samples"),
        (bert, step(rows, zeros), TypeError, "^token_labels: the model predicts masked tokens"),
        (bert, step(rows, token_labels=masks), TypeError, "give labels or targets, not neither"),
        (bert, step(rows, zeros, token_labels=nothing), ValueError, "^token_labels: -100 for every token"),
        (bert, step(rows, zeros, token_labels=rows), lockstep.InvalidError, "sample 1 has 5 masked positions; the model takes 0 to 3"),
        (bert, step(rows, zeros, token_labels=masks, segments=[[2] * len(row) for row in rows]), ValueError, "segments 2 to 2; they are 0 to 1"),
        (bert, step(rows, zeros, token_labels=masks, segments=[[0]] * 6), ValueError, "^sample 0: 1 segments for 3 tokens"),
        (lambda: bert(0), step(rows, zeros, token_labels=masks), TypeError, "predicts no tokens; Model\\(..., masked=N\\)"),
        (lambda: lockstep.Model("mlp"), step(np.zeros((2, 1, 28, 28), np.float32), [0, 1], token_labels=masks), TypeError, "models of text"),
        (lambda: lockstep.Model("mlp"), step(np.zeros((2, 1, 28, 28), np.float32), [0, 1], segments=masks), TypeError, "models of text"),
    ]  # fmt: skip
    for make, (args, named), kind, message in cases:
        with make() as model, lockstep.Trainer(model, batch=16) as trainer:
            bits = model.fingerprint
            for call in (trainer.step, trainer.backward, trainer.evaluate):
                with pytest.raises(kind, match=message):
                    call(*args, **named)
            assert model.fingerprint == bits


def test_mistakes_of_datasets_are_told():
    rows, make = rows_of(), lockstep.Dataset.from_tokens
    for call, kind, message in [
        (lambda: make([], vocabulary=50), ValueError, "samples: there are none"),
        (lambda: make([[50]], [0], vocabulary=50), ValueError, "sample 0: tokens 50 to 50; they are 0 to 49"),
        (lambda: make(rows, [0, 1] * 3, vocabulary=50, targets=np.zeros(6)), TypeError, "labels or targets, not both"),
        (lambda: make(rows, vocabulary=50, classes=3), TypeError, "^classes: without labels the dataset is for a language model"),
        (lambda: make(rows, vocabulary=50, targets=np.zeros((6, 2)), classes=5), TypeError, "^classes: leave them out; targets"),
        (lambda: lockstep.Dataset.from_arrays(np.zeros((6, 3, 1, 1)), targets=np.zeros(6), classes=5), TypeError, "^classes: leave them out; targets"),
        (lambda: make(rows, [0, 3] * 3, vocabulary=50, classes=3), ValueError, "labels: 0 to 3; labels are 0 to 2"),
        (lambda: make(rows, vocabulary=50, targets=np.zeros(6), task="both"), ValueError, "task='both'"),
        (lambda: make([[1, 2], [3]], vocabulary=50), ValueError, "^sample 1: 1 token"),
        (lambda: make(rows, [0] * 6, vocabulary=50, token_labels=[[-100] * len(row) for row in rows]), ValueError, "-100 for every token"),
        (lambda: make(rows, vocabulary=50.5), TypeError, "vocabulary"),
    ]:  # fmt: skip
        with pytest.raises(kind, match=message):
            call()


def test_evaluate_uses_all_that_it_is_given():
    rows, images = rows_of(), (np.zeros((2, 1, 28, 28), np.float32), [0, 1])
    for make, data, named in [
        (lambda: bert(0), rows, dict(segments=[[0] * len(row) for row in rows])),
        (lambda: bert(0), rows, dict(token_labels=rows)),
        (lambda: lockstep.Model("mlp"), images, dict(token_labels=rows)),
        (lambda: lockstep.Model("mlp"), images, dict(segments=rows)),
    ]:  # fmt: skip
        with make() as model, lockstep.Trainer(model, batch=16) as trainer:
            with pytest.raises(TypeError, match=f"^{next(iter(named))}: give labels or targets, too"):
                trainer.evaluate(data, **named)


def test_datasets_of_another_kind_are_refused():
    with make_set([0, 1] * 3) as classes, make_set() as language, gpt() as model, lockstep.Trainer(model, batch=16) as trainer:
        for call in (trainer.run, trainer.evaluate):
            with pytest.raises(lockstep.MismatchError, match=r"dataset tokens has no tokens to predict, its masked_max is 0; Dataset\.from_tokens\(\) without labels, or with token_labels, makes one"):
                call(classes)
        assert trainer.run(language).loss > 0
        with pytest.raises(TypeError, match=r"from_tokens\(\) of text"):
            trainer.run(rows_of())


def make_set(labels=None):
    return lockstep.Dataset.from_tokens(rows_of(), labels, vocabulary=50)

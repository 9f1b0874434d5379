#!/usr/bin/env python3
"""Lockstep's language models against the same ones in PyTorch: logits, both losses and all gradients; and weights in
both directions. Prints TAP.

    python3 tests/golden/torch_text.py LOCKSTEP TEXT_DUMP [DIRECTORY]

LOCKSTEP is the command, TEXT_DUMP the program made of text_dump.c; DIRECTORY, where files are made, is a temporary one
when not given.
"""
import glob
import os
import subprocess
import sys

import torch
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
sys.dont_write_bytecode = True

from torch_bert import BertForPreTraining, BertForSequenceClassification, POSITIONS, Transformer  # noqa: E402
from torch_gpt import Gpt2  # noqa: E402
from torch_common import TOLERANCE, Tap, read_safetensors, write_safetensors  # noqa: E402

VOCABULARY, MOODS = 4061, 5  # of babble


class Batch:
    """A packed leaf, padded."""

    def __init__(self, leaf):
        start, n = leaf["start"].long(), len(leaf["labels"])
        lengths = start[1:] - start[:-1]
        self.tokens = torch.zeros(n, int(lengths.max()), dtype=torch.long)
        self.segments, self.mask = torch.zeros_like(self.tokens), torch.zeros_like(self.tokens, dtype=torch.bool)
        for i in range(n):
            self.tokens[i, : lengths[i]] = leaf["token"][start[i] : start[i + 1]]
            self.segments[i, : lengths[i]] = leaf["segment"][start[i] : start[i + 1]]
            self.mask[i, : lengths[i]] = True
        masked = leaf["masked_positions"].long()
        self.masked_sample = torch.searchsorted(start, masked, right=True) - 1
        self.masked_place = masked - start[self.masked_sample]
        self.labels, self.targets = leaf["labels"].long(), leaf["target"].long()


class Lockstep:
    def __init__(self, binary, dumper, directory):
        self.binary, self.dumper, self.directory = os.path.abspath(binary), os.path.abspath(dumper), directory

    def path(self, name):
        return os.path.join(self.directory, name)

    def run(self, *arguments):
        done = subprocess.run(arguments, cwd=self.directory, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(arguments)}: exit status {done.returncode}\n{done.stderr}")

    def dump(self, model, data, tokens, samples, weights=None):
        self.run(self.dumper, model, data, str(tokens), str(samples), "dump.safetensors", *([weights] if weights else []))
        return read_safetensors(self.path("dump.safetensors"))

    def train(self, run, model, *arguments):
        """One node, seed 1, no dropout: the weights it ends with."""
        self.run(self.binary, "train", "--model", model, "--seed", "1", "--dropout", "0", "--eval-every", "0", "--devices",
                 "1", "--quiet", "--run", run, *arguments)
        (file,) = glob.glob(self.path(f"{run}/ckpt/step-*/model.safetensors"))
        return read_safetensors(file)


def own(model):
    """The parameters by name, shared ones once: what Lockstep has."""
    return {name: p for name, p in model.state_dict(keep_vars=True).items() if name not in model.TIED}


def with_tied(model, weights):
    return {**weights, **{name: weights[other] for name, other in model.TIED.items()}}


def make_busy(model):
    """Weights no initialisation gives: attention that looks at something, norms and biases off their defaults. The
    branch of attention is weak beside what it is added to: otherwise the tokens of a deep model become all alike, and
    what little is left of the gradients of queries and keys is rounding, in PyTorch's float32 as well."""
    torch.manual_seed(20)
    with torch.no_grad():
        for name, p in own(model).items():
            if "embeddings" in name and p.dim() == 2 or name in ("words.weight", "positions.weight") or ".wpe." in name:
                p.normal_(0, 0.5)
            elif ".wte." in name:  # which makes the logits, too
                p.normal_(0, 0.2)
            elif ".c_" in name and p.dim() == 2:
                p.normal_(0, (0.5 if "attn.c_proj" in name else 1.2) * p.shape[0] ** -0.5)
            elif p.dim() == 2:
                factor = 1.5 if "query" in name or "key" in name else 0.5 if "attention.output" in name else 1.0
                p.normal_(0, factor * p.shape[1] ** -0.5)
            else:
                is_norm = "orm" in name or ".ln_" in name
                p.normal_(1.0 if is_norm and name.endswith("weight") else 0.0, 0.2)
    return model


def part(tensors, prefix):
    return {name[len(prefix) :]: tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def compare(tap, what, model, out):
    """What Lockstep dumped against the model with the same weights. Returns the gradients of the model."""
    model.zero_grad()
    batch = Batch(out)
    logits, token_logits = model(batch)
    loss = torch.zeros((), dtype=torch.float64)
    if logits is not None:
        tap.close(f"{what}: logits", out["logits"].to(logits.dtype), logits.detach())
        loss = F.cross_entropy(logits, batch.labels, reduction="sum")
    expected = [float(loss), 0.0]
    if token_logits is not None:
        if "token_logits" in out:
            tap.close(f"{what}: logits of tokens", out["token_logits"].to(token_logits.dtype), token_logits.detach())
        tokens = F.cross_entropy(token_logits, batch.targets, reduction="sum")
        expected[1] = float(tokens)
        loss = loss + float(out["loss"][2]) * tokens
        tap.check(f"{what}: the tokens' loss is weighed as a mean", abs(float(out["loss"][2]) * len(batch.targets)
                                                                        - len(batch.labels)) < 1e-9, out["loss"])
    got = [float(x) for x in out["loss"][:2]]
    tap.check(f"{what}: losses", all(abs(a - b) <= TOLERANCE * max(1, abs(b)) for a, b in zip(got, expected)),
              f"{got}, expected {expected}")
    loss.backward()
    gradients = {name: p.grad.clone() for name, p in own(model).items()}
    compare_gradients(tap, f"{what}: gradients", part(out, "grad."), gradients)
    return gradients


def compare_gradients(tap, what, got, expected, weights=None):
    """Each tensor relative to its own largest element; one that ought to be zero relative to the largest of all. Where
    they are differences of float32 weights, these may be rounded."""
    if not tap.check(f"{what} have the same names", got.keys() == expected.keys(), got.keys() ^ expected.keys()):
        return
    largest = max(float(g.abs().max()) for g in expected.values())
    errors = {}
    for name, g in expected.items():
        # The bias of a key moves all scores of a query alike: its gradient is zero but for rounding.
        scale = largest if name.endswith(("key.bias", "c_attn.bias")) else max(float(g.abs().max()), 1e-6 * largest)
        rounding = 2**-23 * float(weights[name].abs().max()) if weights else 0.0
        errors[name] = max(0.0, float((got[name].to(g.dtype) - g).abs().max()) - rounding) / scale
    worst = max(errors, key=lambda name: errors[name] if errors[name] == errors[name] else float("inf"))
    tap.check(f"{what} of {len(expected)} tensors", all(e <= TOLERANCE for e in errors.values()),
              f"worst: {worst}, off by {errors[worst]:.3g} of its largest element; allowed {TOLERANCE:g}")
    print(f"# {what}: largest difference {errors[worst]:.2g} of the largest element ({worst})")


# ---- the tests


def busy(tap, lockstep, what, model, name, data, tokens, samples):
    """Lockstep with PyTorch's weights."""
    make_busy(model)
    write_safetensors(lockstep.path("busy.safetensors"), own(model))
    compare(tap, what, model.double(), lockstep.dump(name, data, tokens, samples, "busy.safetensors"))


def initial(tap, lockstep, what, model, name, data, tokens, samples):
    """PyTorch with Lockstep's initial weights, strict."""
    out = lockstep.dump(name, data, tokens, samples)
    model.load_state_dict(with_tied(model, part(out, "weight.")), strict=True)
    gradients = compare(tap, what, model.double(), out)
    return part(out, "weight."), gradients


def one_step(tap, lockstep, what, name, data, tokens, samples, before, gradients):
    """A step of plain descent at rate 1 leaves the mean gradient between the weights before and after."""
    after = lockstep.train(f"descended-{name}", name, "--data", data, "--seq-len", str(tokens), "--samples", str(samples),
                           "--batch", str(samples), "--steps", "1", "--optimizer", "sgd", "--momentum", "0", "--lr", "1",
                           "--schedule", "constant")
    got = {key: before[key].double() - after[key].double() for key in before}
    compare_gradients(tap, f"{what}: a training step", got, {key: g / samples for key, g in gradients.items()}, before)


def there_and_back(tap, lockstep):
    """A checkpoint of Lockstep's to PyTorch, changed there, and back with all that Hugging Face's files hold."""
    data = ("--data", "babble-pairs", "--seq-len", "32", "--samples", "64", "--batch", "16")
    saved = lockstep.train("trained", "bert-tiny", *data, "--steps", "4", "--lr", "1e-3")
    model = BertForPreTraining("bert-tiny", VOCABULARY)
    try:
        model.load_state_dict(with_tied(model, saved), strict=True)
    except RuntimeError as error:
        tap.check("a trained bert-tiny loads into PyTorch, strict", False, error)
        return
    tap.check("a trained bert-tiny loads into PyTorch, strict", True)
    write_safetensors(lockstep.path("trained.safetensors"), saved)
    compare(tap, "a trained bert-tiny", model.double(), lockstep.dump("bert-tiny", "babble-pairs", 32, 24,
                                                                      "trained.safetensors"))
    given = make_busy(model.float()).state_dict()
    given["bert.embeddings.position_ids"] = torch.arange(POSITIONS)[None]
    start_from(tap, lockstep, "all that Hugging Face's files hold", data, given)
    start_from(tap, lockstep, "each tensor once", data, own(model))
    given["cls.predictions.decoder.weight"] = 2 * given["cls.predictions.decoder.weight"]
    refuse(tap, lockstep, "a decoder that is not the words", data, given, "cls.predictions.decoder.weight")


def gpt_there_and_back(tap, lockstep):
    """GPT-2's files as Hugging Face has them: with the words twice and masks, or of the body alone, without its prefix."""
    data = ("--data", "babble", "--seq-len", "32", "--samples", "64", "--batch", "16")
    saved = lockstep.train("trained-gpt", "gpt-nano", *data, "--steps", "4", "--lr", "1e-3")
    model = Gpt2("gpt-nano", VOCABULARY)
    model.load_state_dict(saved, strict=True)
    given = make_busy(model).state_dict()
    bare = {name[len("transformer.") :]: tensor for name, tensor in given.items()}
    start_from(tap, lockstep, "a GPT-2 without prefix", data, bare, "gpt-nano", "transformer.")
    given["lm_head.weight"] = given["transformer.wte.weight"].clone()
    given["transformer.h.0.attn.bias"] = torch.ones(1, 1, 8, 8)
    start_from(tap, lockstep, "all that GPT-2's files hold", data, given, "gpt-nano")
    given["lm_head.weight"] = 2 * given["lm_head.weight"]
    refuse(tap, lockstep, "a GPT-2 whose head is not the words", data, given, "lm_head.weight", "gpt-nano")


def refuse(tap, lockstep, what, data, given, word, model="bert-tiny"):
    write_safetensors(lockstep.path("given.safetensors"), given)
    try:
        lockstep.train("refused", model, *data, "--steps", "1", "--init", "given.safetensors")
        tap.check(f"--init refuses {what}", False, "it was taken")
    except RuntimeError as error:
        tap.check(f"--init refuses {what}, and says so", word in str(error), error)


def start_from(tap, lockstep, what, data, given, model="bert-tiny", without=""):
    """A step that is too small to change any weight shows what --init loaded; names in the file lack `without`."""
    run = f"started-{model}-{len(given)}"
    write_safetensors(lockstep.path("given.safetensors"), given)
    try:
        saved = lockstep.train(run, model, *data, "--steps", "1", "--init", "given.safetensors", "--optimizer", "sgd",
                               "--momentum", "0", "--lr", "1e-30", "--schedule", "constant")
    except RuntimeError as error:
        tap.check(f"--init takes {what}", False, error)
        return
    different = [name for name, tensor in saved.items() if not torch.equal(tensor, given[name[len(without) :]].detach())]
    tap.check(f"--init takes {what}, bit for bit", not different, different)


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    torch.set_num_threads(1)  # two wait for each other, spinning, where the machine is busy
    tap = Tap()
    with tap.comparison() as temporary:
        lockstep = Lockstep(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) == 4 else temporary)
        tiny = BertForPreTraining("bert-tiny", VOCABULARY)
        sentences = BertForSequenceClassification("bert-tiny", VOCABULARY, MOODS)
        transformer = Transformer(VOCABULARY, MOODS)
        pairs = "bert-tiny", "babble-pairs", 32, 24
        # Batches are small: a PyTorch on the reference BLAS does 3 GFLOP/s.
        before, gradients = initial(tap, lockstep, "bert-tiny from the start", tiny, *pairs)
        busy(tap, lockstep, "bert-tiny", tiny.float(), *pairs)
        busy(tap, lockstep, "bert-tiny, two slices", tiny.float(), "bert-tiny", "babble-pairs", 12, 70)
        busy(tap, lockstep, "bert-tiny on sentences", sentences, "bert-tiny", "babble", 16, 70)
        initial(tap, lockstep, "transformer from the start", transformer, "transformer", "babble", 16, 8)
        busy(tap, lockstep, "transformer", transformer.float(), "transformer", "babble", 40, 10)
        busy(tap, lockstep, "bert-base", BertForPreTraining("bert-base", VOCABULARY), "bert-base", "babble-pairs", 16, 2)
        one_step(tap, lockstep, "bert-tiny", *pairs, before, gradients)
        there_and_back(tap, lockstep)
        nano, text = Gpt2("gpt-nano", VOCABULARY), ("gpt-nano", "babble", 40, 10)
        before, gradients = initial(tap, lockstep, "gpt-nano from the start", nano, *text)
        one_step(tap, lockstep, "gpt-nano", *text, before, gradients)
        busy(tap, lockstep, "gpt-nano", nano.float(), *text)
        busy(tap, lockstep, "gpt-nano, two slices and blocks", nano.float(), "gpt-nano", "babble", 70, 70)
        busy(tap, lockstep, "gpt2", Gpt2("gpt2", VOCABULARY), "gpt2", "babble", 16, 2)
        gpt_there_and_back(tap, lockstep)
    sys.exit(tap.end())


if __name__ == "__main__":
    main()

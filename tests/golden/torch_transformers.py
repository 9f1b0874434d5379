#!/usr/bin/env python3
"""Hugging Face's transformers: its GPT-2 and ViT compute what the plain modules do that Lockstep is compared with, and its GPT-2 of
124 million parameters what Lockstep does; it writes the text that `lockstep generate` does, and it loads what Lockstep trains.
Prints TAP.

    python3 tests/golden/torch_transformers.py LOCKSTEP TEXT_DUMP

LOCKSTEP is the command, TEXT_DUMP the program made of text_dump.c.
"""
import glob
import os
import random
import string
import subprocess
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import torch.nn.functional as F
from transformers import GPT2Config, GPT2LMHeadModel, ViTConfig, ViTForImageClassification
from transformers.utils import logging

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
sys.path.append(os.path.join(HERE, "..", "..", "bench"))
sys.dont_write_bytecode = True

import torch_gpt  # noqa: E402
import torch_vit  # noqa: E402
from torch_common import Tap, write_safetensors  # noqa: E402
from gpt2_vocabulary import VOCABULARY, byte_characters, make_vocabulary  # noqa: E402
from torch_text import Lockstep, make_busy  # noqa: E402
import torch_text  # noqa: E402

NEW, PROMPT = 60, "the loader"
BYTES = byte_characters()[0]  # the tokens of a vocabulary of bytes; 256 is the end of a text
LETTERS = string.ascii_letters.encode()


def run(lockstep, directory, *arguments):
    done = subprocess.run([lockstep, *arguments], cwd=directory, capture_output=True)
    if done.returncode != 0:
        raise RuntimeError(f"lockstep {' '.join(arguments)}: exit status {done.returncode}\n{done.stderr.decode()}")
    return done.stdout


def gpt_config(name, vocabulary):
    layers, width, heads = torch_gpt.SIZES[name]
    return GPT2Config(vocab_size=vocabulary, n_positions=torch_gpt.POSITIONS, n_embd=width, n_layer=layers, n_head=heads,
                      bos_token_id=vocabulary - 1, eos_token_id=vocabulary - 1, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)


def load(tap, what, family, config, directory):
    """The model in a directory, every tensor of it and nothing else."""
    config.save_pretrained(directory)
    model, found = family.from_pretrained(directory, output_loading_info=True)
    tap.check(f"{what} loads", not any(found.values()), found)
    return model.eval()


def compare(tap, what, plain, theirs, loss_of):
    """Logits and losses; gradients are there then."""
    (ours, our_loss), (expected, their_loss) = loss_of(plain), loss_of(theirs)
    tap.close(f"{what}: logits", ours.detach(), expected.detach())
    our_loss.backward()
    their_loss.backward()
    tap.check(f"{what}: losses", abs(our_loss.item() - their_loss.item()) < 1e-4 * their_loss.item(),
              (our_loss.item(), their_loss.item()))


def check_gpt(tap, directory, name, vocabulary):
    plain = make_busy(torch_gpt.Gpt2(name, vocabulary)).eval()
    path = os.path.join(directory, name)
    os.makedirs(path, exist_ok=True)
    write_safetensors(os.path.join(path, "model.safetensors"), plain.state_dict())
    theirs = load(tap, f"{name} of Lockstep's names", GPT2LMHeadModel, gpt_config(name, vocabulary), path)
    tokens = torch.randint(vocabulary, (2, 17))

    def loss_of(model):
        if isinstance(model, torch_gpt.Gpt2):
            logits = F.linear(model.transformer(tokens[:, :-1]), model.transformer.wte.weight)
        else:
            logits = model(tokens[:, :-1]).logits
        return logits, F.cross_entropy(logits.reshape(-1, vocabulary), tokens[:, 1:].reshape(-1))

    compare(tap, name, plain, theirs, loss_of)
    for key in ("transformer.wte.weight", "transformer.h.0.attn.c_attn.weight", "transformer.ln_f.bias"):
        tap.close(f"{name}: gradient of {key}", plain.get_parameter(key).grad, theirs.get_parameter(key).grad)


def check_vit(tap, directory, name):
    layers, width, heads = torch_vit.SIZES[name]
    torch.manual_seed(20)
    plain = torch_vit.Vit(name, channels=3, side=32).eval()
    path = os.path.join(directory, name)
    os.makedirs(path, exist_ok=True)
    write_safetensors(os.path.join(path, "model.safetensors"), plain.state_dict())
    config = ViTConfig(image_size=32, patch_size=4, hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads,
                       intermediate_size=4 * width, num_labels=10)
    theirs = load(tap, f"{name} of Lockstep's names", ViTForImageClassification, config, path)
    images, labels = torch.randn(4, 3, 32, 32), torch.arange(4)

    def loss_of(model):
        logits = model(images)
        logits = logits if isinstance(logits, torch.Tensor) else logits.logits
        return logits, F.cross_entropy(logits, labels)

    compare(tap, name, plain, theirs, loss_of)
    tap.close(f"{name}: gradient of the patches", plain.get_parameter("vit.embeddings.patch_embeddings.projection.weight").grad,
              theirs.get_parameter("vit.embeddings.patch_embeddings.projection.weight").grad)


def greedy(model, count):
    """The tokens of the prompt, a byte each, and the most probable after it."""
    prompt = torch.tensor([[BYTES.index(byte) for byte in PROMPT.encode()]])
    with torch.no_grad():
        return model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=count, min_new_tokens=count,
                              do_sample=False, pad_token_id=256)[0].tolist()


def check_generation(tap, lockstep, directory):
    plain = make_busy(torch_gpt.Gpt2("gpt-nano", 257)).eval()
    path = os.path.join(directory, "bytes")
    os.makedirs(path, exist_ok=True)
    write_safetensors(os.path.join(path, "model.safetensors"), plain.state_dict())
    theirs = load(tap, "a model of bytes", GPT2LMHeadModel, gpt_config("gpt-nano", 257), path)
    text = run(lockstep, directory, "generate", "bytes", PROMPT, "--model", "gpt-nano", "--vocab", "bytes", "--seq-len", "1024",
               "--max-new-tokens", str(NEW), "--temperature", "0", "--ignore-eos", "--quiet")
    tokens = greedy(theirs, NEW)
    expected = bytes(BYTES[token] for token in tokens if token < 256)
    tap.check("the text is not one byte again and again", len(set(tokens[len(PROMPT):])) > 5, tokens)
    tap.check(f"lockstep generate writes the {NEW} tokens of transformers", text.rstrip(b"\n") == expected.rstrip(b"\n"),
              (text, expected))


# ---- GPT-2 of its full size


class Whole:
    """A GPT2LMHeadModel in the form of the modules that torch_text.py compares with Lockstep."""

    TIED = {"lm_head.weight": "transformer.wte.weight"}

    def __init__(self, model):
        self.model, self.zero_grad = model, model.zero_grad

    def __call__(self, batch):
        return None, self.model(batch.tokens).logits[batch.masked_sample, batch.masked_place]

    def state_dict(self, keep_vars):
        return self.model.state_dict(keep_vars=keep_vars)


def make_text(path):
    """Random words of one to seven letters, whose tokens are from all over a vocabulary of pairs and triples of letters."""
    rng = random.Random(3)
    with open(path, "w") as out:
        for _ in range(200):
            out.write(" ".join("".join(rng.choices(string.ascii_letters, k=rng.randint(1, 7))) for _ in range(12)) + "\n")


def save(model, directory):
    write_safetensors(os.path.join(directory, "model.safetensors"), model.state_dict())


def check_whole(tap, lockstep, dumper, directory):
    """Logits, loss and every gradient of Lockstep beside transformers' in float64, with 50,257 words."""
    path, data = os.path.join(directory, "whole"), os.path.join(directory, "words")
    os.makedirs(path), os.makedirs(data)
    make_vocabulary(data, LETTERS)
    make_text(os.path.join(data, "text.txt"))
    save(make_busy(torch_gpt.Gpt2("gpt2", VOCABULARY)), path)
    theirs = load(tap, "gpt2 with its 50,257 words", GPT2LMHeadModel, gpt_config("gpt2", VOCABULARY), path)
    out = Lockstep(lockstep, dumper, directory).dump("gpt2", data, 32, 2, os.path.join(path, "model.safetensors"))
    tap.check("the tokens are of the whole vocabulary", int(out["token"].max()) > 40000 and len(set(out["token"].tolist())) > 20,
              out["token"])
    torch_text.compare(tap, "gpt2 beside GPT2LMHeadModel", Whole(theirs.double()), out)


def check_whole_text(tap, lockstep, directory, count=24):
    """Greedy text of that size, with guesses and without."""
    path = os.path.join(directory, "whole")
    tokens = make_vocabulary(path)
    theirs = GPT2LMHeadModel.from_pretrained(path).eval()
    new = greedy(theirs, count)[len(PROMPT):]
    tap.check("gpt2: the text is not one token again and again", len(set(new)) > 5, new)
    expected = b"".join(tokens[token] for token in new)
    for lookup in ("0", "15"):
        text = run(lockstep, directory, "generate", "whole", PROMPT, "--model", "gpt2", "--vocab", "whole", "--max-new-tokens", str(count),
                   "--temperature", "0", "--ignore-eos", "--no-prompt", "--quiet", "--lookup", lookup)
        tap.check(f"gpt2: lockstep generate --lookup {lookup} writes the {count} tokens of transformers", text == expected + b"\n",
                  (text, expected))


def check_trained(tap, lockstep, directory):
    with open(os.path.join(directory, "text.txt"), "w") as out:
        out.write("the loader reads samples, one by one\n" * 400)
    run(lockstep, directory, "train", "--model", "gpt-nano", "--data", "text.txt", "--seq-len", "32", "--steps", "3", "--init", "bytes",
        "--run", "run", "--quiet")
    (checkpoint,) = glob.glob(os.path.join(directory, "run", "ckpt", "step-*"))
    load(tap, "a trained gpt-nano", GPT2LMHeadModel, gpt_config("gpt-nano", 257), checkpoint)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    lockstep, dumper, tap = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), Tap()
    with tap.comparison() as directory:
        check_gpt(tap, directory, "gpt-nano", 257)
        check_gpt(tap, directory, "gpt2", 500)
        check_vit(tap, directory, "vit-tiny")
        check_generation(tap, lockstep, directory)
        check_trained(tap, lockstep, directory)
        check_whole(tap, lockstep, dumper, directory)
        check_whole_text(tap, lockstep, directory)
    sys.exit(tap.end())


if __name__ == "__main__":
    main()

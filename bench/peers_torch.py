#!/usr/bin/env python3
"""PyTorch's side of bench/peers: one process per point, which trains a number of steps on request.

    python3 peers_torch.py --model resnet18 --batch 128 --threads 1 [--channels-last] [--compiled] [--bf16]
    python3 peers_torch.py ... --world 2 --rank 0 --rendezvous FILE      (and the same with --rank 1)
    python3 peers_torch.py --probe

Reads and writes lines of JSON. Out, once ready: {"ready": true, "parameters": N}. In: {"warmup": W, "steps": S}. Out:
{"seconds": [S times]}. Ends at the end of its input. With --probe it prints the version of PyTorch and ends.

With --world the process is one rank of DistributedDataParallel over Gloo, on this machine's loopback. The ranks find
each other by a file that does not exist yet, so that no port is needed. Every rank gets the same requests; the exchange
of gradients synchronizes the ranks within a turn, and between turns a rank is blocked in reading its input.

Everything that makes PyTorch faster without changing the job is done here: gradients set to None instead of zero,
no value of the loss fetched between steps, denormals flushed, the fused optimizer where there is one, and gradients that
are views of DistributedDataParallel's buckets. --compiled compiles the model with torch.compile(); --bf16 computes the
forward pass under autocast to bfloat16.
"""
import argparse
import datetime
import json
import os
import sys
import time

PATIENCE = datetime.timedelta(seconds=120)  # for a rank that does not start or does not answer

sys.dont_write_bytecode = True


def probe():
    import torch
    import torchvision

    lines = [line.strip(" -\t") for line in torch.__config__.show().splitlines()]
    onednn = [line for line in lines if "MKL-DNN" in line or "oneDNN" in line]
    capability = [line.split(":", 1)[1].strip() for line in lines if line.startswith("CPU capability")]
    # One convolution makes oneDNN print, with ONEDNN_VERBOSE in the environment, which instructions it uses.
    torch.nn.functional.conv2d(torch.randn(4, 16, 8, 8), torch.randn(16, 16, 3, 3))
    sys.stdout.flush()
    print(json.dumps({
        "torch": torch.__version__,
        "torchvision": torchvision.__version__,
        "onednn": onednn[0] if onednn else "none",
        "capability": capability[0] if capability else "unknown",
    }))


def sst_lengths(path, rng):
    """Tokens of the sentences of a file of SST trees, words and two marks each, in random order."""
    with open(path, encoding="utf-8") as f:
        lengths = [sum(1 for word in line.split() if word.endswith(")")) + 2 for line in f if line.strip()]
    rng.shuffle(lengths)
    return lengths


class Text:
    """Random sentences: all of --tokens, or as long as those of --sentences, padded to the longest of their batch."""

    def __init__(self, options, vocabulary=30522):
        import random

        import torch

        import torch_text

        self.torch, self.batch, self.vocabulary = torch, options.batch, vocabulary
        self.masked = 20 if options.model.startswith("bert") else 0
        if self.masked:
            self.model = torch_text.Bert(options.model.split("-")[1], vocabulary)
        else:
            self.model = torch_text.Transformer(vocabulary, 5)
        lengths = [options.tokens] * options.batch
        if options.sentences:
            lengths = sst_lengths(options.sentences, random.Random(1 + options.rank))
        self.batches = [self.make(lengths[i:i + options.batch])
                        for i in range(0, min(len(lengths), 64 * options.batch) - options.batch + 1, options.batch)]
        self.turn = 0

    def make(self, lengths):
        torch, longest = self.torch, max(lengths)
        tokens = torch.randint(self.vocabulary, (len(lengths), longest))
        places = torch.arange(self.masked) * longest // max(self.masked, 1)
        rows = (torch.arange(len(lengths))[:, None] * longest + places[None, :]).flatten()
        return {"tokens": tokens, "lengths": torch.tensor(lengths), "rows": rows,
                "segments": (torch.arange(longest) >= longest // 2).long().expand(len(lengths), -1),
                "targets": torch.randint(self.vocabulary, (len(rows),)),
                "labels": torch.randint(2 if self.masked else 5, (len(lengths),))}

    def loss(self, model):
        b, xent = self.batches[self.turn % len(self.batches)], self.torch.nn.functional.cross_entropy
        self.turn += 1
        if not self.masked:
            return xent(model(b["tokens"], b["lengths"]), b["labels"])
        following, words = model(b["tokens"], b["segments"], b["lengths"], b["rows"])
        return xent(following, b["labels"]) + xent(words, b["targets"])


class Language:
    """Random tokens for a GPT, and random next tokens."""

    def __init__(self, options):
        import torch

        import torch_gpt

        self.model = torch_gpt.Gpt2(options.model)
        self.tokens, self.targets = (torch.randint(torch_gpt.VOCABULARY, (options.batch, options.tokens)) for _ in range(2))
        self.xent = torch.nn.functional.cross_entropy

    def loss(self, model):
        return self.xent(model(self.tokens).flatten(0, 1), self.targets.flatten())


class Images:
    """One random batch of images with ten classes."""

    def __init__(self, options):
        import torch

        import torch_models

        self.torch = torch
        layout = torch.channels_last if options.channels_last else torch.contiguous_format
        shape = (options.channels, options.image_size, options.image_size)
        self.model = torch_models.build(options.model, *shape[:2]).to(memory_format=layout).train()
        self.x = torch.randn(options.batch, *shape).to(memory_format=layout)
        self.y = torch.randint(10, (options.batch,))

    def loss(self, model):
        return self.torch.nn.functional.cross_entropy(model(self.x), self.y)


class Trainer:
    """A model, its optimizer and its data."""

    def __init__(self, options):
        import torch

        torch.set_num_threads(options.threads)
        torch.set_flush_denormal(True)
        torch.manual_seed(1)
        self.torch, self.is_bf16 = torch, options.bf16
        self.data = self.make_data(options)
        self.model = torch.compile(self.data.model) if options.compiled else self.data.model
        if options.world > 1:  # broadcasts the weights of the first rank
            self.model = torch.nn.parallel.DistributedDataParallel(self.model, gradient_as_bucket_view=True)
        self.optimizer = self.make_optimizer(options.optimizer)

    @staticmethod
    def make_data(options):
        if options.model.startswith("gpt"):
            return Language(options)
        return Text(options) if options.tokens or options.sentences else Images(options)

    def make_optimizer(self, name):
        """The fused form where PyTorch has one for CPUs (2.4 and later)."""
        kind, lr = (self.torch.optim.AdamW, 1e-4) if name == "adamw" else (self.torch.optim.Adam, 1e-3)
        try:
            return kind(self.model.parameters(), lr=lr, fused=True)
        except (RuntimeError, TypeError):
            return kind(self.model.parameters(), lr=lr)

    def parameters(self):
        return sum(p.numel() for p in self.model.parameters())

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        with self.torch.autocast("cpu", dtype=self.torch.bfloat16, enabled=self.is_bf16):
            loss = self.data.loss(self.model)
        loss.backward()
        self.optimizer.step()

    def run(self, warmup, steps):
        for _ in range(warmup):
            self.step()
        seconds = []
        for _ in range(steps):
            begin = time.perf_counter()
            self.step()
            seconds.append(time.perf_counter() - begin)
        return seconds


def join(options):
    """Join the process group."""
    import torch.distributed

    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    rendezvous = "file://" + os.path.abspath(options.rendezvous)
    torch.distributed.init_process_group("gloo", init_method=rendezvous, timeout=PATIENCE, rank=options.rank,
                                         world_size=options.world)


def serve(options):
    # The answers go to the original stdout; anything a library prints goes to stderr instead.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    if options.world > 1:
        join(options)
    trainer = Trainer(options)
    print(json.dumps({"ready": True, "parameters": trainer.parameters()}), file=answers)
    for line in sys.stdin:
        order = json.loads(line)
        print(json.dumps({"seconds": trainer.run(order["warmup"], order["steps"])}), file=answers)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--probe", action="store_true", help="print the version of PyTorch")
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--channels", type=int, default=1, help="of an image")
    parser.add_argument("--image-size", type=int, default=28, help="height and width of an image")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--compiled", action="store_true", help="compile the model with torch.compile()")
    parser.add_argument("--bf16", action="store_true", help="autocast to bfloat16")
    parser.add_argument("--optimizer", default="adam", choices=["adam", "adamw"])
    parser.add_argument("--tokens", type=int, default=0, help="text, sentences of this length")
    parser.add_argument("--sentences", metavar="FILE", help="text, sentences as long as those of these SST trees")
    parser.add_argument("--world", type=int, default=1, help="ranks of DistributedDataParallel")
    parser.add_argument("--rank", type=int, default=0, help="rank of this process")
    parser.add_argument("--rendezvous", metavar="FILE", help="file by which the ranks find each other")
    options = parser.parse_args()
    if options.world > 1 and not options.rendezvous:
        parser.error("--world needs --rendezvous FILE")
    if options.probe:
        probe()
    else:
        serve(options)


if __name__ == "__main__":
    main()

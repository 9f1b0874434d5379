#!/usr/bin/env python3
"""PyTorch's side of bench/convergence: one process per job, which trains with one seed after another on request.

    python3 convergence_torch.py JOB

JOB is a JSON object: model, data (a directory), samples, test_samples, augment (what Lockstep is given), batch, optimizer, lr, beta1, weight_decay, threads,
init ("lockstep": the distribution of Lockstep's initial weights, "default": PyTorch's) and wrong, a learning rule to get
wrong ("bias": Adam without its bias correction) or "". Reads and writes lines of JSON. Out, once ready: {"ready": true,
"parameters": N, "samples": N}. In: {"seed": S, "steps": [step, ...], "target": A}, the steps after which to evaluate, and
the accuracy at which to stop, or null. Out, for every evaluation: {"step", "train_s", "test_s", "loss", "accuracy"}, and at
last {"end": true}. Seconds are those since the evaluation before. Ends at the end of its input.

The job is Lockstep's: every sample once per epoch, in an order drawn from the seed, the last batch of an epoch smaller, the
mean loss of a batch.
"""
import json
import os
import sys
import time

sys.dont_write_bytecode = True

import torch
from torch.nn import functional as F

import torch_data

TEST_BATCH = 250


class AdamWithoutCorrection(torch.optim.Adam):
    """Adam whose running means are not divided by 1 - beta^t: wrong on purpose."""

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state.update(m=torch.zeros_like(p), v=torch.zeros_like(p))
                state["m"].lerp_(p.grad, 1 - beta1)
                state["v"].mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                p.addcdiv_(state["m"], state["v"].sqrt().add_(group["eps"]), value=-group["lr"])


def make_model(job, data):
    if data.vocabulary is not None:
        import torch_text

        model = torch_text.Transformer(len(data.vocabulary), data.classes)
        if job["init"] == "lockstep":
            torch_text.start_as_lockstep(model)
        return model
    import torch_models

    model = torch_models.build(job["model"], 1, data.train.images.shape[1], data.classes)
    if job["init"] == "lockstep":
        torch_models.start_as_lockstep(model, job["model"])
    return model


def make_optimizer(job, model):
    kind = AdamWithoutCorrection if job["wrong"] == "bias" else torch.optim.Adam
    return kind(model.parameters(), lr=job["lr"], betas=(job["beta1"], 0.999), weight_decay=job["weight_decay"])


def batches(split, size, seed):
    """Indices of the batches, epoch after epoch, without end."""
    order = torch.Generator().manual_seed(seed)
    while True:
        yield from torch.randperm(split.count, generator=order).split(size)


def evaluate(model, split):
    """Mean loss and accuracy."""
    loss = correct = 0
    model.eval()
    with torch.no_grad():
        for indices in split.in_turn(TEST_BATCH):
            logits, labels = model(*split.batch(indices)), split.labels[indices]
            loss += float(F.cross_entropy(logits, labels, reduction="sum"))
            correct += int((logits.argmax(1) == labels).sum())
    model.train()
    return loss / split.count, correct / split.count


def train(job, data, order):
    """Train with the seed of an order; yields an evaluation after each of its steps."""
    torch.manual_seed(order["seed"])
    model = make_model(job, data).train()
    optimizer = make_optimizer(job, model)
    feed, done = batches(data.train, job["batch"], order["seed"]), 0
    for step in order["steps"]:
        begin = time.perf_counter()
        for _ in range(step - done):
            indices = next(feed)
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(model(*data.train.batch(indices)), data.train.labels[indices]).backward()
            optimizer.step()
        done, trained = step, time.perf_counter()
        loss, accuracy = evaluate(model, data.test)
        yield {"step": step, "train_s": trained - begin, "test_s": time.perf_counter() - trained, "loss": loss,
               "accuracy": accuracy}
        if order["target"] is not None and accuracy >= order["target"]:
            return


def main():
    # The answers go to the original stdout; anything a library prints goes to stderr instead.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    job = json.loads(sys.argv[1])
    torch.set_num_threads(job["threads"])
    torch.set_flush_denormal(True)
    data = torch_data.Dataset(job["data"], job["samples"], job["test_samples"], bool(job["augment"]))
    parameters = sum(p.numel() for p in make_model(job, data).parameters())
    print(json.dumps({"ready": True, "parameters": parameters, "samples": data.train.count}), file=answers)
    for line in sys.stdin:
        for answer in train(job, data, json.loads(line)):
            print(json.dumps(answer), file=answers)
        print(json.dumps({"end": True}), file=answers)


if __name__ == "__main__":
    main()

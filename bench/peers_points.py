"""The points of bench/peers, how they are measured, and their rows in the tables.

Two tables. `threads`: one process of either side with T threads. `devices`: Lockstep on DEVICES devices of one thread
beside PyTorch's DistributedDataParallel with as many processes of one thread, and beside Lockstep on one device. All
sides of a point take turns in the same rounds, so that a slower machine affects all of them. Rates are medians
over rounds; ratios are medians of the ratios within a round.
"""
import os
import statistics
import sys

from peers_jobs import LockstepJob

DEVICES = 2
MEMORY_LIMIT = 0.60  # of PyTorch's peak


SENTENCES = "sentences"  # instead of a number of tokens: the sentences of SST-5


class Job:
    """A training job: images, text with `tokens` tokens per sample, or real sentences."""

    def __init__(self, model, batch, tokens=0, optimizer="adam"):
        self.model, self.batch, self.tokens, self.optimizer = model, batch, tokens, optimizer
        self.name = model + (f" of {tokens} tokens" if tokens and tokens != SENTENCES else " on SST-5" if tokens else "")

    def is_available(self, options):
        return self.tokens != SENTENCES or options.sst is not None

    def lockstep_options(self, options):
        words = ["--optimizer", self.optimizer]
        if self.tokens == SENTENCES:
            return words + ["--data", "sst5", "--data-dir", options.sst]
        return words + (["--seq-len", str(self.tokens)] if self.tokens else [])

    def torch_options(self, options):
        words = ["--optimizer", self.optimizer]
        if self.tokens == SENTENCES:
            return words + ["--sentences", os.path.join(options.sst, "train.txt")]
        return words + (["--tokens", str(self.tokens)] if self.tokens else [])


class Point(Job):
    """A job of the first table: `steps` per turn, the required ratio of rates, and the maximum ratio of memory."""

    def __init__(self, model, batch, steps, required, memory=MEMORY_LIMIT, threads=None, **job):
        super().__init__(model, batch, **job)
        self.steps, self.required, self.memory, self.threads = steps, required, memory, threads


class DevicesPoint(Job):
    """A job of the second table, `batch` samples per device: steps per turn of either side, for turns of about a second,
    and the required scaling and ratio of rates (0: none)."""

    def __init__(self, model, batch, torch_steps, steps, scaling, required, **job):
        super().__init__(model, batch, **job)
        self.torch_steps, self.steps = torch_steps, steps
        self.scaling, self.required = scaling, required


POINTS = [
    Point("resnet18", 128, 3, 4.0),
    Point("resnet50", 128, 2, 2.5),
    Point("resnet101", 128, 1, 2.5),
    Point("cnn", 64, 20, 2.5),
    Point("cnn", 512, 4, 2.5),
    Point("bert-base", 8, 1, 1.25, memory=0.75, threads=[1], tokens=128, optimizer="adamw"),
    Point("transformer", 128, 2, 3.0, threads=[1], tokens=SENTENCES),
    Point("transformer", 128, 1, 1.5, threads=[1], tokens=64),
    Point("gpt2", 4, 1, 1.2, memory=1.0, threads=[1], tokens=64, optimizer="adamw"),
    Point("gpt2", 4, 1, 1.2, memory=1.0, threads=[1], tokens=256, optimizer="adamw"),
]

DEVICES_POINTS = [
    DevicesPoint("resnet18", 128, 3, 10, 1.93, 4.0),
    DevicesPoint("resnet50", 128, 2, 4, 1.93, 0),
    DevicesPoint("cnn", 512, 4, 20, 1.85, 0),
    DevicesPoint("bert-base", 8, 1, 1, 1.9, 0, tokens=128, optimizer="adamw"),
    DevicesPoint("transformer", 128, 2, 4, 1.9, 0, tokens=SENTENCES),
]


def take_turns(name, sides, rounds):
    """One turn of every side per round, in an order that alternates; `sides` are (label, job, warm-up, steps)."""
    for turn in range(rounds):
        for _, job, warmup, steps in sides if turn % 2 == 0 else reversed(sides):
            job.turn(warmup, steps)
        rates = ", ".join(f"{label} {job.rates[-1]:.1f}" for label, job, _, _ in sides)
        print(f"  {name} round {turn + 1}/{rounds}: {rates}", file=sys.stderr, flush=True)


def run(name, starts, steps, mine, rounds):
    """PyTorch's jobs, ended, after they took turns with `mine`: (label, job, warm-up, steps) of Lockstep."""
    jobs = []
    try:
        for _, start in starts:
            jobs.append(start())
            jobs[-1].turn(2, 0)
        take_turns(name, [(label, job, 1, steps) for (label, _), job in zip(starts, jobs)] + mine, rounds)
    except BaseException:
        for job in jobs:
            job.finish(0)
        raise
    for job in jobs:
        job.finish()
    return jobs


def median_ratio(ours, theirs):
    """Ratio of rates measured in the same rounds: (median, minimum, maximum)."""
    ratios = [a / b for a, b in zip(ours, theirs)]
    return statistics.median(ratios), min(ratios), max(ratios)


def side(job):
    """The figures of a job, for either side."""
    return {"samples_per_s": statistics.median(job.rates), "rates": job.rates, "peak_rss_bytes": job.peak}


def peers(torches, jobs, mine):
    """PyTorch's part of a row."""
    found = []
    for torch, job in zip(torches, jobs):
        peer = {"label": torch.label, "version": torch.facts["torch"], "modes": list(torch.modes)}
        peer.update(side(job))
        if mine:
            middle, low, high = median_ratio(mine.rates, job.rates)
            peer.update(ratio=middle, ratio_min=low, ratio_max=high, memory_ratio=mine.peak / job.peak)
        found.append(peer)
    return found


def reference(torches, found):
    """Requirements refer to the first PyTorch in fp32: to its fastest mode, and to the one with least memory."""
    variants = [peer for peer, torch in zip(found, torches)
                if torch.python == torches[0].python and "bf16" not in torch.modes]
    best = max(variants, key=lambda peer: peer["samples_per_s"])
    return {"best": best["label"], "ratio": best["ratio"], "memory_ratio": max(p["memory_ratio"] for p in variants)}


def measure_threads(point, threads, torches, options):
    """The row of a point of the first table."""
    torches = [torch for torch in torches if torch.suits(point)]
    mine = None if options.torch_only else LockstepJob(options, point, 1, threads, options.cpus)
    starts = [(t.label, lambda t=t: t.start(point, threads, options)) for t in torches]
    ours = [("lockstep", mine, 2, point.steps)] if mine else []
    name = f"{point.name} batch {point.batch} threads {threads}"
    jobs = run(name, starts, point.steps, ours, options.rounds)
    found = peers(torches, jobs, mine)
    row = {"model": point.name, "batch": point.batch, "threads": threads, "parameters": jobs[0].parameters,
           "steps_a_round": point.steps, "rounds": options.rounds, "peers": found}
    if mine:
        row.update(reference(torches, found), lockstep={**side(mine), "reported": mine.last},
                   required_ratio=point.required, required_memory_ratio=point.memory)
        row["ok"] = row["ratio"] >= point.required and row["memory_ratio"] <= point.memory
    return row


def measure_devices(point, torches, options):
    """The row of a point of the second table."""
    torches = [torch for torch in torches if torch.suits(point)]
    cpus = options.cpus[:DEVICES]
    one, all_of_them = (LockstepJob(options, point, devices, 1, cpus) for devices in (1, DEVICES))
    starts = [(t.label + " ddp", lambda t=t: t.start_ranks(point, cpus, options)) for t in torches]
    ours = [("lockstep 1 device", one, 2, point.steps), (f"{DEVICES} devices", all_of_them, 2, point.steps)]
    name = f"{point.name} batch {point.batch} devices {DEVICES}"
    mine = None if options.torch_only else all_of_them
    jobs = run(name, starts, point.torch_steps, ours if mine else [], options.rounds)
    found = peers(torches, jobs, mine)
    row = {"model": point.name, "batch": point.batch, "devices": DEVICES, "parameters": jobs[0].parameters,
           "steps_a_round": point.steps, "torch_steps_a_round": point.torch_steps, "rounds": options.rounds,
           "peers": found}
    if mine:
        middle, low, high = median_ratio(all_of_them.rates, one.rates)
        row.update(reference(torches, found), one_device={**side(one), "reported": one.last},
                   lockstep={**side(mine), "reported": mine.last}, scaling=middle, scaling_min=low, scaling_max=high,
                   required_scaling=point.scaling, required_ratio=point.required)
        row["ok"] = middle >= point.scaling and row["ratio"] >= point.required
    return row

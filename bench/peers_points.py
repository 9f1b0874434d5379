"""The points of bench/peers, how they are measured, and their rows in the tables.

Two tables. `threads`: one process of either side with T threads. `devices`: Lockstep on DEVICES devices of one thread
beside PyTorch's DistributedDataParallel with as many processes of one thread, and beside Lockstep on one device. All
sides of a point take turns in the same rounds, so that a slower machine affects all of them. Rates are medians
over rounds; ratios are medians of the ratios within a round. A point has a row per precision of Lockstep, with PyTorch's
modes of the same kind, fp32 or bf16, beside it; JAX and llm.c, which have no ranks here, are in the first table only.
"""
import os
import statistics
import sys

from peers_jobs import LockstepJob, Trouble

DEVICES = 2
MEMORY_LIMIT = 0.60  # of PyTorch's peak
KINDS = {"fp32": "fp32", "bf16": "bf16", "bf16-amx": "bf16"}  # what PyTorch's modes compute in, by Lockstep's precision


SENTENCES = "sentences"  # instead of a number of tokens: the sentences of SST-5


class Job:
    """A training job: images of `channels` x `size` x `size`, text with `tokens` tokens per sample, or real sentences."""

    def __init__(self, model, batch, tokens=0, optimizer="adam", channels=1, size=28):
        self.model, self.batch, self.tokens, self.optimizer = model, batch, tokens, optimizer
        self.image = [] if (channels, size) == (1, 28) else [("--channels", channels), ("--image-size", size)]
        detail = f" of {tokens} tokens" if tokens else f" {size}x{size}x{channels}" if self.image else ""
        self.name = model + (" on SST-5" if tokens == SENTENCES else detail)

    def is_available(self, options):
        return self.tokens != SENTENCES or options.sst is not None

    def lockstep_options(self, options):
        words = ["--optimizer", self.optimizer]
        if self.tokens == SENTENCES:
            return words + ["--data", "sst5", "--data-dir", options.sst]
        return words + (["--seq-len", str(self.tokens)] if self.tokens else self.image_options())

    def torch_options(self, options):
        words = ["--optimizer", self.optimizer]
        if self.tokens == SENTENCES:
            return words + ["--sentences", os.path.join(options.sst, "train.txt")]
        return words + (["--tokens", str(self.tokens)] if self.tokens else self.image_options())

    def image_options(self):
        return [word for name, value in self.image for word in (name, str(value))]


class Required:
    """Ratios of rates that are required: to a current PyTorch in fp32 and in bf16 (0: none), and to versions before 2."""

    def __init__(self, fp32, bf16=0, old=0):
        self.fp32, self.bf16, self.old = fp32, bf16, old

    def of(self, kind, torch):
        if kind == "bf16":
            return self.bf16
        return self.old if self.old and int(torch.facts["torch"].split(".")[0]) < 2 else self.fp32


class Point(Job):
    """A job of the first table: `steps` per turn, the required ratios of rates, and the maximum ratio of memory."""

    def __init__(self, model, batch, steps, required, memory=MEMORY_LIMIT, threads=None, **job):
        super().__init__(model, batch, **job)
        self.steps, self.required, self.memory, self.threads = steps, required, memory, threads


class DevicesPoint(Job):
    """A job of the second table, `batch` samples per device: steps per turn of either side, for turns of about a second,
    the required scaling (of fp32) and ratios of rates."""

    def __init__(self, model, batch, torch_steps, steps, scaling, required, **job):
        super().__init__(model, batch, **job)
        self.torch_steps, self.steps = torch_steps, steps
        self.scaling, self.required = scaling, required


POINTS = [
    Point("resnet18", 128, 3, Required(2.5, bf16=2.2, old=4.0)),
    Point("resnet50", 128, 2, Required(2.2, old=2.5)),
    Point("resnet101", 128, 1, Required(2.2, old=2.5)),
    Point("cnn", 64, 20, Required(2.2, bf16=1.8, old=2.5)),
    Point("cnn", 512, 4, Required(2.2, bf16=1.8, old=2.5)),
    Point("resnet18", 128, 2, Required(2.2), threads=[1], channels=3, size=32),
    Point("resnet50", 16, 1, Required(1.4, bf16=1.0), memory=1.0, threads=[1], channels=3, size=224),
    Point("bert-base", 8, 1, Required(1.2, bf16=1.25, old=1.25), memory=0.75, threads=[1], tokens=128, optimizer="adamw"),
    Point("transformer", 128, 2, Required(2.5, old=3.0), threads=[1], tokens=SENTENCES),
    Point("transformer", 128, 1, Required(1.4, bf16=1.2, old=1.5), threads=[1], tokens=64),
    Point("gpt2", 4, 1, Required(1.2), memory=1.0, threads=[1], tokens=64, optimizer="adamw"),
    Point("gpt2", 4, 1, Required(1.2), memory=1.0, threads=[1], tokens=256, optimizer="adamw"),
]

DEVICES_POINTS = [
    DevicesPoint("resnet18", 128, 3, 10, 1.93, Required(0, bf16=2.8, old=4.0)),
    DevicesPoint("resnet50", 128, 2, 4, 1.93, Required(0)),
    DevicesPoint("cnn", 512, 4, 20, 1.85, Required(0)),
    DevicesPoint("bert-base", 8, 1, 1, 1.9, Required(0), tokens=128, optimizer="adamw"),
    DevicesPoint("transformer", 128, 2, 4, 1.9, Required(0), tokens=SENTENCES),
]


def take_turns(name, sides, rounds):
    """One turn of every side per round, in an order that alternates; `sides` are (label, job, warm-up, steps)."""
    for turn in range(rounds):
        for _, job, warmup, steps in sides if turn % 2 == 0 else reversed(sides):
            job.turn(warmup, steps)
        rates = ", ".join(f"{label} {job.rates[-1]:.1f}" for label, job, _, _ in sides)
        print(f"  {name} round {turn + 1}/{rounds}: {rates}", file=sys.stderr, flush=True)


def begin(torch, start, name, notes):
    """A job after its warm-up; None, with a note, where PyTorch cannot compile the model."""
    job = None
    try:
        job = start(torch)
        job.turn(2, 0)
        return job
    except BaseException as reason:
        if job:
            job.finish(0)
        if not isinstance(reason, Trouble) or "compiled" not in torch.modes:
            raise
        notes.append(f"{name} without {torch.label}: {reason}")
        return None


def run(name, torches, start, steps, mine, rounds, notes):
    """(torch, job) pairs, jobs ended, after they took turns with `mine`: (label, job, warm-up, steps) of Lockstep."""
    pairs = []
    try:
        for torch in torches:
            job = begin(torch, start, name, notes)
            pairs += [(torch, job)] if job else []
        take_turns(name, [(torch.label, job, 1, steps) for torch, job in pairs] + mine, rounds)
    except BaseException:
        for _, job in pairs:
            job.finish(0)
        raise
    for _, job in pairs:
        job.finish()
    return pairs


def median_ratio(ours, theirs):
    """Ratio of rates measured in the same rounds: (median, minimum, maximum)."""
    ratios = [a / b for a, b in zip(ours, theirs)]
    return statistics.median(ratios), min(ratios), max(ratios)


def side(job):
    """The figures of a job, for either side."""
    return {"samples_per_s": statistics.median(job.rates), "rates": job.rates, "peak_rss_bytes": job.peak}


def peers(pairs, mine):
    """The others' part of a row: (torch, job) pairs."""
    found = []
    for torch, job in pairs:
        peer = {"label": torch.label, "version": torch.version, "modes": list(torch.modes)}
        peer.update(side(job))
        if mine:
            middle, low, high = median_ratio(mine.rates, job.rates)
            peer.update(ratio=middle, ratio_min=low, ratio_max=high, memory_ratio=mine.peak / job.peak)
        found.append(peer)
    return found


def reference(pairs, found):
    """Requirements refer to the fastest of all but older versions of PyTorch, and to PyTorch's mode with least memory."""
    required = [(torch, peer) for peer, (torch, _) in zip(found, pairs) if torch.is_required]
    best = max((peer for _, peer in required), key=lambda peer: peer["samples_per_s"])
    return {"best": best["label"], "ratio": best["ratio"],
            "memory_ratio": max(peer["memory_ratio"] for torch, peer in required if torch.is_torch)}


def of_kind(kind, pairs):
    """PyTorch's modes that compute in fp32 or in bf16, with their jobs."""
    return [(torch, job) for torch, job in pairs if torch.is_bf16() == (kind == "bf16")]


def kinds_alone(pairs):
    """Without Lockstep a row per kind of PyTorch's modes."""
    return [(kind, None) for kind in ("fp32", "bf16") if of_kind(kind, pairs)]


def measure_threads(point, threads, torches, options, notes):
    """The rows of a point of the first table, one per precision."""
    torches = [torch for torch in torches if torch.suits(point)]
    mine = [] if options.torch_only else [(p, LockstepJob(options, point, 1, threads, options.cpus, p))
                                          for p in options.precision]
    ours = [("lockstep" if p == "fp32" else "lockstep " + p, job, 2, point.steps) for p, job in mine]
    pairs = run(f"{point.name} batch {point.batch} threads {threads}", torches,
                lambda torch: torch.start(point, threads, options), point.steps, ours, options.rounds, notes)
    return [threads_row(point, threads, precision, of_kind(KINDS[precision], pairs), job, options)
            for precision, job in mine or kinds_alone(pairs)]


def threads_row(point, threads, precision, pairs, mine, options):
    found = peers(pairs, mine)
    row = {"model": point.name, "batch": point.batch, "threads": threads, "precision": precision,
           "parameters": pairs[0][1].parameters, "steps_a_round": point.steps, "rounds": options.rounds, "peers": found}
    if mine:
        required = point.required.of(KINDS[precision], pairs[0][0])
        row.update(reference(pairs, found), lockstep={**side(mine), "reported": mine.last},
                   required_ratio=required, required_memory_ratio=point.memory)
        row["ok"] = row["ratio"] >= required and row["memory_ratio"] <= point.memory
    return row


def measure_devices(point, torches, options, notes):
    """The rows of a point of the second table, one per precision."""
    torches = [torch for torch in torches if torch.has_ranks and torch.suits(point)]
    cpus = options.cpus[:DEVICES]
    mine = [] if options.torch_only else [
        (p, [LockstepJob(options, point, devices, 1, cpus, p) for devices in (1, DEVICES)]) for p in options.precision]
    ours = [(f"lockstep {p} {name}", job, 2, point.steps) for p, jobs in mine
            for name, job in zip(("1 device", f"{DEVICES} devices"), jobs)]
    pairs = run(f"{point.name} batch {point.batch} devices {DEVICES}", torches,
                lambda torch: torch.start_ranks(point, cpus, options), point.torch_steps, ours, options.rounds, notes)
    return [devices_row(point, precision, of_kind(KINDS[precision], pairs), pair, options)
            for precision, pair in mine or kinds_alone(pairs)]


def devices_row(point, precision, pairs, mine, options):
    one, both = mine or (None, None)
    found = peers(pairs, both)
    row = {"model": point.name, "batch": point.batch, "devices": DEVICES, "precision": precision,
           "parameters": pairs[0][1].parameters, "steps_a_round": point.steps, "torch_steps_a_round": point.torch_steps,
           "rounds": options.rounds, "peers": found}
    if mine:
        middle, low, high = median_ratio(both.rates, one.rates)
        scaling = point.scaling if precision == "fp32" else 0
        required = point.required.of(KINDS[precision], pairs[0][0])
        row.update(reference(pairs, found), one_device={**side(one), "reported": one.last},
                   lockstep={**side(both), "reported": both.last}, scaling=middle, scaling_min=low, scaling_max=high,
                   required_scaling=scaling, required_ratio=required)
        row["ok"] = middle >= scaling and row["ratio"] >= required
    return row

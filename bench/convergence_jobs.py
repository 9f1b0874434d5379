"""The jobs of bench/convergence and how either side trains them.

A run is one side training a job with one seed: a list of evaluations ("points": step, epochs, train_s, test_s, wall_s,
loss, accuracy). `lockstep train` evaluates at the end of an epoch or of a run, so it is stopped and resumed at every
evaluation; the trained bits do not depend on that. Its seconds are those that it records itself for steps and tests, as
PyTorch's are; wall_s has everything: processes that start, data that is read, checkpoints.
"""
import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from convergence_stats import reached
from peers_jobs import GRACE, HERE, PATIENCE, Process, Trouble, blas_core
from shared import count, data_cache, holds

WORKER = os.path.join(HERE, "convergence_torch.py")
TORCH_SOURCES = ("convergence_torch.py", "torch_data.py", "torch_models.py", "torch_text.py")
SIDES = ("lockstep", "torch")
NAMES = {"lockstep": "Lockstep", "torch": "PyTorch"}
IMAGES = tuple(f"{split}-{kind}-ubyte" for split in ("train", "t10k") for kind in ("images-idx3", "labels-idx1"))
FILES = {"mnist": IMAGES, "fashion-mnist": IMAGES, "glyphs": IMAGES, "sst5": ("train.txt", "test.txt", "vocab.txt")}
TITLES = {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST", "glyphs": "glyphs", "sst5": "SST-5"}
GLYPHS_SEED = 1
MEMORY_BYTES = 2e9  # free, to keep checkpoints in memory

# Learning rules to get wrong, to see that the comparison notices: the side, and what it does instead.
WRONG = {
    "lr": ("lockstep", "a third of the learning rate", lambda job: {"lr": job["lr"] / 3}),
    "momentum": ("lockstep", "no momentum (beta1 0)", lambda job: {"beta1": 0.0}),
    "decay": ("lockstep", "a weight decay of 0.03", lambda job: {"weight_decay": 0.03}),
    "bias": ("torch", "Adam without bias correction", lambda job: {"wrong": "bias"}),
}


class Job:
    """What is trained: Adam at a constant rate, `evaluations` per epoch, until `epochs` are done. `samples` and
    `test_samples` are how many of the dataset are used, 0 for all. Batch normalisation takes its statistics from a
    micro-batch, so a model that has it gets one micro-batch per step, as in PyTorch. `augment` trains on images changed at
    random, from a folder of PNG files. Sides are compared by their epochs to the target or, without one, by their final
    accuracy."""

    def __init__(self, model, dataset, target, epochs, evaluations, batch=128, micro_batch=32, lr=1e-3, samples=0,
                 test_samples=0, augment=""):
        self.model, self.dataset, self.target, self.epochs = model, dataset, target, epochs
        self.evaluations, self.micro_batch = evaluations, micro_batch
        self.training = {"model": model, "batch": batch, "optimizer": "adam", "lr": lr, "beta1": 0.9, "weight_decay": 0.0,
                         "samples": samples, "test_samples": test_samples, "augment": augment}
        self.name = f"{model} on {TITLES[dataset]}"
        self.judged_by = "epochs" if target else "final_accuracy"
        self.classes = 5 if dataset == "sst5" else 10
        self.place = None

    def settings(self, side, wrong):
        """What decides the result of a side: a wrong rule changes one of the two."""
        settings = {**self.training, "dataset": self.dataset, "epochs": self.epochs, "evaluations": self.evaluations,
                    "wrong": ""}
        if side == "lockstep":
            settings["micro_batch"] = self.micro_batch
        if wrong and WRONG[wrong][0] == side:
            settings.update(WRONG[wrong][2](settings))
        return settings

    def describe(self, limit=""):
        t = self.training
        return (f"Adam, lr {t['lr']:g}, batch {t['batch']}, {limit}{count(self.epochs, 'epoch')}, "
                + (f"augmented by {t['augment']}" if t["augment"] else f"{self.evaluations} evaluations per epoch"))

    def find_data(self, options):
        """Set the directory of the data; Trouble says how to get it."""
        if self.dataset == "glyphs":
            self.place = make_glyphs(options, self.training)
            return
        asked = options.data_dir
        places = [os.path.join(asked, self.dataset), asked] if asked else [os.path.join(data_cache(), self.dataset)]
        self.place = next((place for place in places if holds(place, FILES[self.dataset])), None)
        if self.place is None:
            raise Trouble(f"{places[0]} does not hold {self.dataset} ({', '.join(FILES[self.dataset])}): get it with "
                          f"`lockstep data get {self.dataset}`, name another place with --data-dir DIR, choose other jobs "
                          "with --only WORD, or compare on generated data with --quick")
        if self.training["augment"]:
            self.place = make_folder(options, self.place, self.dataset)

    def count_samples(self):
        """Training samples that are used."""
        if self.dataset == "sst5":
            with open(os.path.join(self.place, "train.txt"), encoding="utf-8") as f:
                return sum(1 for line in f if line.strip())
        if self.training["augment"]:
            return sum(len(files) for _, _, files in os.walk(os.path.join(self.place, "train")))
        with open(os.path.join(self.place, IMAGES[0]), "rb") as f:
            count = int.from_bytes(f.read(8)[4:], "big")
        return min(count, self.training["samples"] or count)

    def steps_per_epoch(self):
        return -(-self.count_samples() // self.training["batch"])

    def steps(self):
        """The steps after which either side is evaluated; the last of every epoch is among them."""
        per_epoch = self.steps_per_epoch()
        marks = {round(i * per_epoch / self.evaluations) for i in range(1, round(self.epochs * self.evaluations) + 1)}
        return sorted(marks - {0})


# Targets are where every seed arrives well before the last epoch, and where curves are still steep.
JOBS = [
    Job("cnn", "mnist", target=0.98, epochs=2, evaluations=10),
    Job("resnet18", "mnist", target=0.98, epochs=1, evaluations=10, micro_batch=128),
    Job("transformer", "sst5", target=0.36, epochs=2, evaluations=8, lr=3e-4),
    Job("cnn", "fashion-mnist", target=None, epochs=4, evaluations=1, augment="crop:4,flip"),
    Job("resnet18", "fashion-mnist", target=None, epochs=2, evaluations=1, micro_batch=128, augment="crop:4,flip"),
]
QUICK_JOBS = [
    Job("cnn", "glyphs", target=0.85, epochs=3, evaluations=4, batch=32, micro_batch=16, samples=2048, test_samples=1000),
    Job("resnet18", "glyphs", target=0.85, epochs=2, evaluations=6, batch=32, samples=2048, test_samples=500),
]


def make_glyphs(options, training):
    """Generated digits as files for both sides, made once."""
    place = os.path.join(options.out, f"glyphs-{training['samples']}")
    command = [options.lockstep, "data", "make", "glyphs", "--out", place, "--samples", str(training["samples"]), "--seed",
               str(GLYPHS_SEED), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Trouble(f"{' '.join(command)}: {done.stderr.strip()}")
    return place


def make_folder(options, source, name):
    """The images of IDX files as a folder of PNG files for each class, made once."""
    place = os.path.join(options.out, f"{name}-folder")
    if not os.path.isdir(place):
        draft = place + ".part"
        shutil.rmtree(draft, ignore_errors=True)
        command = [sys.executable, os.path.join(HERE, "..", "tests", "cli", "image_folder.py"), source, draft]
        print(f"writing the images of {name} to {place} as PNG files (once) ...", file=sys.stderr)
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise Trouble(f"{' '.join(command)}: {done.stderr.strip()}")
        os.rename(draft, place)
    return place


# ---- either side


def memory_directory():
    """A place in memory for checkpoints, which are written and read at every evaluation; None: the usual place."""
    place = "/dev/shm"
    is_roomy = os.access(place, os.W_OK) and shutil.disk_usage(place).free > MEMORY_BYTES
    return place if is_roomy and not os.environ.get("TMPDIR") else None


class LockstepSide:
    """A process for every stretch between two evaluations, in a run directory that is removed at the end."""

    def __init__(self, job, options):
        self.job, self.options = job, options
        self.settings = job.settings("lockstep", options.wrong)
        self.cpus = set(options.cpus[:options.threads])
        self.per_epoch = job.steps_per_epoch()
        self.rest = job.count_samples() - (self.per_epoch - 1) * self.settings["batch"]  # samples of an epoch's last step

    def command(self, directory, seed, step):
        s, threads = self.settings, self.options.threads
        spread = s["batch"] // s["micro_batch"] >= threads  # a micro-batch for every thread: each is a device
        values = {"model": s["model"], "batch": s["batch"], "micro-batch": s["micro_batch"], "optimizer": s["optimizer"],
                  "lr": s["lr"], "beta1": s["beta1"], "weight-decay": s["weight_decay"], "schedule": "constant",
                  "seed": seed, "devices": threads if spread else 1, "threads": 1 if spread else threads,
                  "log-every": 20, "keep": 1, "run": directory, "steps": step}
        for name in ("samples", "test_samples"):
            if s[name]:
                values[name.replace("_", "-")] = s[name]
        is_path = self.job.dataset == "glyphs" or s["augment"]
        values.update({"data": self.job.place} if is_path else {"data": self.job.dataset, "data-dir": self.job.place})
        if s["augment"]:
            values["augment"] = s["augment"]
        words = [word for name, value in values.items() for word in ("--" + name, str(value))]
        return [self.options.lockstep, "train", "--quiet"] + words

    def stretch(self, directory, seed, step, is_first):
        """Train up to a step and evaluate."""
        command = self.command(directory, seed, step) if is_first else [
            self.options.lockstep, "train", "--quiet", "--run", directory, "--resume", "--steps", str(step)]
        process = Process(command, self.cpus)
        try:
            process.wait(PATIENCE)
            if process.child.returncode != 0:
                raise Trouble(f"{' '.join(command)}: exit status {process.child.returncode}: {process.reason()}")
        finally:
            process.end(0)

    def read(self, directory, since, step):
        """The evaluation after a step, from the records of the run."""
        seconds, test = 0.0, None
        with open(os.path.join(directory, "metrics.jsonl")) as f:
            for line in f:
                record = json.loads(line)
                if record["kind"] == "step" and since < record["step"] <= step:
                    samples = self.rest if record["step"] % self.per_epoch == 0 else self.settings["batch"]
                    seconds += samples / record["samples_per_s"]
                elif record["kind"] == "test" and record["step"] == step:
                    test = record
        if test is None:
            raise Trouble(f"lockstep train recorded no test after step {step} of {self.job.name}")
        return {"step": step, "train_s": seconds, "test_s": test["seconds"], "loss": test["loss"],
                "accuracy": test["accuracy"]}

    def run(self, seed, steps, target):
        """Yields the evaluations of a run with this seed; stops at the target unless it is None."""
        directory = tempfile.mkdtemp(prefix="lockstep-convergence-", dir=memory_directory())
        since = 0
        try:
            for step in steps:
                begin = time.perf_counter()
                self.stretch(os.path.join(directory, "run"), seed, step, since == 0)
                point = self.read(os.path.join(directory, "run"), since, step)
                yield {**point, "wall_s": time.perf_counter() - begin}
                since = step
                if target is not None and point["accuracy"] >= target:
                    return
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def finish(self):
        pass


class TorchSide:
    """One process for all seeds of a job, started when it is first needed."""

    def __init__(self, job, options):
        self.job, self.options, self.process = job, options, None
        self.settings = {**job.settings("torch", options.wrong), "init": options.torch_init}

    def start(self):
        threads = self.options.threads
        env = {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
        env.update(blas_core())
        order = {**self.settings, "data": self.job.place, "threads": threads}
        self.process = Process([self.options.python, WORKER, json.dumps(order)], set(self.options.cpus[:threads]), env,
                               stdin=subprocess.PIPE)
        samples = self.receive()["samples"]
        if samples != self.job.count_samples():
            raise Trouble(f"PyTorch has {samples} samples of {self.job.name}, Lockstep {self.job.count_samples()}")

    def receive(self):
        try:
            return self.process.receive()
        except Trouble as trouble:
            raise Trouble(f"PyTorch at {self.job.name}: {trouble}")

    def run(self, seed, steps, target):
        begin = time.perf_counter()
        if self.process is None:
            self.start()
        self.process.send({"seed": seed, "steps": steps, "target": target})
        while "end" not in (point := self.receive()):
            now = time.perf_counter()
            yield {**point, "wall_s": now - begin}
            begin = now

    def finish(self, seconds=GRACE):
        if self.process is not None:
            self.process.end(seconds)
            self.process = None


MAKERS = {"lockstep": LockstepSide, "torch": TorchSide}


# ---- results that are kept


def digest(paths):
    """What tells one version of some files from another."""
    h = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as f:
            h.update(f.read())
    return h.hexdigest()[:16]


def build_of(options, side):
    if side == "torch":
        return options.torch_version + " " + digest(os.path.join(HERE, name) for name in TORCH_SOURCES)
    beside = os.path.dirname(options.lockstep)
    libraries = sorted(name for name in os.listdir(beside) if name.startswith("liblockstep.so"))
    return digest([options.lockstep] + [os.path.join(beside, name) for name in libraries])


class Kept:
    """Results in a directory, a file for every side and seed of a job, so that a comparison can go on after a stop. One
    of other settings, threads or builds counts for nothing. With `stop` the files hold curves up to the target."""

    def __init__(self, job, side, options, settings, stop):
        wrong = options.wrong if options.wrong and WRONG[options.wrong][0] == side else None
        words = [job.model, job.dataset, side, f"wrong-{wrong}" if wrong else "", "init-default"
                 if side == "torch" and options.torch_init == "default" else "", "stop" if stop else ""]
        self.stem = os.path.join(options.out, "-".join(word for word in words if word))
        self.key = {"settings": settings, "threads": options.threads, "build": build_of(options, side)}

    def path(self, seed):
        return f"{self.stem}-seed{seed}.json"

    def load(self, seed):
        """The points, or None."""
        try:
            with open(self.path(seed)) as f:
                kept = json.load(f)
        except (OSError, json.JSONDecodeError):
            return None
        return kept.get("points") if kept.get("key") == self.key else None

    def store(self, seed, points):
        os.makedirs(os.path.dirname(self.path(seed)), exist_ok=True)
        draft = self.path(seed) + ".part"
        with open(draft, "w") as f:
            json.dump({"key": self.key, "seed": seed, "points": points}, f, indent=1)
        os.replace(draft, self.path(seed))


# ---- a job on both sides


class Progress:
    """Lines on stderr: one per run, and on a terminal the newest evaluation under them."""

    def __init__(self, job):
        self.job, self.is_live = job, sys.stderr.isatty()

    def title(self, side, seed, seeds):
        return f"  {self.job.name}, seed {seed}/{seeds}, {NAMES[side]}"

    def evaluation(self, title, points, steps):
        if self.is_live:
            print(f"\r{title}: {points[-1]['epochs']:.2f} epochs, accuracy {points[-1]['accuracy']:.4f} "
                  f"({len(points)}/{len(steps)})\x1b[K", end="", file=sys.stderr, flush=True)

    def arrival(self, points):
        if not self.job.target:
            return ""
        i = reached(points, self.job.target)
        return f"{self.job.target:g} " + ("never, " if i is None else f"after {points[i]['epochs']:.2f} epochs, ")

    def end(self, title, points, is_kept):
        time_taken = "kept" if is_kept else f"{sum(point['wall_s'] for point in points):.0f} s"
        line = f"{title}: {self.arrival(points)}last {points[-1]['accuracy']:.4f}, {time_taken}"
        print(("\r\x1b[K" if self.is_live else "") + line, file=sys.stderr, flush=True)


def run_seed(side, seed, progress, title, stop):
    """The points of one run."""
    job = side.job
    steps, per_epoch, points = job.steps(), job.steps_per_epoch(), []
    with contextlib.closing(side.run(seed, steps, job.target if stop else None)) as evaluations:
        for point in evaluations:
            points.append({"epochs": point["step"] / per_epoch, **point})
            progress.evaluation(title, points, steps)
    return points


def train(job, options, keep=True, stop=False, first_seed=1):
    """Curves of all seeds: {"lockstep": [points, ...], "torch": [...]}. The sides take turns, in an order that alternates;
    with `stop` a run ends at the target."""
    sides = {side: MAKERS[side](job, options) for side in SIDES}
    kept = {side: Kept(job, side, options, sides[side].settings, stop) for side in SIDES} if keep else {}
    progress, curves = Progress(job), {side: [] for side in SIDES}
    try:
        for seed in range(first_seed, first_seed + options.seeds):
            for side in SIDES if seed % 2 else reversed(SIDES):
                title = progress.title(side, seed, first_seed + options.seeds - 1)
                points = kept[side].load(seed) if keep else None
                is_kept = points is not None
                if not is_kept:
                    points = run_seed(sides[side], seed, progress, title, stop)
                    if keep:
                        kept[side].store(seed, points)
                curves[side].append(points)
                progress.end(title, points, is_kept)
    except BaseException:
        sides["torch"].finish(0)
        raise
    sides["torch"].finish()
    return curves

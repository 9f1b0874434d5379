"""Time to accuracy, for bench/peers --to-accuracy: both sides train with the same seeds until a test accuracy is reached.

The runs are those of bench/convergence, ended at the first evaluation that reaches the target.
"""
import copy
import tempfile

from convergence_jobs import JOBS, NAMES, QUICK_JOBS, SIDES, train
from convergence_stats import middle_mean, reached, seconds_to
from peers_jobs import Trouble
from shared import count, table

EPOCHS = 10  # at most
STYLE = "MLPerf-style, unverified"


def chosen(options):
    """Jobs of the models that were asked for; without --models those on images."""
    jobs = QUICK_JOBS if options.quick else JOBS
    wanted = options.models.split(",") if options.models else [job.model for job in jobs if job.dataset != "sst5"]
    known = [job.model for job in jobs]
    for name in wanted:
        if name not in known:
            raise Trouble(f"no time to accuracy of model {name}; there are {', '.join(known)}")
    return [job for job in jobs if job.model in wanted]


def summarize(curves, target):
    """Every seed of a side: seconds and epochs, None where the target was not reached; and their means."""
    seeds = []
    for number, points in enumerate(curves, 1):
        i = reached(points, target)
        seeds.append({"seed": number, "seconds": seconds_to(points, target),
                      "epochs": None if i is None else points[i]["epochs"],
                      "wall_s": sum(point["wall_s"] for point in points), "curve": points})
    side = {"seeds": seeds, "missed": sum(seed["seconds"] is None for seed in seeds)}
    side.update((name, middle_mean([seed[name] for seed in seeds])) for name in ("seconds", "epochs"))
    return side


def measure(job, options):
    job = copy.copy(job)
    job.target, job.epochs = options.to_accuracy, EPOCHS
    curves = train(job, options, keep=False, stop=True)
    row = {"model": job.name, "target": job.target, "description": job.describe("at most "), "threads": options.threads}
    row.update((side, summarize(curves[side], job.target)) for side in SIDES)
    ours, theirs = (row[side]["seconds"] for side in SIDES)
    row["ratio"] = theirs / ours if ours and theirs else None
    row["ok"] = all(row[side]["missed"] <= (1 if options.seeds > 2 else 0) for side in SIDES)
    return row


def time_to_accuracy(options, facts):
    """Rows of all jobs. `facts` are those of the first PyTorch."""
    options.threads = max(options.threads)
    if options.threads > len(options.cpus):
        raise Trouble(f"{options.threads} threads: this process may use {len(options.cpus)} CPUs")
    options.python, options.torch_version = facts["python"], facts["torch"]
    options.wrong, options.torch_init = None, "lockstep"
    jobs, rows = chosen(options), []
    with tempfile.TemporaryDirectory(prefix="lockstep-peers-") as options.out:
        for job in jobs:
            job.find_data(options)
        for job in jobs:
            rows.append(measure(job, options))
    return rows


def cells(missing, *sides):
    return [missing if value is None else f"{value:.{digits}f}" for side in sides
            for value, digits in ((side["seconds"], 1), (side["epochs"], 2))]


def verdict(row):
    """Why there is a ratio, or none."""
    seeds = len(row["lockstep"]["seeds"])
    missed = [f"{NAMES[side]} {row[side]['missed']} of {seeds}" for side in SIDES if row[side]["missed"]]
    if row["ratio"]:
        text = (f"{STYLE}: means of {seeds} seeds without the fastest and the slowest; "
                f"Lockstep is {row['ratio']:.2f}x as fast")
    else:
        text = "no mean: it needs three seeds on each side, of which one at most does not reach the target"
    return text + (f"\nseeds that did not reach the target within {EPOCHS} epochs: {', '.join(missed)}" if missed else "")


def print_accuracy(row):
    print(f"\ntime to accuracy {row['target']:g}: {row['model']}, {count(row['threads'], 'thread')}; "
          f"{row['description']}\n")
    rows = [["seed"] + [f"{NAMES[side]} {what}" for side in SIDES for what in ("s", "epochs")]]
    rows += [[str(pair[0]["seed"])] + cells("never", *pair) for pair in zip(*(row[side]["seeds"] for side in SIDES))]
    print(table(rows + [["mean"] + cells("-", *(row[side] for side in SIDES))]))
    print("\n" + verdict(row))

"""Which faults tools/chaos knows, what became of each in a run, and whether that is within the limits."""
import collections
import re
import statistics

from chaos_lab import last_step

# name, weight, whether only silence shows it
FAULTS = [("kill -9 of a node", 4, False), ("SIGSTOP for 3 s", 2, True), ("SIGSTOP for good", 2, True),
          ("cut for 5 s", 2, True), ("cut for good", 1, True), ("kill of all on a host", 2, False),
          ("host back", 3, False), ("host added", 2, False), ("host removed", 1, False)]
SILENT = {name for name, _, silent in FAULTS if silent}
DISRUPTIVE = SILENT | {"kill -9 of a node", "kill of all on a host"}
OUTCOMES = ("recovered", "overtaken", "no restart", "late", "never")
IN_FLIGHT = 1.0  # seconds after a fault in which a step may still be printed that was complete before


def allowed(kind, options):
    """Seconds from a fault to the first step that are accepted at most: nobody can know of a silence before --timeout."""
    return options.worst + (options.timeout if kind in SILENT else 0)


def outcomes(events, job, options):
    """[(kind, what became of it, seconds)] of each fault: "recovered" by a restart, in these seconds to its first step; "overtaken" by
    another event, while a recovery could still come in time; "no restart": training went on, as after a silence below --timeout.
    Failures (judge_outcomes) are "late": no step came in these seconds, which are more than a recovery may take, until another event
    came or training went on by itself; and "never": no step came any more, and no other event."""
    found = []
    goes = [at for at, _ in job.seen(r"Elastic: continuing")]
    steps = [at for at, _ in job.seen(r"Step\d+:")]
    for i, (at, kind, _) in enumerate(events):
        if kind not in DISRUPTIVE:
            continue
        until = events[i + 1][0] if i + 1 < len(events) else float("inf")
        on = next((g for g in goes if at < g < until), None)
        first = next((s for s in steps if s > (on or at + IN_FLIGHT)), float("inf"))
        waited = min(first, until) - at
        if first < until and on:
            found.append((kind, "recovered", waited))  # judge_times has its limits
        elif waited == float("inf"):
            found.append((kind, "never", 0.0))
        elif waited > allowed(kind, options):
            found.append((kind, "late", waited))
        else:
            found.append((kind, "no restart", waited) if first < until else (kind, "overtaken", 0.0))
    return found


def is_whole(ring, hosts):
    """Whether a snapshot of the nodes on `ring` is whole among these hosts: each node has a copy of the state of the one before it."""
    return all(ring[i] in hosts or ring[(i + 1) % len(ring)] in hosts for i in range(len(ring)))


def starts_by_source(lines, steps, every):
    """(Counter of where starts had their state from, what is wrong with them), by the lines of metrics.jsonl, [(time, number)] of the steps
    that were printed, and how often snapshots are taken. A start after a loss goes on from memory when hosts with a whole snapshot take part
    and it is newer than what is on disk. A snapshot is on all nodes when the step after it is done; a stop on request removes it."""
    counted, wrong, newest, outcome = collections.Counter(), [], None, None  # newest: (step, hosts of the start that took it)
    starts = [line["time"] for line in lines if line["kind"] == "start"]
    for line in lines:
        if line["kind"] == "stop":
            outcome = line["outcome"]
            newest = newest if outcome in ("lost", "unstarted") else None
        if line["kind"] != "start":
            continue
        hosts, step = [word.split(":")[0] for word in line["hosts"].split(",")], line["step"]
        counted[line["source"] + (" after a loss" if outcome in ("lost", "unstarted") else "")] += 1
        if newest and line["source"] != "snapshot" and newest[0] > step and is_whole(newest[1], hosts):
            wrong.append(f"start {line['generation']:g} on {','.join(hosts)} went on from step {step} ({line['source']}), and "
                         f"{','.join(newest[1])} had a snapshot of step {newest[0]} in memory")
        outcome = None
        end = next((at for at in starts if at > line["time"]), float("inf"))
        done = [number for at, number in steps if line["time"] < at < end]
        taken = (done[-1] - 1) // every * every if done else 0
        if taken > step:
            newest = (taken, hosts)
    return counted, wrong


PHASES = ("start-up", "training", "snapshot", "checkpoint", "evaluation", "restart")


def phase_hit(lines, drafts, snapshot_every=0, eval_every=0):
    """What a run was doing when metrics.jsonl had these lines and RUN/ckpt these unfinished checkpoints. The line of a step is written
    before the snapshot and the evaluation that follow it, and theirs when they are done. Without snapshot_every the run decides."""
    at = max((i for i, line in enumerate(lines) if line["kind"] == "start"), default=None)
    if at is None:
        return "start-up"
    since = {kind: [line for line in lines[at:] if line["kind"] == kind] for kind in ("start", "step", "snapshot", "test", "stop")}
    if since["stop"]:
        return "restart"
    if drafts:
        return "checkpoint"
    if not since["step"]:
        return "training"
    done, taken = since["step"][-1]["step"], since["snapshot"]
    due = taken[-1]["step"] + taken[-1]["every"] if taken else since["start"][0]["step"] + 2
    if snapshot_every:
        due = done // snapshot_every * snapshot_every
    if done == due and not (taken and taken[-1]["step"] == done):
        return "snapshot"
    is_tested = any(line["step"] == done for line in since["test"])
    return "evaluation" if eval_every and done % eval_every == 0 and not is_tested else "training"


def phase_table(pairs):
    """[(phase that a fault was meant for, phase that it hit)]: a row per phase meant, a column per phase hit."""
    print(f"\n{'meant for':12} {'faults':>6}   hit " + " ".join(f"{hit:>10}" for hit in PHASES))
    for phase in PHASES:
        hits = [hit for meant, hit in pairs if meant == phase]
        print(f"{phase:12} {len(hits):6}       " + " ".join(f"{hits.count(hit):>10}" for hit in PHASES))
    print(f"{'all':12} {len(pairs):6}       " + " ".join(f"{sum(hit == h for _, h in pairs):>10}" for hit in PHASES))


def recoveries(found):
    return [(kind, seconds) for kind, what, seconds in found if what == "recovered"]


def overlap(begin, end, spans):
    covered, at = 0.0, begin
    for a, b in sorted(spans):
        a, b = max(a, at), min(b, end)
        if b > a:
            covered += b - a
            at = b
    return covered


def work_kept(chaos, job, begin, end):
    """(share, text): see `work` at the head."""
    steps = [at for at, _ in job.seen(r"Step\d+:")]
    starts = [(at, len(line.split(": ")[-1].split(","))) for at, line in job.seen(r"Elastic: (starting|continuing)")]
    marks = sorted([e[0] for e in chaos.events] + [at for at, _ in starts[1:]] + [end])
    count, seconds = collections.Counter(), collections.Counter()
    for at, nodes in starts:  # from its first step to the next event
        first = next((s for s in steps if s > at), None)
        until = next((m for m in marks if m > at), end)
        if first and first < until:
            inside = [s for s in steps if first < s <= until]
            count[nodes] += len(inside)
            seconds[nodes] += until - first
    rate = {n: count[n] / seconds[n] for n in count if seconds[n] > 0 and count[n] > 0}
    if not rate:
        return 0, "no rate could be measured"
    possible = 0.0
    lives = [(begin, chaos.lives[0][1])] + [l for l in chaos.lives if begin < l[0] < end] + [(end, 0)]
    for (at, n), (until, _) in zip(lives, lives[1:]):
        r = rate.get(n) or rate[min(rate, key=lambda m: abs(m - n))]
        possible += r * (until - at - overlap(at, until, chaos.quiet))
    committed = last_step(job) or 0
    text = ", ".join(f"{n} nodes {r:.1f}/s" for n, r in sorted(rate.items()))
    return committed / possible, f"{committed} of {possible:.0f} steps; {text}"


def times_of(found):
    """{"kill": [...], "silence": [...]}: seconds from each fault that a restart followed to the first new step."""
    times = {"kill": [], "silence": []}
    for kind, seconds in recoveries(found):
        times["silence" if kind in SILENT else "kill"].append((kind, seconds))
    return times


def judge_times(found, options):
    """Recovery after kills and after silence apart: nobody can know of a silence before --timeout, which is subtracted there."""
    wrong = []
    for group, measured in times_of(found).items():
        own = [seconds - (options.timeout if group == "silence" else 0) for _, seconds in measured]
        less = f", without the {options.timeout} s of --timeout" if group == "silence" else ""
        if own and statistics.median(own) > options.median:
            wrong.append(f"recovery from {group}: {statistics.median(own):.2f} s in the median{less}, more than {options.median:g} s")
        wrong += [f"recovery: {o:.2f} s after {kind}{less}, more than {options.worst:g} s"
                  for (kind, _), o in zip(measured, own) if o > options.worst]
    return wrong


def judge_outcomes(found, options):
    wrong = [f"no step came after a {kind}, and nothing else happened" for kind, what, _ in found if what == "never"]
    return wrong + [f"no step came in the {seconds:.2f} s after a {kind}, more than {allowed(kind, options):g} s"
                    for kind, what, seconds in found if what == "late"]


def fault_table(events, found):
    """A row per kind: how many there were, what became of them, and times of recovery. Events that are no faults have a number only."""
    print(f"\n{'event':24} {'number':>6} " + " ".join(f"{what:>10}" for what in OUTCOMES) + f" {'recovery, median':>17} {'worst':>8}")
    for kind, _, _ in FAULTS:
        times = [s for k, s in recoveries(found) if k == kind]
        shown = (f"{statistics.median(times):.2f} s", f"{max(times):.2f} s") if times else ("", "")
        counts = [sum((k, w) == (kind, what) for k, w, _ in found) if kind in DISRUPTIVE else "" for what in OUTCOMES]
        print(f"{kind:24} {sum(e[1] == kind for e in events):6} " + " ".join(f"{count:>10}" for count in counts) +
              f" {shown[0]:>17} {shown[1]:>8}")


def time_rows(found, timeout):
    """[(name, text)] for the summary."""
    rows = []
    for group, name, less in (("kill", "recovery from kills", 0), ("silence", "recovery from silence", timeout)):
        own = [seconds - less for _, seconds in times_of(found)[group]]
        text = f"median {statistics.median(own):.2f} s, worst {max(own):.2f} s, of {len(own)}" if own else "none"
        rows.append((name, text + (f"; without the first {timeout} s (--timeout)" if less and own else "")))
    return rows

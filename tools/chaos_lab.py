"""The emulated cluster, the job and the checks of tools/chaos and tools/kill-all.

A job is `lockstep train` on hosts of tools/lab. A check returns what is wrong, as a list of sentences.
"""
import collections
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SAMPLES, BATCH = 330, 64
HEAD = "a"  # where the supervisor runs
# Small and deterministic: what is tested is the supervisor. Adam has state, so that shards matter.
MODEL = ["--model", "mlp", "--data", "glyphs", "--samples", str(SAMPLES), "--test-samples", "100", "--batch", str(BATCH),
         "--micro-batch", "8", "--schedule", "constant", "--optimizer", "adam", "--lr", "0.001", "--log-every", "1"]


def fail(text):
    print(f"{os.path.basename(sys.argv[0])}: {text}", file=sys.stderr)
    sys.exit(1)


# ---- the lab --------------------------------------------------------------------------------------------------------

class Lab:
    """Hosts of tools/lab; a with statement removes them."""

    def __init__(self, hosts, rate):
        self.name = f"{os.path.basename(sys.argv[0])}-{os.getpid()}"
        self.hosts = [chr(ord("a") + i) for i in range(hosts)]
        self.rate = rate
        self.environment = dict(os.environ, LOCKSTEP_LAB=self.name)

    def call(self, *words, check=True):
        result = subprocess.run([SOURCE + "/tools/lab", *words], env=self.environment, capture_output=True, text=True)
        if check and result.returncode:
            fail(f"tools/lab {' '.join(words)}: {result.stderr.strip()}")
        return result.stdout

    def __enter__(self):
        reason = subprocess.run([SOURCE + "/tools/lab", "check"], capture_output=True, text=True)
        if reason.returncode:
            fail(reason.stderr.strip())
        self.call("up", str(len(self.hosts)), "--rate", self.rate)
        self.memory = {host: self.call("shm", host).strip() for host in self.hosts}  # /dev/shm of each
        return self

    def __exit__(self, *_):
        self.call("down", check=False)

    def processes(self, host):
        text = subprocess.run(["ip", "netns", "pids", f"lockstep-lab.{self.name}.{host}"], capture_output=True, text=True)
        return [int(pid) for pid in text.stdout.split()]

    def node(self, host):
        """The training process there, or None. Guards (src/cluster/node.c) lead a session of their own."""
        for pid in self.processes(host):
            try:
                words = open(f"/proc/{pid}/cmdline", "rb").read().split(b"\0")
                is_node = b"OMPI_COMM_WORLD_RANK=" in open(f"/proc/{pid}/environ", "rb").read()
                if len(words) > 1 and words[1] == b"train" and is_node and os.getsid(pid) != pid:
                    return pid
            except OSError:
                pass  # it has ended
        return None

    def kill(self, pid, number=signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    def namespaces(self):
        return [n for n in subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout.split()
                if n.startswith(f"lockstep-lab.{self.name}")]


# ---- a run ----------------------------------------------------------------------------------------------------------

class Job:
    """`lockstep train --elastic` on host a; what it prints, with the time of each line."""

    def __init__(self, lab, lockstep, directory, options):
        self.lab, self.directory = lab, directory
        self.run = directory + "/run"
        self.samples, self.tmp = directory + "/samples", directory + "/tmp"
        for path in (self.samples, self.tmp):
            os.makedirs(path, exist_ok=True)
        self.lines, self.lock, self.known = [], threading.Lock(), None
        self.errors = open(directory + "/errors", "a")
        environment = dict(lab.environment, LOCKSTEP_SAMPLE_LOG=self.samples, TMPDIR=self.tmp, LSAN_OPTIONS="detect_leaks=0",
                           LOCKSTEP_DATA=directory + "/data", XDG_RUNTIME_DIR=os.environ.get("XDG_RUNTIME_DIR", "/tmp"))
        self.process = subprocess.Popen([SOURCE + "/tools/lab", "run", lockstep, "train", "--elastic", "--run", self.run,
                                         *MODEL, *options], env=environment, stdout=subprocess.PIPE, stderr=self.errors,
                                        text=True, cwd=directory, start_new_session=True,
                                        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # ignored behind `&`
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        with open(self.directory + "/output", "a") as copy:
            for line in self.process.stdout:
                now = time.time()
                copy.write(f"{now:.3f} {line}")
                copy.flush()
                with self.lock:
                    self.lines.append((now, line.rstrip("\n")))
                if line.startswith("Step") and not self.known:
                    self.known = self.number()  # the file goes with the end of the run

    def seen(self, pattern, since=0.0):
        with self.lock:
            return [(at, line) for at, line in self.lines if at >= since and re.match(pattern, line)]

    def wait_for(self, pattern, seconds, since=0.0):
        end = time.time() + seconds
        while time.time() < end:
            found = self.seen(pattern, since)
            if found:
                return found[0][0]
            if self.process.poll() is not None:
                return None
            time.sleep(0.02)
        return None

    def launcher(self):
        """What a user would send a signal to: the oldest lockstep on host a."""
        for pid in sorted(self.lab.processes(HEAD)):
            with contextlib.suppress(OSError):
                words = open(f"/proc/{pid}/cmdline", "rb").read().split(b"\0")
                if len(words) > 1 and words[1] == b"train" and words[0].endswith(b"lockstep"):
                    return pid
        return None

    def stop(self):
        pid = self.launcher()
        if pid:
            self.lab.kill(pid, signal.SIGINT)

    def wait(self, seconds):
        """Its status; None: it hangs, and was ended."""
        try:
            status = self.process.wait(seconds)
            self.reader.join(5)
            return status
        except subprocess.TimeoutExpired:
            for host in self.lab.hosts:
                for pid in self.lab.processes(host):
                    self.lab.kill(pid)
            self.process.wait()
            return None
        finally:
            self.errors.flush()

    def fingerprint(self):
        found = self.seen(r"parameters xxh64 ")
        return found[-1][1].split()[-1] if found else None

    def trained(self):
        """Hosts of its last start."""
        starts = self.seen(r"Elastic: (starting|continuing)")
        return [word.split(":")[0] for word in starts[-1][1].split(": ")[-1].split(",")] if starts else []

    def number(self):
        """That its snapshots in memory have in their names."""
        with contextlib.suppress(OSError):
            return open(self.run + "/.snapshots").read().split()[0]
        return None


def metrics(run):
    return [json.loads(line) for line in open(run + "/metrics.jsonl")]


def metrics_so_far(run):
    """Of a run that is under way: the last line may be torn."""
    with contextlib.suppress(OSError):
        text = open(run + "/metrics.jsonl").read()
        return [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]
    return []


def drafts(run):
    """Checkpoints that are being written."""
    with contextlib.suppress(OSError):
        return [name for name in os.listdir(run + "/ckpt") if not name.startswith("step-")]
    return []


def undisturbed(lockstep, directory, steps, options):
    """Fingerprint, and the files of its run directory, of a run on one device."""
    result = subprocess.run([lockstep, "train", *MODEL, "--devices", "1", "--steps", str(steps), "--run", directory + "/whole",
                             *options], capture_output=True, text=True, env=dict(os.environ, LOCKSTEP_DATA=directory + "/data"))
    found = re.findall(r"^parameters xxh64 (\w+)$", result.stdout, re.M)
    if result.returncode or not found:
        fail(f"the undisturbed run failed: {result.stderr}")
    return found[-1]


def printed_steps(job):
    """[(time, number)]"""
    return [(at, int(re.match(r"Step(\d+)", line)[1])) for at, line in job.seen(r"Step\d+:")]


def last_step(job):
    steps = printed_steps(job)
    return steps[-1][1] if steps else None


# ---- checks: each returns what is wrong, as a list of sentences -----------------------------------------------------

def read_samples(directory):
    """{start: {step of the run: [sample, ...]}}; a last line that a kill has torn belongs to a step that does not count."""
    per_epoch = (SAMPLES + BATCH - 1) // BATCH
    starts = collections.defaultdict(lambda: collections.defaultdict(list))
    for name in os.listdir(directory):
        start = int(name.split("-")[1])
        for line in open(f"{directory}/{name}"):
            if not line.endswith("\n"):
                continue
            epoch, step, _, *samples = map(int, line.split())
            starts[start][epoch * per_epoch + step] += samples
    return starts


def check_samples(directory, steps):
    """Of each step the last start that began at or before it counts: later ones went on from its result."""
    starts, wrong = read_samples(directory), []
    first = {start: min(of) for start, of in starts.items()}
    per_epoch = (SAMPLES + BATCH - 1) // BATCH
    used = collections.Counter()
    for step in range(steps):
        counts = max((s for s in first if first[s] <= step), default=None)
        samples = starts[counts].get(step, []) if counts is not None else []
        expected = min(BATCH, SAMPLES - step % per_epoch * BATCH)
        if len(samples) != expected:
            wrong.append(f"step {step} of start {counts} used {len(samples)} samples, not {expected}")
        used.update(samples)
        if (step + 1) % per_epoch == 0:
            lost = [s for s in range(SAMPLES) if used[s] == 0]
            twice = [s for s in used if used[s] > 1]
            if lost or twice or len(used) != SAMPLES:
                wrong.append(f"epoch {step // per_epoch}: samples lost {lost[:5]}, repeated {twice[:5]}")
            used.clear()
    if any(n > 1 for n in used.values()):
        wrong.append("the last epoch repeats samples")
    return wrong


def steps_computed(directory):
    return sum(len(of) for of in read_samples(directory).values())


def snapshots_kept(lab, job, number):
    """Files HOST/NAME of this run on hosts that were lost and not started on again: they stay there until then."""
    return [f"{host}/{name}" for host in sorted(set(lab.hosts) - {HEAD, *job.trained()}) for name in os.listdir(lab.memory[host])
            if name.startswith("lockstep-") and f"-{number}-" in name]


def check_memory(lab, job):
    """Hosts of the last start have removed their snapshots, and those of earlier runs that are over."""
    return [f"{host}: /dev/shm/{name} is left" for host in (HEAD, *job.trained()) for name in os.listdir(lab.memory[host])]


def check_clean(lab, job, number):
    wrong, end = [], time.time() + 30
    while any(lab.processes(h) for h in lab.hosts) and time.time() < end:
        time.sleep(0.1)
    for host in lab.hosts:
        for pid in lab.processes(host):
            with contextlib.suppress(OSError):
                wrong.append(f"process {pid} is left on {host}: " + open(f"/proc/{pid}/cmdline").read().replace("\0", " ")[:80])
    if number:
        wrong += check_memory(lab, job)
    else:
        wrong.append("the run never had a number of its snapshots")
    wrong += [f"TMPDIR/{name} is left" for name in os.listdir(job.tmp)]
    whole = job.directory + "/whole"
    known = set(os.listdir(whole)) | {"metrics.jsonl", ".generation"}
    wrong += [f"RUN/{name} is left" for name in sorted(set(os.listdir(job.run)) - known)
              if not name.startswith('events.out.tfevents.')]  # of every start
    wrong += [f"RUN/ckpt/{name} is left" for name in os.listdir(job.run + "/ckpt") if not name.startswith("step-")]
    return wrong


def check_bits(job, fingerprint):
    """The end, and every checkpoint that both runs have recorded."""
    wrong = []
    if job.fingerprint() != fingerprint:
        wrong.append(f"fingerprint {job.fingerprint()}, undisturbed {fingerprint}")
    whole = {l["step"]: l["fingerprint"] for l in metrics(job.directory + "/whole") if l["kind"] == "checkpoint"}
    compared = 0
    for line in metrics(job.run):
        if line["kind"] == "checkpoint" and line["step"] in whole:
            compared += 1
            if line["fingerprint"] != whole[line["step"]]:
                wrong.append(f"the checkpoint of step {line['step']} has other bits")
    if not compared:
        wrong.append("no checkpoint of both runs could be compared")
    return wrong, compared


def remove_snapshots(directory):
    """Those of runs in this directory on this machine: of a tool that was stopped; what a complete run leaves was found before. A lab
    takes its hosts' along."""
    for name in os.listdir("/dev/shm"):
        with contextlib.suppress(OSError):
            if name.startswith("lockstep-") and directory.encode() in open("/dev/shm/" + name, "rb").read(8192):
                os.unlink("/dev/shm/" + name)

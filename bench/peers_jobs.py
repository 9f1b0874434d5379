"""The sides of bench/peers: processes that train a few steps per turn, pinned and measured in the same way.

A job has `rates` (samples per second, one per timed turn) and `peak` (bytes, once it has ended). PyTorch's and JAX's processes
live as long as their point and are blocked between turns; Lockstep starts a new process every turn. A process that does not
answer within PATIENCE is killed, and the comparison ends.
"""
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
WORKER = os.path.join(HERE, "peers_torch.py")
JAX_WORKER = os.path.join(HERE, "peers_jax.py")
PATIENCE = 600  # seconds per turn; a slow machine takes about ten
GRACE = 20  # seconds to end by itself


def blas_core():
    """The CPU type for OpenBLAS, which uses its slowest kernels on CPUs that are newer than itself."""
    try:
        with open("/proc/cpuinfo") as f:
            flags = next((line for line in f if line.startswith("flags")), "")
    except OSError:
        return {}
    core = "SkylakeX" if " avx512f" in flags else "Haswell" if " avx2" in flags else None
    return {"OPENBLAS_CORETYPE": os.environ.get("OPENBLAS_CORETYPE", core)} if core else {}


class Trouble(Exception):
    """An error that ends the comparison; its text is the reason."""


class Process:
    """A child process on `cpus`; the kernel reports its peak memory when it has ended."""

    def __init__(self, command, cpus, env=None, stdin=None, cwd=None):
        self.errors = tempfile.TemporaryFile()
        self.child = subprocess.Popen(
            command, stdin=stdin, stdout=subprocess.PIPE, stderr=self.errors, text=True, bufsize=1, cwd=cwd,
            env={**os.environ, **(env or {})}, preexec_fn=lambda: os.sched_setaffinity(0, cpus))
        self.output, self.pending = "", b""  # at its end; lines that were not asked for yet

    def reason(self):
        """Its last message or, where there is none, the signal that killed it."""
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        code = self.child.returncode
        silent = f"killed by {signal.Signals(-code).name}" if code is not None and code < 0 else "no message"
        return lines[-1] if lines else silent

    def send(self, order):
        try:
            self.child.stdin.write(json.dumps(order) + "\n")
            self.child.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended; receive() finds out why

    def line(self):
        """The next line of its output; Trouble when it has ended or does not answer."""
        output = self.child.stdout.fileno()  # not by lines: select() does not see what a file object has read ahead
        while b"\n" not in self.pending:
            if not select.select([output], [], [], PATIENCE)[0]:
                raise Trouble(f"no answer for {PATIENCE} s")
            data = os.read(output, 65536)
            if not data:
                self.wait(GRACE)
                raise Trouble(f"ended: {self.reason()}")
            self.pending += data
        line, _, self.pending = self.pending.partition(b"\n")
        return line.decode(errors="replace")

    def receive(self):
        return json.loads(self.line())

    def wait(self, seconds):
        """Wait for its end; kill it after `seconds`. Returns peak bytes."""
        # Not Popen.kill: it may collect the child, and with it the memory's peak.
        timer = threading.Timer(seconds, os.kill, (self.child.pid, signal.SIGKILL))
        timer.start()
        try:
            self.output = self.child.stdout.read()  # what is left, so that the child can end
            os.waitid(os.P_PID, self.child.pid, os.WEXITED | os.WNOWAIT)
        finally:
            timer.cancel()
            timer.join()  # the process id stays the child's until nobody may use it
        _, status, usage = os.wait4(self.child.pid, 0)
        self.child.returncode = os.waitstatus_to_exitcode(status)
        return usage.ru_maxrss * 1024

    def close_input(self):
        """Close its input, so that it ends."""
        try:
            if self.child.stdin:
                self.child.stdin.close()
        except BrokenPipeError:
            pass  # it has ended already

    def end(self, seconds=GRACE):
        """End the process. Returns peak bytes, 0 when it had ended before."""
        self.close_input()
        peak = self.wait(seconds) if self.child.returncode is None else 0
        self.child.stdout.close()
        self.errors.close()
        return peak


class Torch:
    """One PyTorch to compare with: an interpreter and how it computes, some of "channels-last", "compiled" and "bf16".
    Requirements refer to the first version (`is_required`)."""

    SHORT = {"channels-last": "cl"}  # in the headings of tables
    worker, is_torch, has_ranks = WORKER, True, True

    def __init__(self, name, facts, modes=(), is_required=True):
        self.python, self.facts, self.modes, self.is_required = facts["python"], facts, tuple(modes), is_required
        self.version = facts.get("torch")
        self.label = " ".join([name] + [self.SHORT.get(mode, mode) for mode in modes])

    def suits(self, point):
        """Layouts are of images."""
        return not ("channels-last" in self.modes and point.tokens)

    def is_bf16(self):
        return "bf16" in self.modes

    def start(self, point, threads, options):
        """One process with its threads."""
        return WorkerJob(self, point, threads, [set(options.cpus[:threads])], options)

    def start_ranks(self, point, cpus, options):
        """DistributedDataParallel: a process with one thread for every CPU."""
        return WorkerJob(self, point, 1, [{cpu} for cpu in cpus], options)


class Jax(Torch):
    """JAX, compiled by XLA: the models that bench/peers_jax.py has, in one process, sentences all of one length."""

    MODELS = ("bert-base", "cnn", "gpt2", "transformer")
    worker, is_torch, has_ranks = JAX_WORKER, False, False

    def __init__(self, facts, modes=()):
        super().__init__("jax", facts, modes)
        self.version = "jax " + facts["jax"]

    def suits(self, point):
        return point.model in self.MODELS and isinstance(point.tokens, int)


class WorkerJob:
    """PyTorch or JAX at one point: a process, or ranks that exchange gradients, each on its set of CPUs."""

    def __init__(self, torch, point, threads, places, options):
        self.torch, self.point, self.options = torch, point, options
        self.rates, self.peak, self.processes = [], 0, []
        self.directory = tempfile.mkdtemp(prefix="lockstep-peers-")
        try:
            for rank, cpus in enumerate(places):
                self.processes.append(self.start(rank, len(places), threads, cpus))
            self.parameters = self.receive()[0]["parameters"]
        except BaseException:
            self.finish(0)
            raise

    def start(self, rank, world, threads, cpus):
        command = [self.torch.python, self.torch.worker, "--model", self.point.model, "--batch", str(self.point.batch),
                   "--threads", str(threads)] + self.point.torch_options(self.options)
        command += ["--" + mode for mode in self.torch.modes]
        if world > 1:
            command += ["--world", str(world), "--rank", str(rank), "--rendezvous",
                        os.path.join(self.directory, "rendezvous")]
        env = {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
        env.update(blas_core(), TORCHINDUCTOR_CACHE_DIR=os.path.join(self.directory, "compiled"))
        return Process(command, cpus, env, stdin=subprocess.PIPE)

    def receive(self):
        answers = []
        for rank, process in enumerate(self.processes):
            try:
                answers.append(process.receive())
            except Trouble as trouble:
                who = self.torch.label + (f" rank {rank}" if len(self.processes) > 1 else "")
                raise Trouble(f"{who} at {self.point.model}: {trouble}")
        return answers

    def turn(self, warmup, steps):
        for process in self.processes:
            process.send({"warmup": warmup, "steps": steps})
        seconds = max(sum(answer["seconds"]) for answer in self.receive())
        if steps:
            self.rates.append(len(self.processes) * self.point.batch * steps / seconds)

    def finish(self, seconds=GRACE):
        """End the processes. Peak memory is that of all ranks; shared libraries are counted for each."""
        for process in self.processes:  # ranks end together
            process.close_input()
        self.peak = sum(process.end(seconds) for process in self.processes)
        shutil.rmtree(self.directory, ignore_errors=True)


class LockstepJob:
    """A fresh `lockstep bench` for every turn, on as many CPUs as it has devices and threads."""

    def __init__(self, options, point, devices, threads, cpus, precision="fp32"):
        self.options, self.point, self.devices, self.threads = options, point, devices, threads
        self.precision = precision
        self.cpus = set(cpus[:devices * threads])
        self.rates, self.peak, self.last = [], 0, {}

    def turn(self, warmup, steps):
        numbers = {"batch-per-device": self.point.batch, "devices": self.devices, "threads": self.threads, "warmup": warmup,
                   "steps": steps, "repeat": 1}
        command = [self.options.lockstep, "bench", "--model", self.point.model, "--json"]
        command += self.point.lockstep_options(self.options)
        command += ["--precision", self.precision] if self.precision != "fp32" else []  # earlier versions have no such option
        for name, value in numbers.items():
            command += ["--" + name, str(value)]
        process = Process(command, self.cpus)
        try:
            self.peak = max(self.peak, process.wait(PATIENCE))
            if process.child.returncode != 0:
                raise Trouble(f"{' '.join(command)}: exit status {process.child.returncode}: {process.reason()}")
            self.last = json.loads(process.output)
            self.rates.append(self.last["samples_per_s"])
        except (json.JSONDecodeError, KeyError) as error:
            raise Trouble(f"{' '.join(command)}: not the JSON expected ({error!r}): {process.output[:200]!r}")
        finally:
            process.end(0)

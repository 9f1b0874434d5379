"""The sides of bench/peers: processes that train a few steps when it is their turn, pinned and measured alike.

A job has `rates` (samples a second, one for every turn that counts) and `peak` (bytes, once it has ended). PyTorch's
processes live as long as their point and are blocked between turns; Lockstep's is a new one every turn. Nothing waits
for ever: who does not answer within PATIENCE is ended, and the comparison with it.
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
PATIENCE = 600  # seconds, for one turn; a slow machine takes some ten
GRACE = 20  # seconds, to end when told to


def blas_core():
    """What OpenBLAS should take this processor for. It does not know those that are newer than itself, and then takes
    the slowest kernels it has."""
    try:
        with open("/proc/cpuinfo") as f:
            flags = next((line for line in f if line.startswith("flags")), "")
    except OSError:
        return {}
    core = "SkylakeX" if " avx512f" in flags else "Haswell" if " avx2" in flags else None
    return {"OPENBLAS_CORETYPE": os.environ.get("OPENBLAS_CORETYPE", core)} if core else {}


class Trouble(Exception):
    """Something that ends the comparison, with a reason for people."""


class Process:
    """A child on `cpus`; its peak memory is what the kernel says when it has ended."""

    def __init__(self, command, cpus, env=None, stdin=None):
        self.errors = tempfile.TemporaryFile()
        self.child = subprocess.Popen(
            command, stdin=stdin, stdout=subprocess.PIPE, stderr=self.errors, text=True, bufsize=1,
            env={**os.environ, **(env or {})}, preexec_fn=lambda: os.sched_setaffinity(0, cpus))
        self.output = ""

    def reason(self):
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "no message"

    def tell(self, order):
        try:
            self.child.stdin.write(json.dumps(order) + "\n")
            self.child.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended; hear() finds out why

    def hear(self):
        """The next line of its output; Trouble when it has ended or does not answer."""
        if not select.select([self.child.stdout], [], [], PATIENCE)[0]:
            raise Trouble(f"no answer for {PATIENCE} s")
        line = self.child.stdout.readline()
        if not line:
            self.wait(GRACE)
            raise Trouble(f"ended: {self.reason()}")
        return json.loads(line)

    def wait(self, seconds):
        """Its end, which comes by force when the time is over. Returns peak bytes."""
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

    def dismiss(self):
        """Tell it, by the end of its input, that there is nothing more to do."""
        try:
            if self.child.stdin:
                self.child.stdin.close()
        except BrokenPipeError:
            pass  # it has ended already

    def end(self, seconds=GRACE):
        """See to it that it ends. Returns peak bytes, 0 when it had ended before."""
        self.dismiss()
        peak = self.wait(seconds) if self.child.returncode is None else 0
        self.child.stdout.close()
        self.errors.close()
        return peak


class Torch:
    """One PyTorch to compare with: an interpreter and a memory layout."""

    def __init__(self, label, python, channels_last=False, facts=None):
        self.label, self.python, self.channels_last, self.facts = label, python, channels_last, facts

    def start(self, point, threads, options):
        """One process with its threads."""
        return TorchJob(self, point, threads, [set(options.cpus[:threads])], options)

    def start_ranks(self, point, cpus, options):
        """DistributedDataParallel: a process with one thread for every CPU."""
        return TorchJob(self, point, 1, [{cpu} for cpu in cpus], options)


class TorchJob:
    """PyTorch at one point: a process, or ranks that exchange gradients, each on its set of CPUs."""

    def __init__(self, torch, point, threads, places, options):
        self.torch, self.point, self.options = torch, point, options
        self.rates, self.peak, self.processes = [], 0, []
        self.directory = tempfile.mkdtemp(prefix="lockstep-peers-")
        try:
            for rank, cpus in enumerate(places):
                self.processes.append(self.start(rank, len(places), threads, cpus))
            self.parameters = self.hear()[0]["parameters"]
        except BaseException:
            self.finish(0)
            raise

    def start(self, rank, world, threads, cpus):
        command = [self.torch.python, WORKER, "--model", self.point.model, "--batch", str(self.point.batch),
                   "--threads", str(threads)] + self.point.torch_options(self.options)
        if self.torch.channels_last:
            command.append("--channels-last")
        if world > 1:
            command += ["--world", str(world), "--rank", str(rank), "--meet", os.path.join(self.directory, "meet")]
        env = {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
        env.update(blas_core())
        return Process(command, cpus, env, stdin=subprocess.PIPE)

    def hear(self):
        answers = []
        for rank, process in enumerate(self.processes):
            try:
                answers.append(process.hear())
            except Trouble as trouble:
                who = self.torch.label + (f" rank {rank}" if len(self.processes) > 1 else "")
                raise Trouble(f"{who} at {self.point.model}: {trouble}")
        return answers

    def turn(self, warmup, steps):
        for process in self.processes:
            process.tell({"warmup": warmup, "steps": steps})
        seconds = max(sum(answer["seconds"]) for answer in self.hear())
        if steps:
            self.rates.append(len(self.processes) * self.point.batch * steps / seconds)

    def finish(self, seconds=GRACE):
        """End the processes. Peak memory is that of all ranks; libraries they share are counted for each."""
        for process in self.processes:  # ranks end together
            process.dismiss()
        self.peak = sum(process.end(seconds) for process in self.processes)
        shutil.rmtree(self.directory, ignore_errors=True)


class LockstepJob:
    """A fresh `lockstep bench` for every turn, on as many CPUs as it has devices and threads."""

    def __init__(self, options, point, devices, threads, cpus):
        self.options, self.point, self.devices, self.threads = options, point, devices, threads
        self.cpus = set(cpus[:devices * threads])
        self.rates, self.peak, self.last = [], 0, {}

    def turn(self, warmup, steps):
        numbers = {"batch": self.point.batch, "devices": self.devices, "threads": self.threads, "warmup": warmup,
                   "steps": steps, "repeat": 1}
        command = [self.options.lockstep, "bench", "--model", self.point.model, "--json"]
        command += self.point.lockstep_options(self.options)
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

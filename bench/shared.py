"""What the scripts of bench/ share: the machine, the command, tables, and how a signal ends a script.

    shared.py COMMAND...        run a command, then print the line about the machine; exits as the command does
"""
import os
import shutil
import signal
import subprocess
import sys

from peers_jobs import HERE, Trouble

PIP_BYTES = 12e9  # disk space for pip's PyTorch, which comes with GPU libraries unless an index names a smaller build
BUSY_SHARE = 0.03  # of the machine's time, for other processes or for other guests of its hypervisor


# ---- the machine


def cpus_by_core():
    """CPUs this process may use, one of every physical core first."""
    allowed = sorted(os.sched_getaffinity(0))
    first, rest, seen = [], [], set()
    for cpu in allowed:
        try:
            with open(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") as f:
                core = f.read().strip()
        except OSError:
            core = str(cpu)
        (rest if core in seen else first).append(cpu)
        seen.add(core)
    return first + rest


def cpu_model():
    try:
        with open("/proc/cpuinfo") as f:
            for line in f:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return os.uname().machine


def bf16_kinds(path="/proc/cpuinfo"):
    """Lockstep's precisions in bf16 that this processor has instructions for."""
    try:
        with open(path) as f:
            flags = next((line.split() for line in f if line.startswith("flags")), [])
    except OSError:
        flags = []
    return [name for name, flag in (("bf16", "avx512_bf16"), ("bf16-amx", "amx_bf16")) if flag in flags]


def mhz():
    """Mean clock frequency of the CPUs now, 0 where the kernel does not say."""
    try:
        with open("/proc/cpuinfo") as f:
            found = [float(line.split(":", 1)[1]) for line in f if line.startswith("cpu MHz")]
    except OSError:
        found = []
    return sum(found) / len(found) if found else 0


def cpu_times():
    """CPU seconds since boot, of all CPUs together: in all, at work, and given to other guests of the hypervisor."""
    with open("/proc/stat") as f:
        user, nice, system, idle, iowait, irq, softirq, steal = map(int, f.readline().split()[1:9])
    work = user + nice + system + irq + softirq
    return [ticks / os.sysconf("SC_CLK_TCK") for ticks in (work + idle + iowait + steal, work, steal)]


def own_seconds():
    """CPU seconds of this process and of those it has waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def machine():
    """The machine, and what finish_machine() needs to find out what else it did during a measurement."""
    return {"cpu": cpu_model(), "cores": len(os.sched_getaffinity(0)), "load": os.getloadavg()[0], "mhz": mhz(),
            "began": {"times": cpu_times(), "own": own_seconds()}}


def finish_machine(facts):
    """After a measurement, when its processes have ended: the share of the machine that others had, and whether it was quiet."""
    began = facts.pop("began")
    whole, work, steal = (now - then for now, then in zip(cpu_times(), began["times"]))
    own = own_seconds() - began["own"]
    facts.update(mhz=(facts["mhz"] + mhz()) / 2, steal=steal / max(whole, 1e-9),
                 others=max(work - own, 0) / max(whole, 1e-9))
    facts["quiet"] = facts["steal"] <= BUSY_SHARE and facts["others"] <= BUSY_SHARE  # load is also of what ended before
    return facts


def machine_line(facts):
    verdict = "quiet" if facts["quiet"] else "NOT QUIET: do not quote these figures"
    return (f"{facts['cpu']}, {count(facts['cores'], 'CPU')}, {facts['mhz']:.0f} MHz; load {facts['load']:.2f} at the start, "
            f"steal {facts['steal'] * 100:.1f} %, other processes {facts['others'] * 100:.1f} % of the machine: {verdict}")


# ---- the command and its data


def find_lockstep(path):
    path = path or os.environ.get("LOCKSTEP") or os.path.join(HERE, "..", "build", "lockstep")
    if not os.access(path, os.X_OK):
        raise Trouble(f"{path} is missing or not executable: run 'make build', or set --lockstep")
    return os.path.abspath(path)


def data_cache():
    """Where `lockstep data get` puts datasets, one directory each."""
    return os.environ.get("LOCKSTEP_DATA") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "lockstep")


def holds(place, names):
    return all(os.path.isfile(os.path.join(place, name)) for name in names)


# ---- PyTorch from pip


def torch_environment(name, packages, index):
    """The interpreter of an environment with these packages, made once and kept in the cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    home = os.path.join(cache, "lockstep", name)
    python = os.path.join(home, "bin", "python")
    modules = ["PIL" if package == "pillow" else package for package in packages]
    check = [python, "-c", "import " + ", ".join(modules)]
    if os.path.exists(python) and subprocess.run(check, capture_output=True).returncode == 0:
        return python
    shutil.rmtree(home, ignore_errors=True)
    os.makedirs(os.path.dirname(home), exist_ok=True)
    room = shutil.disk_usage(os.path.dirname(home)).free
    if room < PIP_BYTES and not index:
        raise Trouble(f"{os.path.dirname(home)} has {room / 1e9:.1f} GB free, {PIP_BYTES / 1e9:.0f} are needed")
    print(f"installing {', '.join(packages)} in {home} (once; PyTorch is large) ...", file=sys.stderr)
    base = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
    more = ["--extra-index-url", index] if index else []
    for command in ([base, "-m", "venv", home], [python, "-m", "pip", "install", "-q", "--no-input", *packages, *more]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            shutil.rmtree(home, ignore_errors=True)
            lines = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()
            raise Trouble(f"{' '.join(command[:4])} failed: {lines[-1]}")
    return python


# ---- output


def table(rows):
    """Aligned columns; numbers are right-aligned."""
    widths = [max(len(line[i]) for line in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths)))
             for line in rows]
    return "\n".join([lines[0], "  ".join("-" * w for w in widths)] + lines[1:])


def count(number, noun):
    return f"{number} {noun}{'' if number == 1 else 's'}"


# ---- the command line


def numbers(text):
    return [int(word) for word in text.split(",")]


def stop(number, _):
    """A signal ends the processes of both sides and then the comparison; further signals are ignored."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    sys.exit(128 + number)


def end_on_signals():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)


# ---- a script in another language


def watch(command):
    """The exit status of a command, after the line about the machine."""
    facts = machine()
    child = subprocess.Popen(command, start_new_session=True)
    try:
        status = child.wait()
    except BaseException:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        raise
    print(f"machine   {machine_line(finish_machine(facts))}")
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    end_on_signals()
    sys.exit(watch(sys.argv[1:]))

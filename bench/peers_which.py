"""What bench/peers compares with: Debian's PyTorch or that of --torch, with --pip a current one before it; JAX and llm.c."""
import json
import os
import shutil
import subprocess
import sys

from peers_jobs import JAX_WORKER, Jax, Torch, Trouble, WORKER
from peers_llmc import Llmc, find_programs

PIP_BYTES = 12e9  # disk space for pip's PyTorch, which comes with GPU libraries unless --pip-index names a smaller build


def ask(python, worker, name):
    """The lines that a worker prints about its library; Trouble with the reason when there is none."""
    env = {**os.environ, "ONEDNN_VERBOSE": "1", "DNNL_VERBOSE": "1", "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run([python, worker, "--probe"], env=env, capture_output=True, text=True, timeout=300)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Trouble(f"{python}: {error}")
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise Trouble(f"{python} has no usable {name}: {lines[-1] if lines else 'no message'}")
    return done.stdout.strip().splitlines()


def probe(python):
    """The version of PyTorch of an interpreter."""
    lines = ask(python, WORKER, "PyTorch")
    facts = json.loads(lines[-1])
    isa = [line.split("isa:", 1)[1] for line in lines if ",cpu,isa:" in line]
    facts.update(python=python, isa=isa[0] if isa else "not reported")
    return facts


def find_torch(python):
    """The given interpreter, or the first of the usual ones that has PyTorch."""
    reasons = []
    for candidate in [python] if python else ["/usr/bin/python3", sys.executable]:
        try:
            return probe(candidate)
        except Trouble as trouble:
            reasons.append(str(trouble))
    raise Trouble("; ".join(reasons) + "\nInstall Debian's python3-torch and python3-torchvision, or choose another "
                  "interpreter with --torch PYTHON.")


def pip_torch(index):
    """A current PyTorch in an environment of its own, made once and kept in the cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    home = os.path.join(cache, "lockstep", "peers-venv")
    python = os.path.join(home, "bin", "python")
    try:
        return probe(python)
    except Trouble:
        pass
    shutil.rmtree(home, ignore_errors=True)
    os.makedirs(os.path.dirname(home), exist_ok=True)
    room = shutil.disk_usage(os.path.dirname(home)).free
    if room < PIP_BYTES and not index:
        raise Trouble(f"{os.path.dirname(home)} has {room / 1e9:.1f} GB free, {PIP_BYTES / 1e9:.0f} are needed")
    print(f"installing a current PyTorch in {home} (once; it is large) ...", file=sys.stderr)
    base = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
    install = [python, "-m", "pip", "install", "-q", "--no-input", "torch", "torchvision", "numpy"]
    for command in ([base, "-m", "venv", home], install + (["--index-url", index] if index else [])):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            shutil.rmtree(home, ignore_errors=True)
            lines = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()
            raise Trouble(f"{' '.join(command[:4])} failed: {lines[-1]}")
    return probe(python)


def modes(options):
    """How each PyTorch computes: every combination of the options."""
    found = [()]
    for mode, is_wanted in (("compiled", options.compiled), ("channels-last", options.channels_last), ("bf16", options.bf16)):
        found += [others + (mode,) for others in found] if is_wanted else []
    return found


def find_all(options):
    """The versions to compare with, and notes about missing ones. With --pip, a current one is the first."""
    if not options.pip:
        return [find_torch(options.torch)], []
    found, notes = [], []
    for find, argument, name in ((pip_torch, options.pip_index, "pip's"), (find_torch, options.torch, "Debian's")):
        try:
            found.append(find(argument))
        except Trouble as trouble:
            notes.append(f"{name} PyTorch is left out: {trouble}")
    if not found:
        raise Trouble("; ".join(notes))
    return found, notes


def can_compile(facts):
    return int(facts["torch"].split(".")[0]) >= 2


def find_jax(python):
    return {**json.loads(ask(python, JAX_WORKER, "JAX")[-1]), "python": python}


def find_further(options):
    """JAX in its modes and llm.c, where they are asked for, and lines about them."""
    found, lines = [], []
    if options.jax:
        facts = find_jax(options.jax)
        found += [Jax(facts, modes) for modes in ((), ("bf16",))[:2 if options.bf16 else 1]]
        lines.append(("jax", facts["jax"]))
    if options.llmc:
        programs = find_programs(options.llmc)
        found.append(Llmc(programs))
        lines += [("llm.c", f"{batch} x {tokens}: {program}") for (batch, tokens), program in programs.items()]
    return found, lines


def contenders(options):
    """Versions of PyTorch to compare with, each in its modes, then the others."""
    found, notes = find_all(options)
    torches = []
    for i, facts in enumerate(found):
        name = "torch" if i == 0 else "torch " + facts["torch"].split("+")[0]
        torches += [Torch(name, facts, each, i == 0) for each in modes(options) if can_compile(facts) or "compiled" not in each]
    return torches, found, notes

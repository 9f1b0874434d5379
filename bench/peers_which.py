"""What bench/peers compares with: a current PyTorch or that of --torch, on request Debian's as well; JAX and llm.c."""
import json
import os
import subprocess
import sys

from peers_jobs import JAX_WORKER, Jax, Torch, Trouble, WORKER
from peers_llmc import Llmc, find_programs
from shared import torch_environment

DEBIAN = "/usr/bin/python3"
PACKAGES = ["torch", "torchvision", "numpy"]


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
    for candidate in [python] if python else [DEBIAN, sys.executable]:
        try:
            return probe(candidate)
        except Trouble as trouble:
            reasons.append(str(trouble))
    raise Trouble("; ".join(reasons) + "\nInstall Debian's python3-torch and python3-torchvision, or choose another "
                  "interpreter with --torch PYTHON.")


def pip_torch(index=None):
    """A current PyTorch in an environment of its own."""
    return probe(torch_environment("peers-venv", PACKAGES, index))


def first_torch(options):
    """The version that requirements refer to."""
    return probe(options.torch) if options.torch else pip_torch(options.pip_index)


def modes(options):
    """How each PyTorch computes: every combination of the options."""
    found = [()]
    for mode, is_wanted in (("compiled", options.compiled), ("channels-last", options.channels_last), ("bf16", options.bf16)):
        found += [others + (mode,) for others in found] if is_wanted else []
    return found


def find_all(options):
    """The versions to compare with, and notes about missing ones. The first is the current one or that of --torch."""
    found, notes = [], []
    for find, name in ((lambda: first_torch(options), "the first"), (lambda: probe(options.debian), "Debian's")):
        if name == "Debian's" and not options.debian:
            continue
        try:
            found.append(find())
        except Trouble as trouble:
            notes.append(f"{name} PyTorch is left out: {trouble}")
    if not found:
        raise Trouble("; ".join(notes) + "\nChoose an interpreter that has PyTorch with --torch PYTHON; --debian takes "
                      "Debian's, of the packages python3-torch and python3-torchvision.")
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

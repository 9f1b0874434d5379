"""llm.c's CPU program as a side of bench/peers: programs that were built elsewhere, run on random weights and tokens.

A program trains one size, batch x tokens, which is compiled in: `--llmc 4x64=FILE,4x256=OTHER` names one per size. It looks
for its files in the current directory: gpt2_124M.bin (256 int32, then the weights) and tokens (256 int32, then uint16). Here they
are made in a temporary directory. Every turn starts it anew, lets it train the steps it is asked for, and kills it:
it has no option for their number. Its times are its own, of whole steps.
"""
import array
import math
import os
import random
import re
import shutil
import tempfile

from peers_jobs import GRACE, Process, Trouble

LAYERS, HEADS, WIDTH, POSITIONS, WORDS, PADDED_WORDS = 12, 12, 768, 1024, 50257, 50304
TOKENS = (1 << 16) + 1
LONGEST = 19  # steps of a turn: later it generates text between steps
STEP = re.compile(r"step (\d+): train loss (\S+) \(took (\S+) ms\)")
BATCHES = re.compile(r"train dataset num_batches: (\d+)")


def tensors():
    """Its weights in the order of the file: (count, constant value or None for random)."""
    wide = LAYERS * WIDTH
    layer = [(wide, 1), (wide, 0), (3 * wide * WIDTH, None), (3 * wide, 0), (wide * WIDTH, None), (wide, 0),  # attention
             (wide, 1), (wide, 0), (4 * wide * WIDTH, None), (4 * wide, 0), (4 * wide * WIDTH, None), (wide, 0)]  # MLP
    return [(PADDED_WORDS * WIDTH, None), (POSITIONS * WIDTH, None)] + layer + [(WIDTH, 1), (WIDTH, 0)]


def header(*values):
    return array.array("i", values + (0,) * (256 - len(values)))


def write_weights(path):
    """GPT-2's 124 million, of N(0, 0.02); a million of these are repeated."""
    rng = random.Random(1)
    normal = array.array("f", (rng.gauss(0, 0.02) for _ in range(1 << 20)))
    with open(path, "wb") as f:
        header(20240326, 3, POSITIONS, WORDS, LAYERS, HEADS, WIDTH, PADDED_WORDS).tofile(f)
        for count, value in tensors():
            block = normal if value is None else array.array("f", [value]) * len(normal)
            while count > 0:
                block[:count].tofile(f)
                count -= len(block)


def write_tokens(path):
    rng = random.Random(2)
    with open(path, "wb") as f:
        header(20240520, 1, TOKENS).tofile(f)
        array.array("H", (rng.randrange(WORDS) for _ in range(TOKENS))).tofile(f)


def write_files(directory):
    write_weights(os.path.join(directory, "gpt2_124M.bin"))
    texts = os.path.join(directory, "dev", "data", "tinyshakespeare")
    os.makedirs(texts)
    for part in ("train", "val"):
        write_tokens(os.path.join(texts, f"tiny_shakespeare_{part}.bin"))


class Llmc:
    """The programs, by (batch, tokens)."""

    label, version, modes, is_torch, is_required, has_ranks = "llm.c", "llm.c", (), False, True, False

    def __init__(self, programs):
        self.programs = programs

    def suits(self, point):
        return point.model == "gpt2" and (point.batch, point.tokens) in self.programs

    def is_bf16(self):
        return False

    def start(self, point, threads, options):
        return LlmcJob(self.programs[point.batch, point.tokens], point, threads, set(options.cpus[:threads]))


class LlmcJob:
    """A fresh process for every turn; a turn without steps checks that it trains on the size of the point."""

    parameters = sum(count for count, _ in tensors())

    def __init__(self, program, point, threads, cpus):
        self.program, self.point, self.threads, self.cpus = program, point, threads, cpus
        self.rates, self.peak = [], 0
        self.directory = tempfile.mkdtemp(prefix="lockstep-peers-")
        try:
            write_files(self.directory)
        except BaseException:
            self.finish()
            raise

    def turn(self, warmup, steps):
        if not 0 <= steps <= LONGEST - warmup:
            raise Trouble(f"llm.c's program trains {LONGEST} steps a turn at most")
        command = ["stdbuf", "-oL", self.program]  # lines when they are printed, not when a buffer is full
        process = Process(command, self.cpus, {"OMP_NUM_THREADS": str(self.threads)}, cwd=self.directory)
        try:
            self.check_size(process)
            if steps:
                seconds = [self.step(process, number) for number in range(warmup + steps)][warmup:]
                self.rates.append(self.point.batch * steps / sum(seconds))
        except Trouble as trouble:
            raise Trouble(f"llm.c's {self.program} at {self.point.name}: {trouble}")
        finally:
            self.peak = max(self.peak, process.end(0))

    def find(self, pattern, process):
        """The next line with a pattern."""
        found = None
        while not found:
            found = pattern.search(process.line())
        return found

    def check_size(self, process):
        """What it prints does not tell batch from tokens, but their product."""
        batches, size = int(self.find(BATCHES, process)[1]), self.point.batch * self.point.tokens
        if batches != TOKENS // size:
            raise Trouble(f"a step has about {TOKENS // max(batches, 1)} tokens, not {self.point.batch} x {self.point.tokens}: "
                          "build it with these as its B and T")

    def step(self, process, number):
        found = self.find(STEP, process)
        if int(found[1]) != number or not math.isfinite(float(found[2])):
            raise Trouble(f"step {number} was expected, with a loss: {found[0]}")
        return float(found[3]) / 1000

    def finish(self, _=GRACE):
        shutil.rmtree(self.directory, ignore_errors=True)


def find_programs(text):
    """The programs of --llmc, by (batch, tokens)."""
    programs = {}
    for word in text.split(","):
        form = re.fullmatch(r"(\d+)x(\d+)=(.+)", word)
        if not form:
            raise Trouble(f"--llmc {word}: the form is BATCHxTOKENS=FILE, for example 4x64=train_gpt2")
        program = os.path.abspath(form[3])
        if not os.path.isfile(program) or not os.access(program, os.X_OK):
            raise Trouble(f"--llmc {word}: {program} is not a program")
        programs[int(form[1]), int(form[2])] = program
    if not shutil.which("stdbuf"):
        raise Trouble("--llmc needs stdbuf, of coreutils")
    return programs

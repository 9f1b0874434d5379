#!/usr/bin/python3
"""GPT-2's byte-pair encoding: what src/tokenizer makes of a text, beside Hugging Face's tokenizers on the same files.

    bpe.py PROGRAM VOCABULARY [--strings N] [--seed S]     compare PROGRAM (bpe_lines.c) on hard cases, on the characters this
                                                           Python knows, one by one, and on N random strings
    bpe.py PROGRAM VOCABULARY --speed TEXT                 encode a file, or the .txt files of a directory as one, with both, in
                                                           turns, on one thread: MB/s, and whether 20 MB/s were met

VOCABULARY is a directory with vocab.json and merges.txt. Needs the package tokenizers. Exit status 1: ids differ, or Lockstep is
slower than --required; 2: the text cannot be measured. No test measures: a busy machine would fail it.
"""
import argparse
import glob
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from wordpiece import escaped, known_characters, make_pools, random_text

REQUIRED = 20.0  # MB/s
WINDOW = 64  # bytes of a place in a text that is looked for elsewhere

HARD = [
    "", " ", "  ", "\n", " \n ", "\t\t x", "a", " a", "a ", "  a  ", "\r\n\r\nb", "hello world", "Hello, WORLD!", "don't can't I'll we've they're he'd I'm it's",
    "DON'T 'S 'll'll '' 's's", "it 's", "a's1's", "1234567890", "3.14159", "x2y3", " 12 34", "\u00bd\u00b2\u2460\u0663\u0967", "snake_case camelCase", "!!!???...", " --- ",
    "a\u00a0b", "a\u3000\u3000b", "\u2028\u2029", "a\u200bb", "\u00e9 e\u0301", "na\u00efve r\u00e9sum\u00e9", "\u4f60\u597d\uff0c\u4e16\u754c", "\ud55c\uad6d\uc5b4",
    "\u0939\u093f\u0928\u094d\u0926\u0940", "\u05e9\u05c1\u05dc\u05d5\u05dd", "\u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22", "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\u2764\ufe0f", "<|endoftext", "def f(x):\n    return x\n\n\n", "\t\tif a:\r\n", "https://example.org/a?b=c&d=%20", "a" * 500, " " * 100, " " * 100 + "x", "ab" * 300,
    "\x00\x01\x7f", "\u0130\u0131\u017f\u212a", "x\u0301\u0301\u0301", "\u1d400\U0001d7ce", "'\u017f 'S 'T 'RE", "\ufeffstart",
]


def load(directory):
    model = models.BPE.from_file(os.path.join(directory, "vocab.json"), os.path.join(directory, "merges.txt"))
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def make_strings(chars, count, seed):
    rng, pools = random.Random(seed), make_pools(chars)
    yield from HARD
    for char in chars:  # its class shows in where the words around it end
        yield f"b{char}a 1{char}1 {char}{char}'s"
    texts = [random_text(rng, pools).decode("utf-8") for _ in range(count)]
    yield from texts
    for first in range(0, count, 1000):  # long texts, whose words are looked up in a table
        yield (" ".join(texts[first:first + 1000]) * 2)[:100000]


def compare(program, directory, count, seed):
    version = subprocess.run([program], check=True, capture_output=True, text=True).stdout.strip()
    chars = known_characters(version)
    strings = list(make_strings(chars, count, seed))
    tokenizer = load(directory)
    lines = "".join(text.encode("utf-8").hex() + "\n" for text in strings)
    answers = subprocess.run([program, directory], input=lines, check=True, stdout=subprocess.PIPE, text=True).stdout.split("\n")
    differ, total = 0, 0
    for text, answer in zip(strings, answers):
        expected = " ".join(map(str, tokenizer.encode(text, add_special_tokens=False).ids))
        total += expected.count(" ") + 1
        if answer != expected:
            differ += 1
            if differ <= 10:
                print(f"text {escaped(text.encode('utf-8'))}\n  got      {answer}\n  expected {expected}")
    print(f"seed {seed}, {len(strings)} strings, {total} tokens, {tokenizer.get_vocab_size()} pieces; {differ} strings differ")
    return 1 if differ or len(answers) != len(strings) + 1 else 0


def read_text(path):
    """The bytes of a file, or of the .txt files of a directory, in order."""
    paths = sorted(glob.glob(os.path.join(path, "*.txt"))) if os.path.isdir(path) else [path]
    parts = []
    for each in paths:
        with open(each, "rb") as file:
            parts.append(file.read())
    return b"".join(parts)


def repeated_share(data, places=200):
    """The share of places whose bytes stand in the text before: near 1 of a text that is one text repeated, whose words a cache of
    the tokenizer has all seen."""
    rng = random.Random(1)
    starts = [rng.randrange(max(1, len(data) - WINDOW)) for _ in range(places)]
    return sum(data.find(data[at:at + WINDOW], 0, at + WINDOW - 1) >= 0 for at in starts) / places


def refuse(reason):
    print(f"bpe.py: {reason}", file=sys.stderr)
    return 2


def measure(program, directory, path, required, rounds):
    data = read_text(path)
    if len(data) < 1e6:
        return refuse(f"{path}: {len(data)} bytes of text are too few to measure; 1,000,000 at least")
    share = repeated_share(data)
    if share > 0.5:
        return refuse(f"{path}: {share:.0%} of the text stand in it before: this is one text repeated")
    tokenizer, text = load(directory), data.decode("utf-8")
    ours, theirs = [], []
    with tempfile.NamedTemporaryFile(prefix="lockstep-bpe-") as file:
        file.write(data)
        file.flush()
        for _ in range(rounds):
            answer = subprocess.run([program, directory, file.name, "1"], check=True, capture_output=True, text=True).stdout
            ours.append(float(answer) / 1e6)
            began = time.perf_counter()
            tokenizer.encode(text, add_special_tokens=False)
            theirs.append(len(data) / (time.perf_counter() - began) / 1e6)
    rate, met = statistics.median(ours), statistics.median(ours) >= required
    print(f"{len(data) / 1e6:.1f} MB, {share:.1%} of it repeated, {tokenizer.get_vocab_size()} pieces: "
          f"Lockstep {rate:.1f} MB/s, tokenizers {statistics.median(theirs):.1f} MB/s, {rate / statistics.median(theirs):.1f}x\n"
          f"required: {required:g} MB/s of Lockstep: {'met' if met else 'NOT met'}")
    return 0 if met else 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("vocabulary")
    parser.add_argument("--strings", type=int, default=100000)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--speed", metavar="TEXT")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--required", type=float, default=REQUIRED, metavar="MB/S")
    arguments = parser.parse_args()
    if arguments.speed:
        return measure(arguments.program, arguments.vocabulary, arguments.speed, arguments.required, arguments.rounds)
    seed = random.SystemRandom().randrange(1 << 32) if arguments.seed is None else arguments.seed
    return compare(arguments.program, arguments.vocabulary, arguments.strings, seed)


if __name__ == "__main__":
    sys.exit(main())

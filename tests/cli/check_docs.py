"""check_docs.py LOCKSTEP FILE...: what is wrong with Markdown pages, one line per problem.

A relative link must point to a file or directory that exists, and an anchor to a heading. An option in a command line
`lockstep COMMAND ...` must be in the help of that command; one that is named alone in the text, in the help of any
command (those of tools/lab, bench/peers and bench/convergence count as well).
"""
import os
import re
import subprocess
import sys

COMMANDS = ["train", "eval", "predict", "generate", "serve", "export", "data list", "data get", "data make vocab", "data make", "data info", "data show", "data check", "models", "bench",
            "plan", "probe", "report", "slurm", "k8s"]
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def options_of(text):
    """The options that help lists: those of lines that begin with one, in one or two columns."""
    lines = [line for line in text.splitlines() if re.match(r"\s+(-\w, )?--[a-z]", line)]
    return {name for line in lines for name in re.findall(r"(?<!\S)--[a-z][a-z0-9-]*", line)} | {"--help"}


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def code(text):
    """Pieces of code with the number of their line: lines of fenced blocks, those that go on after '\\' joined, and
    spans between backticks."""
    pieces, fenced, joined = [], False, ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fenced, joined = not fenced, ""
        elif fenced:
            joined += line
            if joined.endswith("\\"):
                joined = joined[:-1]
            else:
                pieces.append((number, joined))
                joined = ""
        else:
            pieces += [(number, span) for span in re.findall(r"`([^`]+)`", line)]
    return pieces


def commands(piece):
    """(command, its arguments) of every call of lockstep in a piece of code."""
    calls = re.split(r"(?:^|(?<=[\s/$(]))lockstep ", re.sub(r"\s#.*", "", piece))[1:]
    for call in calls:
        call = re.split(r"\s[|<>;&]|\)", call)[0]
        for command in COMMANDS:
            if call == command or call.startswith(command + " "):
                own, _, train = call.partition(" -- ")
                yield command, own
                yield "train", train
                break


def headings(path):
    """Anchors of a page, as they are made from its headings."""
    with open(path, encoding="utf-8") as page:
        found = re.findall(r"^#+ (.*)$", page.read(), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in found}


def wrong_links(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        for link in re.findall(r"\]\(([^)\s]+)\)", line):
            target, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", link):
                continue
            file = os.path.join(os.path.dirname(path), target) if target else path
            if not os.path.exists(file):
                yield number, f"{link} does not exist"
            elif anchor and anchor not in headings(file):
                yield number, f"{link}: there is no such heading"


def wrong_options(text, known, anywhere):
    for number, piece in code(text):
        if re.match(r"--[a-z]", piece):
            for name in re.findall(r"(?<!\S)--[a-z][a-z0-9-]*", piece):
                if name not in anywhere:
                    yield number, f"no command has {name}"
        for command, arguments in commands(piece):
            for name in re.findall(r"(?<!\S)--[a-z][a-z0-9-]*", arguments):
                if name not in known[command]:
                    yield number, f"lockstep {command} has no {name}"


def main():
    lockstep, pages = sys.argv[1], sys.argv[2:]
    known = {c: options_of(output(lockstep, *c.split(), "--help", "all") or output(lockstep, *c.split(), "--help"))
             for c in COMMANDS}
    others = "".join(output(os.path.join(ROOT, name), "--help") for name in ("tools/lab", "bench/peers", "bench/convergence"))
    anywhere = set.union(*known.values()) | set(re.findall(r"--[a-z][a-z0-9-]*", others))
    if min(len(known["train"]), len(known["bench"])) < 20:
        print("help lists too few options to compare with")
    for path in pages:
        with open(path, encoding="utf-8") as page:
            text = page.read()
        for number, what in [*wrong_links(path, text), *wrong_options(text, known, anywhere)]:
            print(f"{os.path.relpath(path, ROOT)}:{number}: {what}")


main()

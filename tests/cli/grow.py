"""grow.py BUILD OUT: headers and libraries of a later version, whose structs that can grow have one field more.

OUT/include has the public headers with `grown` at the end of every struct that begins with its size and of operators'
attributes, 42 in its INIT macro; OUT/lib the
libraries made with them: objects that depend on a changed header are compiled once more, the others are the build's.
In these libraries ls_options_take() checks that `grown` is 42 for a program that does not know it, and notes in the file
$GROWN_LOG whose options it took.
"""
import json, os, re, shlex, shutil, subprocess, sys
from concurrent.futures import ThreadPoolExecutor

build, out = (os.path.abspath(p) for p in sys.argv[1:3])
source = os.environ["SOURCE_DIR"]
CHECK = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int __real_ls_options_take(void *own, size_t own_size, const void *given, size_t first, const char *init);
int __wrap_ls_options_take(void *own, size_t own_size, const void *given, size_t first, const char *init);
int __wrap_ls_options_take(void *own, size_t own_size, const void *given, size_t first, const char *init)
{
	int status = __real_ls_options_take(own, own_size, given, first, init);
	int64_t grown;
	size_t size;
	memcpy(&size, given, sizeof(size));
	memcpy(&grown, (const char *)own + own_size - sizeof(grown), sizeof(grown));
	FILE *log = getenv("GROWN_LOG") ? fopen(getenv("GROWN_LOG"), "a") : NULL;
	if (log && size == own_size - sizeof(grown))
		fprintf(log, "%s\n", init);
	if (log)
		fclose(log);
	if (status == 0 && size < own_size && grown != 42) {
		fprintf(stderr, "%s: an older program's options got %lld, not the default\n", init, (long long)grown);
		abort();
	}
	return status;
}
"""


def grow(text):
    """A header with one field more in each struct that can grow; what was changed."""
    names = []

    def one(match):
        body, name = match[1], match[2]
        fields = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
        if not name.endswith("_options") and not fields.lstrip().startswith("size_t size;"):
            return match[0]
        names.append(name)
        wide = re.search(r"\*|size_t|int64_t|double", fields)  # the field must leave no padding before it or behind it
        return "typedef struct %s {%s\t%s grown;\n} %s;" % (name, body, "long long" if wide else "int", name)

    text = re.sub(r"typedef struct ls_\w+ \{((?:(?!\n\}).)*\n)\} (ls_\w+);", one, text, flags=re.S)
    for name in names:
        text = text.replace(".size = sizeof(%s)" % name, ".size = sizeof(%s), .grown = 42" % name)
    return text, names


changed, grown = [], []
shutil.copytree(os.path.join(source, "include"), os.path.join(out, "include"))
for name in os.listdir(os.path.join(out, "include", "lockstep")):
    path = os.path.join(out, "include", "lockstep", name)
    text, names = grow(open(path).read())
    open(path, "w").write(text)
    if names:
        changed.append(os.path.join(source, "include", "lockstep", name))
        grown += names
print(*sorted(grown), sep="\n")

# Objects of the libraries that see a changed header.
depending, current = set(), None
for line in subprocess.run(["ninja", "-t", "deps"], cwd=build, check=True, capture_output=True, text=True).stdout.split("\n"):
    if line and not line.startswith(" "):
        current = line.split(":")[0]
    elif line and os.path.normpath(os.path.join(build, line.strip())) in changed:
        depending.add(current)
objects = [line.strip() for library in ("core", "tools") for line in open(os.path.join(build, "exports", library + ".objects"))]
commands = {}
for entry in json.load(open(os.path.join(build, "compile_commands.json"))):
    words = shlex.split(entry["command"])
    commands[os.path.relpath(os.path.join(build, words[words.index("-o") + 1]), build)] = words
os.makedirs(os.path.join(out, "objects"))
os.makedirs(os.path.join(out, "lib"))


def run(command):
    done = subprocess.run(command, shell=isinstance(command, str), cwd=build, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("%s\n%s" % (command, done.stderr))


instead = {}
for n, path in enumerate(objects):
    key = os.path.relpath(os.path.join(build, path), build)
    if key in depending:
        instead[key] = os.path.join(out, "objects", "%d.o" % n)


def recompile(key):
    words = list(commands[key])
    words[words.index("-o") + 1] = instead[key]
    for flag in ("-MT", "-MF"):
        if flag in words:
            words[words.index(flag) + 1] = instead[key] + ".d"
    run([w.replace("-I" + source + "/include", "-I" + out + "/include") for w in words if w != "-O3"] + ["-O0", "-g0", "-Wno-error"])


with ThreadPoolExecutor(2) as pool:
    list(pool.map(recompile, instead))
open(os.path.join(out, "check.c"), "w").write(CHECK)
check = os.path.join(out, "check.o")
run(["cc", "-fPIC", "-c", os.path.join(out, "check.c"), "-o", check])

# The libraries, by their own link commands.
for name in ("liblockstep.so", "liblockstep-tools.so"):
    real = os.path.relpath(os.path.realpath(os.path.join(build, name)), build)
    lines = subprocess.run(["ninja", "-t", "commands", real], cwd=build, check=True, capture_output=True, text=True).stdout
    words = shlex.split(lines.strip().split("\n")[-1].replace(": && ", "").replace(" && :", ""))
    words = [instead.get(os.path.relpath(os.path.join(build, w), build), w) for w in words]
    words[words.index("-o") + 1] = os.path.join(out, "lib", os.path.basename(os.readlink(os.path.join(build, name))))
    run(words + [check, "-Wl,--wrap=ls_options_take"])
    os.symlink(os.path.basename(os.readlink(os.path.join(build, name))), os.path.join(out, "lib", name))

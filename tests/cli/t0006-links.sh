#!/bin/bash
# Links between the pages of the tree lead somewhere, and so do the paths that CONTRIBUTING.md and the tour name.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# Print each relative link of a Markdown page to a file or heading that is not there.
cat >check.py <<'PYTHON'
import os, re, sys

def headings(text):
    for line in re.findall(r"^#+ (.*)$", text, re.M):
        yield re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-")

def broken(page):
    text = open(page).read()
    plain = re.sub(r"```.*?```", "", text, flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", plain):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if not os.path.exists(path) or (anchor and path.endswith(".md") and anchor not in headings(open(path).read())):
            yield target

links = 0
for root, folders, files in os.walk(sys.argv[1]):
    folders[:] = [f for f in folders if f not in (".git", "runs") and not f.startswith("build")]
    for name in files:
        if name.endswith(".md"):
            page = os.path.join(root, name)
            links += open(page).read().count("](")
            for target in broken(page):
                print(f"{os.path.relpath(page, sys.argv[1])}: {target}")
print(links, "links", file=sys.stderr)
PYTHON
run /usr/bin/python3 check.py "$SOURCE_DIR"
is "links lead to files and headings" "$status$out" 0
ok "there are links" test "${err%% *}" -ge 5
mkdir -p tree/docs
printf '# Two words\n[a](docs/b.md) [b](docs/none.md) [c](#two-words) [d](#three) [e](https://example.org/x)\n' >tree/README.md
printf '[up](../README.md#two-words) [no](../README.md#no)\n' >tree/docs/b.md
is "the check finds what does not" "$(/usr/bin/python3 check.py tree 2>/dev/null | sort)" "README.md: #three
README.md: docs/none.md
docs/b.md: ../README.md#no"

# Files and folders in `backquotes` that look like paths of this tree: src/..., tests/..., docs/..., tools/... without a
# placeholder.
for page in CONTRIBUTING.md docs/tour.md; do
	missing=$(grep -oE '`(src|tests|docs|tools|cmake|bench|include|examples|recipes)/[a-zA-Z0-9_./-]+`' "$SOURCE_DIR/$page" | tr -d '`' | sort -u |
		while read -r path; do
			case $path in *NAME* | *NNNN* | *_x.*) continue ;; esac
			[ -e "$SOURCE_DIR/$path" ] || echo "$path"
		done)
	is "paths in $page exist" "$missing" ""
done

test_end

#!/bin/bash
# The files and folders that CONTRIBUTING.md and the tour name are there. (t0125 checks links and commands of the pages.)
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# Paths of this tree in `backquotes`, and bare names of C files, but for those with a placeholder.
paths() { # FILE
	grep -oE '`(src|tests|docs|tools|cmake|bench|include|examples|recipes)/[a-zA-Z0-9_./-]+`|`[a-z0-9_]+\.[ch]`' "$1" |
		tr -d '`' | sort -u | grep -vE 'NAME|NNNN|_x\.|^x\.c$'
}
find "$SOURCE_DIR"/{src,include,tests} -name '*.[ch]' -printf '%f\n' | sort -u >names
missing() { # FILE
	paths "$1" | while read -r path; do
		[ -e "$SOURCE_DIR/$path" ] || grep -qxF "$path" names || echo "$path"
	done
}
for page in CONTRIBUTING.md docs/tour.md; do
	ok "$page names paths" test "$(paths "$SOURCE_DIR/$page" | wc -l)" -ge 5
	is "which exist" "$(missing "$SOURCE_DIR/$page")" ""
done
# shellcheck disable=SC2016 # Markdown
printf 'See `src/base/isa.h`, `src/none.c`, `isa.h`, `nobody.c` and `src/optim/optimizers/NAME.c`.\n' >page.md
is "the check finds those that do not" "$(missing page.md | tr '\n' ' ')" "nobody.c src/none.c "

test_end

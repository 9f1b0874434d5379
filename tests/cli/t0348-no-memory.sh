#!/bin/bash
# Memory that cannot be had is a failure (status 1) that is named, never a mistake on the command line.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

if [ -n "${SANITIZER:-}" ] || ! command -v cc >/dev/null; then
	skip "no memory" "a sanitizer has an allocator of its own, or there is no compiler"
	test_end
fi

# A list of words, one place for each and two more, cannot be had: 5 words and the end, behind the program's own name.
cat >fail.c <<'END'
#include <stdlib.h>
void *__libc_calloc(size_t count, size_t bytes);
void *calloc(size_t count, size_t bytes)
{
	const char *refused = getenv("REFUSED");
	return refused && bytes == sizeof(char *) && count == (size_t)atoi(refused) ? NULL : __libc_calloc(count, bytes);
}
END
ok "an allocator that fails" cc -shared -fPIC -fno-builtin -o fail.so fail.c
fails_with "no memory for a command line" 1 'no memory for a command line of 5 words$' \
	env REFUSED=7 LD_PRELOAD="$PWD/fail.so" "$LOCKSTEP" train --hosts a,b --model mlp
unlike "the command line was not to blame" "$err" '--help'

# Means and deviations that are mapped, but for which there is no second place.
run "$LOCKSTEP" data make glyphs --samples 100 --out data --quiet
truncate -s 120000000 data/normalisation
limited() { (ulimit -v 200000 && "$@"); }
fails_with "no memory for a file" 1 'data/normalisation: no memory to read it' \
	limited "$LOCKSTEP" train --model mlp --data data --steps 1
truncate -s 150000000 data/normalisation
fails_with "a file that is too large" 1 'data/normalisation is too large to be a list' \
	"$LOCKSTEP" train --model mlp --data data --steps 1
fails_with "a file that cannot be mapped" 1 'data/normalisation: its 150.0 MB exceed what the limit .*ulimit -v 100000' \
	bash -c 'ulimit -v 100000 && "$@"' - "$LOCKSTEP" train --model mlp --data data --steps 1

test_end

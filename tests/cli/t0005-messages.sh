#!/bin/bash
# The library names fields, "options.lr_min", and the command maps them to flags: no message in a library source names
# an option of the command line.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# Strings with an option in them, but for those that are command lines.
flags_in() { # DIRECTORY...
	grep -rnE --include='*.[ch]' '^[^*]*"([^"]*[ (`'"'"'])?--[a-z]' "$@" |
		grep -vE '/(aliases|get_npm|transport_mpi)\.c:|/cluster/command\.c:' |
		grep -vE 'lockstep (train|bench|eval|export|data|plan|probe|report) |strstr\('
}
folders=$(cd "$SOURCE_DIR" && printf '%s\n' src/*/ | grep -vE '^src/(cli|tools)/$')
# shellcheck disable=SC2086
is "no message of the library names a flag" "$(cd "$SOURCE_DIR" && flags_in $folders src/tools/bench src/tools/serve)" ""
printf 'return ls_fail(LS_EINVALID, "%s");\n' '--lr is wrong' >wrong.c
like "one that did would be found" "$(flags_in wrong.c .)" 'wrong\.c'

fails_with "the command says flags in errors" 2 '^lockstep train: --trace needs --run' "$LOCKSTEP" train --data glyphs --trace
run "$LOCKSTEP" train --data glyphs --samples 32 --test-samples 8 --model mlp --momentum 0.5
like "and in warnings" "$err" '^warning: --momentum has no effect with --optimizer adam$'
unlike "and no fields" "$out$err" 'options\.'

test_end

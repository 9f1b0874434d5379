#!/bin/bash
# tools/run-tests says which tests there are, and what it leaves out when everything is asked for.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

all() { # WORD...: the list, where there is no PyTorch
	env PYTHON=/nowhere/python "$SOURCE_DIR/tools/run-tests" "$BUILD_DIR" --list "$@"
}
run all
is "tests can be listed" "$status" 0
like "scripts" "$out" '^tests/cli/t0003-run-tests.sh$'
like "and unit tests" "$out" '/tests/unit/test_names$'
unlike "but for those that need PyTorch" "$out" 'tests/golden/t90(00|10|30)-'
like "and that is said at the end, with what to do" "$(tail -n 1 <<<"$out")" \
	"^not run: $(grep -l '^# needs: PyTorch' "$SOURCE_DIR"/tests/*/*.sh | wc -l) comparisons with PyTorch; 'make test-golden' installs it"
run all tests/golden/
is "asked for by name, they are there" "$(grep -cE '^tests/golden/t90(00|10|30)-' <<<"$out")" 3
unlike "and nothing is left out" "$out" 'not run'
grep -LE '^# needs: PyTorch$' "$SOURCE_DIR"/tests/golden/*.sh | xargs grep -lE 'import .*torch' >missing
is "every script that imports PyTorch says that it needs it" "$(cat missing)" ""

test_end

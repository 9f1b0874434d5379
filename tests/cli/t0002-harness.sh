#!/bin/bash
# The test runner itself: whatever goes wrong in a test must be seen, for everything else relies on it.
here=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
n=0

# check NAME EXPECTED-RESULTS: run the script on stdin; compare its result words, as in "ok,not,skip"
check() {
	local name=$1 expected=$2 file=$work/t$((++n)).sh
	cat >"$file"
	local got
	got=$(LS_TEST_TIMEOUT=${LIMIT:-20} LS_TAP_LOG='' LS_TAP_TIMES='' "$here/tools/tap-run" "$file" 2>&1 | tee "$work/output" |
		sed -nE 's/^ok .*# SKIP.*/skip/p; s/^ok .*/ok/p; s/^not ok .*/not/p' | paste -sd,)
	if [ "$got" = "$expected" ] && [ "$(tail -1 "$work/output")" = "1..$(tr ',' '\n' <<<"$got" | wc -l)" ]; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name: expected $expected, got $got"
		sed 's/^/# /' "$work/output"
	fi
}

check "passing tests pass" ok,ok <<<'echo 1..2; echo ok 1 - a; echo ok 2 - b'
check "a failure with a name is a failure" ok,not <<<'echo 1..2; echo ok 1 - a; echo not ok 2 - b; exit 1'
check "a failure without a name is a failure" not <<<'echo 1..1; echo not ok 1'
check "a failure that mentions SKIP later in its name is a failure" not <<<'echo 1..1; echo "not ok 1 - do # SKIP"'
check "skips keep their reason" ok,skip <<<'echo 1..2; echo ok 1 - a; echo "ok 2 - b # SKIP no gpu"'
check "cmocka prints skips as failures" skip <<<'echo 1..1; echo no network; echo "not ok 1 # SKIP b"'
check "a script may skip itself" skip <<<'echo "1..0 # SKIP no python"'
check "groups with plans of their own are one test program" ok,ok,not <<<'echo 1..1; echo ok 1 - a
echo 1..2; echo ok 1 - b; echo not ok 2 - c; exit 1'
check "too few tests" ok,not <<<'echo 1..2; echo ok 1 - a'
check "no tests at all" not <<<'true'
check "an exit status without a failed test" ok,not <<<'echo 1..1; echo ok 1 - a; exit 3'
check "a crash" ok,not <<<'echo 1..1; echo ok 1 - a; kill -SEGV $$'
check "a crash between tests" ok,not <<<'echo 1..2; echo ok 1 - a; kill -ABRT $$'
LIMIT=1 check "a test that hangs" ok,not <<<'echo 1..1; echo ok 1 - a; sleep 20'

# The stand-in for libFuzzer finds a bug that hides behind three bytes, says the seed, and keeps the input.
compiler=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "${BUILD_DIR:-$here/build}/CMakeCache.txt" 2>/dev/null)
cat >"$work/target.c" <<'C'
#include <stddef.h>
#include <stdint.h>
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	volatile uint8_t sink = 0;
	if (size > 2 && data[0] == 'L' && data[1] == 'S' && data[2] == 0xFF)
		sink = data[size]; /* one too far */
	return sink & 0;
}
C
printf 'LS??' >"$work/seed"
finds_the_bug() {
	"${compiler:-cc}" -D_GNU_SOURCE -g -fsanitize=address,undefined "$work/target.c" "$here/tests/fuzz/standalone.c" -o "$work/target" || return
	(cd "$work" && ! ./target -seed=3 -runs=200000 "$work/seed") && compgen -G "$work/crash-3-*" &&
		(cd "$work" && ! ./target -runs=0 crash-3-*) && "$work/target" -runs=0 "$work/seed"
}
n=$((n + 1))
if finds_the_bug >"$work/output" 2>&1; then
	echo "ok $n - the fuzz driver finds a planted bug and replays it"
else
	echo "not ok $n - the fuzz driver finds a planted bug and replays it"
	tail -20 "$work/output" | sed 's/^/# /'
fi
echo "1..$n"

# shellcheck shell=bash
# lib.sh - a small TAP helper for the scripts in this directory; source it first, call test_end last.
#
#   run COMMAND...            runs it; $status, $out (stdout) and $err (stderr) tell what happened
#   ok NAME COMMAND...        passes when the command succeeds
#   is NAME GOT EXPECTED      passes when both are the same text
#   like NAME TEXT PATTERN    passes when the text matches the extended regular expression
#   unlike NAME TEXT PATTERN
#   skip NAME REASON
#
# Every script works in a directory of its own, removed at the end. $LOCKSTEP is the command, $SOURCE_DIR the source
# tree, $BUILD_DIR the build tree.
set -u

SOURCE_DIR=${SOURCE_DIR:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
LOCKSTEP=${LOCKSTEP:-$SOURCE_DIR/build/lockstep}
LOCKSTEP=$(realpath "$LOCKSTEP")
BUILD_DIR=${BUILD_DIR:-$(dirname "$LOCKSTEP")}
# ThreadSanitizer sees only half of what libraries like Open MPI do among their own threads: it judges our code alone.
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1}:ignore_noninstrumented_modules=1
test_count=0
test_failed=0

test_directory=$(mktemp -d "${TMPDIR:-/tmp}/lockstep-test.XXXXXX") || exit 1
test_clean() {
	local job
	for job in $(jobs -p); do
		kill -9 "$job" 2>/dev/null
	done
	cd / && rm -rf "$test_directory"
}
trap test_clean EXIT
trap 'exit 130' INT TERM
cd "$test_directory" || exit 1
export LOCKSTEP_DATA=$test_directory/cache

# A name may not contain '#': TAP would read a directive.
test_result() { # STATUS NAME
	test_count=$((test_count + 1))
	if [ "$1" = 0 ]; then
		echo "ok $test_count - $2"
	else
		test_failed=$((test_failed + 1))
		echo "not ok $test_count - $2"
	fi
	return "$1"
}

test_note() { # TEXT...: lines of explanation under a result
	printf '%s\n' "$@" | sed 's/^/# /'
}

# shellcheck disable=SC2034 # read by the scripts
run() {
	"$@" >.out 2>.err
	status=$?
	out=$(cat .out)
	err=$(cat .err)
}

ok() {
	local name=$1 code
	shift
	"$@" >.ok 2>&1
	code=$?
	if [ $code = 0 ]; then
		test_result 0 "$name"
	else
		test_result 1 "$name"
		test_note "exit status $code: $*" "$(tail -n 20 .ok)"
	fi
}

is() {
	if [ "$2" = "$3" ]; then
		test_result 0 "$1"
	else
		test_result 1 "$1"
		test_note "got      '$2'" "expected '$3'"
	fi
}

like() {
	if grep -qE -- "$3" <<<"$2"; then
		test_result 0 "$1"
	else
		test_result 1 "$1"
		test_note "does not match /$3/:" "$2"
	fi
}

unlike() {
	if ! grep -qE -- "$3" <<<"$2"; then
		test_result 0 "$1"
	else
		test_result 1 "$1"
		test_note "matches /$3/:" "$2"
	fi
}

skip() {
	test_count=$((test_count + 1))
	echo "ok $test_count - $1 # SKIP $2"
}

# The result of a failed command line: exit status, a message that begins with the command's name and fits the pattern.
fails_with() { # NAME STATUS PATTERN COMMAND...
	local name=$1 expected=$2 pattern=$3
	shift 3
	run "$@"
	if [ "$status" = "$expected" ] && grep -qE -- "$pattern" <<<"$err" && grep -q '^lockstep' <<<"$err"; then
		test_result 0 "$name"
	else
		test_result 1 "$name"
		test_note "exit status $status (expected $expected), message expected to match /$pattern/" "$err"
	fi
}

# Wait until a command succeeds, at most SECONDS; then say what was waited for, and fail.
wait_for() { # SECONDS COMMAND...
	local seconds=$1 end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		if [ $SECONDS -gt $end ]; then
			test_note "waited $seconds s in vain for: $*"
			return 1
		fi
		sleep 0.05
	done
}

has_checkpoint() { # RUN: any, because the first ones are soon removed for newer ones (--keep)
	compgen -G "$1/ckpt/step-*"
}

fingerprint() { # of the run whose output is given
	sed -nE 's/^parameters xxh64 ([0-9a-f]{16})$/\1/p' <<<"$1"
}

# Whether a Python expression holds for o, the JSON in a file (a list of lines for .jsonl).
json() { # FILE EXPRESSION
	python3 -c 'import json, sys
file, expression = sys.argv[1:]
text = open(file).read()
o = [json.loads(line) for line in text.splitlines()] if file.endswith(".jsonl") else json.loads(text)
sys.exit(not eval(expression))' "$@"
}

# A job that takes about a second: 16 steps an epoch, the last one short.
small_train() {
	"$LOCKSTEP" train --model mlp --data glyphs --samples 1000 --test-samples 200 --batch 64 --micro-batch 64 --devices 1 --schedule constant "$@"
}

test_end() {
	echo "1..$test_count"
	[ $test_failed = 0 ]
	exit $?
}

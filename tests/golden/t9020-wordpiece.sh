#!/bin/bash
# The tokenizer and Python's reading of its rules agree: the committed table is what Python makes, and so are random
# texts and every character. WORDPIECE_STRINGS and WORDPIECE_SEED change how many texts and which.
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-/usr/bin/python3}

if ! command -v "$python" >/dev/null; then
	echo "1..0 # SKIP there is no $python"
	exit 0
fi
n=0
failed=0
check() { # NAME ARGUMENT...
	local name=$1 output status
	shift
	n=$((n + 1))
	output=$("$python" "$here/wordpiece.py" "$@" 2>&1)
	status=$?
	if [ $status = 0 ]; then
		echo "ok $n - $name"
	else
		failed=1
		echo "not ok $n - $name"
	fi
	[ -z "$output" ] || sed 's/^/# /' <<<"$output"
}
check "the table of hard cases is as made" --check
check "the tokenizer agrees with Python" --compare "$BUILD_DIR/tests/golden/wordpiece_lines" \
	--strings "${WORDPIECE_STRINGS:-200000}" ${WORDPIECE_SEED:+--seed "$WORDPIECE_SEED"}
echo "1..$n"
exit $failed

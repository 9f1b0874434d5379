#!/bin/bash
# The tokenizer and Python's reading of its rules agree: the committed table is what Python makes, and so are random
# texts and every character. WORDPIECE_STRINGS and WORDPIECE_SEED change how many texts and which.
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-/usr/bin/python3}

if ! command -v "$python" >/dev/null; then
	echo "1..0 # SKIP there is no $python"
	exit 0
fi
# shellcheck source=tests/golden/lib.sh
. "$here/lib.sh"
check "the table of hard cases is as made" "$python" "$here/wordpiece.py" --check
check "the tokenizer agrees with Python" "$python" "$here/wordpiece.py" --compare "$BUILD_DIR/tests/golden/wordpiece_lines" \
	--strings "${WORDPIECE_STRINGS:-200000}" ${WORDPIECE_SEED:+--seed "$WORDPIECE_SEED"}
check_end

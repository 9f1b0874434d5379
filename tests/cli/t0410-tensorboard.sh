#!/bin/bash
# TensorBoard's own reader understands our event files, and a resumed run shows each step once. Needs Python's
# tensorboard package (tools/python-packages puts it into BUILD/venv; PYTHON names another interpreter that has it); the
# files' format is tested without it in unit/test_events.
for python in "$BUILD_DIR/venv/bin/python" "${PYTHON:-python3}" /usr/bin/python3; do
	"$python" -c 'import tensorboard' 2>/dev/null && break
	python=
done
if [ -z "$python" ]; then
	echo "1..0 # SKIP Python's tensorboard package is not installed"
	exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo 1..2
if "$BUILD_DIR/tests/unit/test_events" write "$work"; then
	echo "ok 1 - a run and its resume are written"
else
	echo "not ok 1 - a run and its resume are written"
fi
cat >"$work/read.py" <<'P'
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

events = EventAccumulator(sys.argv[1])
events.Reload()
assert events.Tags()["scalars"] == ["step/loss"], events.Tags()
got = [(scalar.step, scalar.value) for scalar in events.Scalars("step/loss")]
expected = [(step, step + (0.25 if step <= 5 else 0.5)) for step in range(1, 11)]
assert got == expected, got
P
if "$python" "$work/read.py" "$work" >"$work/output" 2>&1; then
	echo "ok 2 - tensorboard reads them"
else
	echo "not ok 2 - tensorboard reads them"
	sed 's/^/# /' "$work/output"
	exit 1
fi

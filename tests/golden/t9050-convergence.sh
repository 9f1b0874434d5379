#!/bin/bash
# Lockstep learns as PyTorch does: initial weights of one distribution, and as many epochs to an accuracy over several seeds;
# with a learning rule that is broken on purpose the same comparison fails. $PYTHON names another interpreter.
# needs: PyTorch
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
python=${PYTHON:-/usr/bin/python3}

if ! reason=$("$python" -c 'import numpy, torch, torchvision' 2>&1); then
	echo "1..0 # SKIP $python cannot import torch and torchvision: $(tail -n 1 <<<"$reason")"
	exit 0
fi
run "$python" "$SOURCE_DIR/tests/golden/torch_init.py" "$LOCKSTEP"
is "initial weights are distributed as in bench/convergence" "$status" 0
test_note "$out"

# One thread: two wait for each other where the machine is busy. With seeds that are fixed, p is the same in every run on a
# processor; another rounds otherwise and draws another p, which is below 0.005 in one of 200.
convergence() {
	run "$SOURCE_DIR/bench/convergence" --torch "$python" --lockstep "$LOCKSTEP" --quick --only cnn --seeds 5 --threads 1 \
		--alpha 0.005 --out kept "$@"
}
convergence --json clean.json
is "cnn needs as many epochs as in PyTorch" "$status" 0
test_note "$out" "$err"
ok "all seeds arrive" json clean.json 'all(o["jobs"][0][side]["reached"] == 5 for side in ("lockstep", "torch"))'
convergence --break lr --json broken.json
is "at a third of the learning rate it does not" "$status" 1
test_note "$out"
like "and a message reports it" "$out" '^verdict: DIFFERS'
ok "and PyTorch's side is the same" test "$(grep -c 'PyTorch: .* kept$' .err)" = 5
test_end

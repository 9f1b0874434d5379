#!/bin/bash
# bench/precision with a stand-in for lockstep: its table, its verdict and its exit status. t0324 trains in both precisions.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# Accuracy 0.90, 0.92, 0.94, ... by seed, in bf16 less by $LESS.
cat >stand-in <<'END_PYTHON'
#!/usr/bin/env python3
import os, sys
given = dict(zip(sys.argv[2::2], sys.argv[3::2]))
if given["--seed"] == os.environ.get("FAILS"):
    sys.exit("out of luck")
less = float(os.environ.get("LESS", 0)) if given["--precision"] == "bf16" else 0
print(f"Test time 0.1 sec, test accuracy: {0.88 + 0.02 * int(given['--seed']) - less:.4f}")
END_PYTHON
chmod +x stand-in
bench=("$SOURCE_DIR/bench/precision" --lockstep ./stand-in)

LESS=0.001 run "${bench[@]}" --seeds 4
is "a small difference is none" "$status" 0
like "seeds" "$out" '^3 +0\.9400 +0\.9390$'
like "means" "$out" '^mean +0\.9300 +0\.9290$'
like "the difference" "$out" '^bf16 minus fp32: -0\.0010, 95 % interval -0\.[0-9]+ to \+0\.[0-9]+, p 0\.[0-9]+$'
like "the verdict" "$out" '^verdict: no difference found'
LESS=0.2 run "${bench[@]}" --seeds 4
is "a large one is" "$status" 1
like "and is said" "$out" '^verdict: DIFFERS \(p below 0\.05\)$'
FAILS=2 run "${bench[@]}"
is "a training that fails ends it" "$status" 1
like "with its command and error" "$err" 'stand-in train --model cnn --data glyphs .* failed:.*out of luck|out of luck'
run "${bench[@]}" --seeds 1
is "one seed is too few" "$status" 2

test_end

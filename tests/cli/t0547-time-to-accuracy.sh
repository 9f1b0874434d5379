#!/bin/bash
# Time to accuracy: a launch per seed, every seed shown, a mean without the best and the worst, and seeds that do not get there.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

job=("$LOCKSTEP" bench --model cnn --data glyphs --samples 2000 --test-samples 500)
results=out/results.json

run "${job[@]}" --to-accuracy 0.6 --seeds 3 --epochs 6 --out out
is "three seeds to an accuracy that all reach" "$status" 0
like "the heading names job and target" "$out" '^### cnn on glyphs to a test accuracy of 0.6: 1 device'
for seed in 1 2 3; do
	like "seed $seed has a row" "$out" "^\| $seed +\| measured +\| reached +\| [0-9.]+ +\| [0-9.]+"
done
like "the mean" "$out" 'mean.*measured.*3 of 3'
like "what kind of mean" "$out" 'without the best and the worst seed \(MLPerf-style, unverified\)'
ok "a launch per seed" json $results '[x["seed"] for x in o["points"][0]["launches"] if not x["again"]] == [1, 2, 3]'
ok "that ended at the target" json $results \
	'all(x["target_s"] > 0 and 1 <= x["target_epochs"] < 6 for x in o["points"][0]["launches"])'
ok "evaluations are inside the time of their launch" json $results \
	'all(0 < t["elapsed_s"] <= o["points"][0]["launches"][t["launch"]]["wall_s"] + 1 for t in o["points"][0]["tests"])'
ok "the last evaluation of a launch reached it, no earlier one did" json $results '(lambda p: all(
	[t["accuracy"] >= 0.6 for t in p["tests"] if t["launch"] == k] == [False] * (n - 1) + [True]
	for k in range(len(p["launches"])) for n in [sum(t["launch"] == k for t in p["tests"])]))(o["points"][0])'
ok "seeds differ" json $results 'len({t["accuracy"] for t in o["points"][0]["tests"]}) > 2'

run "${job[@]}" --to-accuracy 0.9999 --seeds 3 --epochs 1 --out never
is "a target that no seed reaches is no failure" "$status" 0
like "each seed says so, with its limit and its best accuracy" "$out" '^\| 3 +\| measured +\| not reached +\| more than 1 +\| more than [0-9.]+.* \| 0\.[0-9]+'
like "and there is no mean" "$out" '^No mean: 3 of 3 seeds did not reach the target.$'

run "$LOCKSTEP" report out --out page.html
is "a page" "$status" 0
ok "with the accuracy of every seed over time" grep -q 'test accuracy over time' page.html
ok "and the target" grep -q '>target<' page.html

fails_with "--seeds alone" 2 "--seeds needs --to-accuracy" "$LOCKSTEP" bench --seeds 3
fails_with "--launches beside it" 2 "every seed is a launch" "${job[@]}" --to-accuracy 0.5 --launches 3
fails_with "a recipe" 2 "--to-accuracy is not for recipes" "$LOCKSTEP" bench rcc-mnist --to-accuracy 0.5
fails_with "a target of 1.5" 2 "--to-accuracy must be between 0 and 1" "${job[@]}" --to-accuracy 1.5

test_end

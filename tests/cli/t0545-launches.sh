#!/bin/bash
# Launches: every one a process of its own, with the state of the machine beside it; one that dies is kept and marked.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

tiny=(--model mlp --warmup 1 --steps 2)
results=out/results.json

run "$LOCKSTEP" bench "${tiny[@]}" --launches 3 --out out
is "--launches makes a sweep of one point" "$status" 0
like "its table has both spreads" "$out" '^model .* launches +within +between +speedup$'
like "a row" "$out" '^mlp .* [3-6] +[0-9.]+ % +[0-9.]+ % +1.00$'
ok "three launches, and one more for each on a busy machine" json $results \
	'(lambda l: len(l) == 3 + sum(x["again"] for x in l) and sum(not x["again"] for x in l) == 3)(o["points"][0]["launches"])'
ok "a launch that repeats another comes behind a busy one" json $results \
	'all(l[i - 1]["busy"] for l in [o["points"][0]["launches"]] for i, x in enumerate(l) if x["again"])'
ok "load, steal time and wall time of each" json $results \
	'all(x["load"] >= 0 and 0 <= x["steal"] <= 1 and x["wall_s"] > 0 for x in o["points"][0]["launches"])'
ok "three repeats in each" json $results \
	'[r["launch"] for r in o["points"][0]["repeats"]] == [k for k in range(len(o["points"][0]["launches"])) for _ in range(3)]'
ok "the figure is the median of the launches that count" json $results '(lambda p, m: abs(p["samples_per_s"] - m(
	[m([r["samples_per_s"] for r in p["repeats"] if r["launch"] == k]) for k, x in enumerate(p["launches"])
	 if not x["busy"] or all(y["busy"] for y in p["launches"])])) < 1e-6 * p["samples_per_s"])(o["points"][0], __import__("statistics").median)'

cp $results before.json
run "$LOCKSTEP" bench "${tiny[@]}" --launches 2 --out out
ok "fewer launches than there are: nothing is measured" json $results \
	'o["points"][0]["repeats"] == __import__("json").load(open("before.json"))["points"][0]["repeats"]'
ok "and what was measured of the machine stays" json $results \
	'o["machine"] == __import__("json").load(open("before.json"))["machine"]'
run "$LOCKSTEP" bench "${tiny[@]}" --launches 4 --out out
ok "more: again" json $results 'sum(not x["again"] for x in o["points"][0]["launches"]) == 4'

# ---- one that dies ----
"$LOCKSTEP" bench --model mlp --warmup 1 --steps 2000 --repeat 2 --launches 3 --out dies >dies.out 2>dies.err &
sweep=$!
child_of() { pgrep -P "$1" -f 'bench --json.* --repeat 2'; }
ok "the first launch begins" wait_for 60 child_of $sweep
kill -9 "$(child_of $sweep)"
wait $sweep
is "the sweep goes on" "$?" 0
ok "the launch is kept, with its reason" json dies/results.json \
	'"signal 9" in o["points"][0]["launches"][0]["reason"] and o["points"][0]["state"] == "done"'
ok "its figures are those of the others" json dies/results.json 'all(r["launch"] > 0 for r in o["points"][0]["repeats"])'
like "the table says so" "$(cat dies.out)" '\(1 failed\)'
like "and the line of the point" "$(cat dies.err)" 'launches, 1 failed'

fails_with "no launches" 2 "--launches must be at least 1" "$LOCKSTEP" bench "${tiny[@]}" --launches 0
fails_with "no number" 2 "--launches" "$LOCKSTEP" bench "${tiny[@]}" --launches many

test_end

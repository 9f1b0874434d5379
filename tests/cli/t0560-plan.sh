#!/bin/bash
# lockstep plan: tables, JSON, advice, lists, intervals, clusters from files and probes, a profile that it measures itself,
# measured rows that it is fitted to, refusals.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

run timeout 60 "$LOCKSTEP" bench --model cnn --batch-per-device 16 --warmup 1 --steps 3 --repeat 1 --profile-out cnn.json
is "a profile of one device" "$status" 0

plan() { run timeout 60 "$LOCKSTEP" plan "$@"; }
field() { # ROW NAME: of the JSON that was printed
	python3 -c 'import json, sys; print(json.load(sys.stdin)["rows"][int(sys.argv[1])][sys.argv[2]])' "$1" "$2" <<<"$out"
}

plan cnn.json --nodes 1,2,4 --rate 1gbit,10gbit
is "a table" "$status" 0
like "of every number of nodes" "$out" '4 x 1 +10gbit +ps 1'
like "one node has no links" "$out" '1 x 1 +- +local'
like "with the best marked" "$out" "[0-9]\\) \\* +[0-9]+ %"
like "and advice" "$out" 'Twice the nodes would give'
like "and an interval for each" "$out" '4 x 1 .* [0-9]+ \([0-9]+–[0-9]+\)'
is "a lone node is told once" "$(grep -c '1 x 1 ' <<<"$out")" 1
ok "it is not wider than a screen" test "$(wc -L <<<"$(sed '/^Best\|^[0-9]* nodes/d' <<<"$out")")" -le 90

shown=$(grep -cE '^ *[0-9]+ x [0-9]+ .* (10[1-9]|1[1-9][0-9]) %' <<<"$out")
if [ "$shown" -gt 0 ]; then
	like "more than ideal is explained" "$out" '^Above 100 % of ideal: a node of several updates only its shard'
else
	unlike "nothing above ideal, nothing to explain" "$out" '^Above 100 %'
fi

plan cnn.json --nodes 2 --strategy allreduce --bucket-bytes 100
like "small buckets are printed in bytes" "$out" 'buckets of 100 bytes'
plan cnn.json --nodes 2,4 --rate 10mbit --strategy allreduce --json
is "as JSON" "$status" 0
ok "links of 10 Mbit/s are what limits it" test "$(field 0 bottleneck)" = links
ok "more of it on four nodes" python3 -c 'import sys; sys.exit(not float(sys.argv[1]) > float(sys.argv[2]))' "$(field 1 step_ms)" "$(field 0 step_ms)"

# ---- intervals -------------------------------------------------------------------------------------------------------
# A profile without repeats: what is left is the error of known comparisons, bench/planner.csv.
python3 - <<'PYTHON'
import json
o = json.load(open("cnn.json"))
for repeats, spread, path in ((1, 0.0, "once.json"), (5, 0.1, "noisy.json")):
    o["repeats"], o["step_spread"] = repeats, spread
    json.dump(o, open(path, "w"))
PYTHON
cat >interval.py <<'PYTHON'
import csv, json, math, sys
def half(row):
    assert math.isclose(row["samples_per_s"] / row["samples_per_s_low"], row["samples_per_s_high"] / row["samples_per_s"], rel_tol=1e-6)
    return math.log(row["samples_per_s_high"] / row["samples_per_s"])
def quantile(errors):
    errors = sorted(map(abs, errors))
    return errors[min(len(errors), math.ceil(0.9 * (len(errors) + 1) - 1e-9)) - 1]
known = {"compute": [], "others": []}
for row in csv.DictReader(open(sys.argv[1])):
    known["compute" if row["limited_by"] in ("compute", "slowest node") else "others"].append(math.log(float(row["predicted_ms"]) / float(row["measured_ms"])))
alone, links = json.load(open(sys.argv[2]))["rows"]
noisy = json.load(open(sys.argv[3]))["rows"][0]
assert (alone["bottleneck"], links["bottleneck"]) == ("compute", "links"), (alone, links)
assert math.isclose(half(alone), quantile(known["compute"]), rel_tol=1e-6), (half(alone), quantile(known["compute"]))
assert math.isclose(half(links), quantile(known["others"]), rel_tol=1e-6), (half(links), quantile(known["others"]))
own = 2.132 * 0.1 * math.sqrt(1.2) * noisy["compute_ms"] / noisy["step_ms"]
assert math.isclose(half(noisy), math.hypot(half(alone), own), rel_tol=0.01), (half(noisy), own)
PYTHON
plan once.json --nodes 1,2 --rate 10mbit --strategy allreduce --json
cp .out once.out
plan noisy.json --nodes 1 --json
ok "intervals are those of known comparisons, and wider by what repeats differ" \
	python3 interval.py "$SOURCE_DIR/bench/planner.csv" once.out .out
is "docs/planner.md shows these comparisons" "$(sed -nE 's/^\| (cnn|resnet18|bert-mini) \| ([0-9]+) \| ([^|]*[a-z]bit) \| ([0-9.+]+) \| ([a-z]+) \| ([0-9.]+) \| ([0-9.]+) \| [^|]*\| (.*) \|$/\1,\2,\3,\4,\5,\6,\7,\8/p' "$SOURCE_DIR/docs/planner.md" | sort)" \
	"$(sed 1d "$SOURCE_DIR/bench/planner.csv" | sort)"

start=$(date +%s)
plan cnn.json --nodes 10000 --devices 8 --rate 10gbit --spread 0.05 --mtbf 50000
is "ten thousand nodes" "$status" 0
ok "in less than a minute" test $(($(date +%s) - start)) -lt 50
like "servers' links limit servers" "$out" "10000 x 8 .* ps .*servers' links"
unlike "who else would own them" "$out" " ps .*owners' links"
like "with their failures" "$out" 'With failures: one of 10000 nodes every 5 hours. A checkpoint every 190 s \([0-9]+ steps?\) of 1 s, and 30 s per restart, leave 98.8 % of the time: [0-9.]+ samples/s'
plan cnn.json --nodes 4 --strategy allreduce --mtbf 30m --checkpoint-cost 20 --restart-cost 5m
like "failures every few minutes" "$out" 'one of 4 nodes every 0.125 hours. A checkpoint every 174 s \([0-9]+ steps\) of 20 s, and 300 s per restart, leave 47.7 % of'
expected=$out
plan cnn.json --nodes 4 --strategy allreduce --mtbf 0.5 --checkpoint-cost 20s --restart-cost 300
is "units are only units" "$out" "$expected"
plan cnn.json --nodes 4 --strategy allreduce --mtbf 1d --checkpoint-every 2m --json
ok "an interval that is given" test "$(field 0 interval_s)" = 120.0
plan cnn.json --nodes 1000 --strategy allreduce --mtbf 10000 --checkpoint-cost 10 --snapshot-cost 0.5
like "snapshots in memory" "$out" 'With snapshots in memory every [0-9]+ steps \(--snapshot-every [0-9]+, 1[89][0-9] s\) of 0.5 s: a failure loses 9[0-9.]+ s of work'
like "and what two lost neighbours cost" "$out" 'two neighbours are lost before the next snapshot, one failure in 8.[12][0-9]*e\+04, the run goes on from the checkpoint on disk and loses 1.2[0-9]e\+05 s'
plan cnn.json --nodes 1 --mtbf 10000 --snapshot-cost 0.5
unlike "one node has nobody to keep a copy" "$out" 'snapshots in memory'
plan cnn.json --nodes 4 --strategy allreduce --snapshot-cost 1
like "snapshots without failures" "$err" "--snapshot-cost has no effect: nodes do not fail without --mtbf"
plan cnn.json --nodes 4 --strategy allreduce --restart-cost 5
like "restarts without failures" "$err" "--restart-cost has no effect: nodes do not fail without --mtbf"
fails_with "no time" 2 "--mtbf: 'x' is not a number" "$LOCKSTEP" plan cnn.json --mtbf xh
fails_with "a unit alone" 2 "--mtbf: 'h' is not a number" "$LOCKSTEP" plan cnn.json --mtbf h

cat >mixed.json <<'TEXT'
{ "format": "lockstep cluster", "version": 2,
  "nodes": [ { "name": "new", "count": 3, "devices": 2, "gbit_per_s": 10 },
             { "name": "old", "count": 1, "devices": 1, "speed": 0.5, "gbit_per_s": 1 } ] }
TEXT
plan cnn.json --cluster mixed.json --strategy allreduce --json
is "mixed nodes" "$status" 0
is "all of them" "$(field 0 nodes) $(field 0 devices)" "4 7"
equal=$(field 0 samples_per_s)
plan cnn.json --cluster mixed.json --strategy allreduce --micro-batches 4 --share auto --json
ok "do more when leaves follow speeds" python3 -c 'import sys; sys.exit(not float(sys.argv[1]) > 1.3 * float(sys.argv[2]))' "$(field 0 samples_per_s)" "$equal"

sed 's/"devices": 2, "gbit/"devices": 2, "speed": 0.25, "gbit/; s/"speed": 0.5/"speed": 0.25/' mixed.json >slow.json
plan cnn.json --cluster mixed.json --strategy allreduce --replayed --json
fast=$(field 0 compute_ms)
plan cnn.json --cluster slow.json --strategy allreduce --replayed --json
ok "replayed devices have the speeds that the cluster says" \
	python3 -c 'import sys; sys.exit(not 3.45 < float(sys.argv[1]) / float(sys.argv[2]) < 3.55)' "$(field 0 compute_ms)" "$fast"
run timeout 60 "$LOCKSTEP" probe --quick --json
printf '%s' "$out" >probe.json
plan cnn.json --cluster probe.json
is "what a probe printed is a cluster" "$status" 0
run timeout 60 "$LOCKSTEP" probe --quick --devices 3 --json
printf '%s' "$out" >three.json
plan cnn.json --cluster three.json --json
is "with the devices that it was given" "$(field 0 nodes) $(field 0 devices)" "1 3"
plan cnn.json --cluster three.json --devices 2 --json
is "unless others are asked for" "$(field 0 devices)" 2
plan cnn.json --cluster mixed.json --strategy allreduce
like "a mean where they differ" "$out" '^4 x 1\.75 '
python3 - <<'PYTHON'
import copy, json
o = json.load(open("probe.json"))
slow = copy.deepcopy(o["nodes"][0])
slow["gflop_per_s_core"] /= 4
slow["link"] = {"to_gbit_per_s": 9, "from_gbit_per_s": 9, "both_gbit_per_s": 9, "round_trip_us": 100}
o["nodes"].append(slow)
json.dump(o, open("two.json", "w"))
slow["replay_speed"] = 0.25
json.dump(o, open("replayed.json", "w"))
PYTHON
plan cnn.json --cluster two.json --strategy allreduce --json
probed=$(field 0 compute_ms)
plan cnn.json --cluster two.json --strategy allreduce --replayed --json
ok "a replay does not have the speeds that were probed" \
	python3 -c 'import sys; sys.exit(not 2.4 < float(sys.argv[1]) / float(sys.argv[2]) < 2.6)' "$probed" "$(field 0 compute_ms)"
plan cnn.json --cluster replayed.json --strategy allreduce --replayed --json
ok "but one that was added to the file" \
	python3 -c 'import sys; sys.exit(not 0.99 < float(sys.argv[1]) / float(sys.argv[2]) < 1.01)' "$probed" "$(field 0 compute_ms)"

# ---- measured here ---------------------------------------------------------------------------------------------------
plan --model mlp --batch-per-device 16 --nodes 1,2 --json --profile-out kept.json
is "a model is measured first" "$status" 0
like "says so" "$err" '^lockstep plan: measuring mlp on one device$'
like "and for how long" "$err" 'a step of 16 samples takes about .* ms: [35] repeats of [0-9]+ steps'
like "and what it was" "$err" '[0-9.]+ samples/s; repeats are within [0-9.]+ %$'
measured=$(cat .out)
ok "the forecast is of that model" python3 -c '
import json, sys
o, p = json.loads(sys.argv[1]), json.load(open("kept.json"))
sys.exit(not (o["model"] == "mlp" and o["batch_per_device"] == 16 and len(o["rows"]) == 3 and p["repeats"] >= 3 and
              p["micro_batch"] == 16 and abs(o["device_samples_per_s"] * p["step_s"] / 16 - 1) < 0.01))' "$measured"
plan kept.json --nodes 1,2 --json
is "the kept profile gives the same forecast" "$(cat .out)" "$measured"
for precision in bf16 bf16-amx; do
	plan --model mlp --precision $precision --batch-per-device 16 --nodes 2 --strategy allreduce --json --profile-out $precision.json
	is "measured in $precision" "$status" 0
	ok "which the forecast and the profile have" python3 -c '
import json, sys
o, p = json.loads(sys.argv[2]), json.load(open(sys.argv[1] + ".json"))
sys.exit(not (o["precision"] == p["precision"] == sys.argv[1] and abs(o["device_samples_per_s"] * p["step_s"] / 16 - 1) < 0.01))' \
		"$precision" "$(cat .out)"
	plan $precision.json --nodes 2 --strategy allreduce
	like "a table says it" "$out" "^mlp, batch 16, adam, products in $precision: "
done
fails_with "an unknown precision" 2 "precision 'bf17'.*did you mean 'bf16'" "$LOCKSTEP" plan --model mlp --precision bf17 --nodes 2
plan kept.json --precision bf16
ok "a profile has its own" test "$status" != 0
like "with a message" "$err" '--precision is about a measurement, which --model asks for'
plan --model transformer --layers 1 --width 64 --seq-len 8 --batch-per-device 4 --nodes 2 --strategy allreduce
is "text, of a size of its own" "$status" 0
like "with its batch" "$out" '^transformer, batch 4, adam'

# ---- fitted to measured rows -----------------------------------------------------------------------------------------
plan --fit oneflow-bert
is "a published table" "$status" 0
like "by its title" "$out" '^OneFlow BERT-base pretraining'
like "rows of one node are fitted" "$out" '1 x 8 .* 0\.0 % +fitted$'
like "others have an interval, an error, and whether it is inside" "$out" \
	'^bert-base +96 +4 x 8 +100gbit +4456 +[0-9]+ \([0-9]+–[0-9]+\) +[-+][0-9.]+ % +inside$'
like "the whole in a sentence" "$out" '^Fitted on 8 rows of one node\. 7 predicted rows were measured: mean error [0-9.]+ %, worst [0-9.]+ %, 7 inside the interval\.$'
is "what was left out: file, line, reason" "$err" \
	"lockstep plan: published/oneflow-bert.csv:23: left out: no row of one node for bert-base, batch 48"
plan --fit oneflow-bert --nodes 8 --rate 25gbit --json
is "with other numbers of nodes, as JSON" "$status" 0
ok "all of it" python3 -c '
import json, sys
o = json.load(sys.stdin)
more = [r for r in o["rows"] if r["nodes"] == 8]
sys.exit(not ((o["format"], o["compared"], o["inside"]) == ("lockstep fit", 7, 7) and len(o["rows"]) == 15 + 4 == 15 + len(more) and
              all(r["samples_per_s_low"] < r["samples_per_s"] < r["samples_per_s_high"] for r in more) and
              all(r["devices"] == 64 and r["measured_samples_per_s"] == 0 for r in more) and len(o["left_out"]) == 1))' <<<"$out"

cat >mine.csv <<'TEXT'
title: Mine
setting: made up

model,hosts,devices,batch_per_device,link,samples_per_s
cnn,a,1,64,1gbit,1000
cnn,a,2,64,1gbit,5000
cnn,a,1,64,1gbit,1000
cnn,b,1,64,1gbit,NaN
resnet9,a,1,64,1gbit,10
cnn,a,1+1,64,1gbit,1900
cnn,a,1+1+1,64,1gbit,-3
TEXT
plan --fit mine.csv
is "a table of one's own, with rows that are wrong" "$status" 0
like "the others are predicted" "$out" '2 x 1 .* inside|2 x 1 .* outside'
is "and each is named with its line and the reason" "$(sed "s/Known: mlp.*/Known: .../" <<<"$err")" "lockstep plan: mine.csv:6: left out: 5000 samples/s with 2 devices are 2.50 times what line 5 allows, 1000 with 1
lockstep plan: mine.csv:7: left out: the same row as line 5
lockstep plan: mine.csv:8: left out: samples_per_s is 'NaN', not a number
lockstep plan: mine.csv:9: left out: $("$LOCKSTEP" bench --model resnet9 2>&1 | sed -n 's/^lockstep bench: //p' | sed "s/Known: mlp.*/Known: .../")
lockstep plan: mine.csv:11: left out: samples_per_s is -3, not between 1e-09 and 1e+15"

# A sweep: what one node does, and what two do with each strategy; of this file the planner reads the first alone.
python3 - <<'PYTHON'
import json
def point(shape, rate, strategy="local", servers=0, link="", state="done", speed=0.0, hosts=("node1", "node2")):
    nodes = shape.count("+") + 1
    devices = sum(map(int, shape.split("+")))
    job = dict(kind="bench", model="cnn", data="", optimizer="adam", shape=shape, nodes=nodes, devices=devices, threads=1,
               servers=servers, batch_per_device=64, strategy=strategy, wire="fp32", rate=link, replay=0, warmup=1, steps=1,
               epochs=0, samples=0, arguments="", speed=speed)
    names = hosts if nodes > 1 or speed else ("h",)
    shown = [dict(host=h, devices=1, compute_ms=1.0, exposed_ms=0.0, wait_ms=0.0, sent_bytes=0.0, received_bytes=0.0) for h in names[:nodes]]
    return dict(key="%s/%s/%s/%g/%s" % (shape, strategy, link, speed, "+".join(hosts)), job=job, state=state, reason="" if state == "done" else "no root here",
                tokens_per_s=0.0, compute_ms=60.0, exposed_ms=0.0, wait_ms=0.0, update_ms=1.0, gradient_bytes=1.69e6,
                gflop_per_s=1.0, peak_rss_bytes=1.0, accuracy=0.0, nodes=shown, rates=[], epochs=[],
                repeats=[dict(samples_per_s=r, step_ms=1.0, wall_s=1.0) for r in (rate, 1.01 * rate, 0.99 * rate)])
points = [point("1", 1000.0), point("1+1", 1980.0, "allreduce", 0, "10gbit"), point("1+1", 1700.0, "ps", 1, "1gbit"),
          point("1+1", 1900.0, "ps-async", 1, "1gbit"), point("1+1", 1900.0, "allreduce", 0, ""),
          point("1+1+1", 1.0, "allreduce", 0, "1gbit", "skipped"),
          point("1", 500.0, speed=0.5, hosts=("node2",)), point("1", 990.0, speed=0.5, hosts=("node1",)),
          point("1+1", 980.0, "allreduce", 0, "10gbit", speed=0.5),
          point("1+1", 980.0, "allreduce", 0, "10gbit", speed=0.5, hosts=("node1", "node3"))]
machine = dict(host="h", cpu="", system="", lockstep="", kernels="", isa="", mpi="", cores=8, memory_bytes=1, gflop_per_s_core=1.0)
import os
os.mkdir("sweep")
json.dump(dict(format="lockstep results", version=2, sweep="made-up", title="A sweep", started="now", quick=0, machine=machine,
               points=points), open("sweep/results.json", "w"))
PYTHON
plan --fit sweep
is "a sweep, by its directory" "$status" 0
like "allreduce at 10 Gbit/s is limited by computing" "$out" '2 x 1 +10gbit +1980 +20[0-9]{2} \(.* inside$'
like "nodes of unequal speed, each with a row of its own" "$out" 'node1\+node2 +2 x 1 +10gbit +980 +10[01][0-9] \(.* inside$'
like "parameter servers are nodes of their own" "$out" '2 x 1 \+ 1 +1gbit ps +1700 +'
is "points that cannot be predicted are named" "$err" "lockstep plan: sweep/results.json: point 4: left out: strategy ps-async cannot be planned: its workers do not wait for each other, and a plan simulates steps that all nodes complete together
lockstep plan: sweep/results.json: point 5: left out: the rate of its links is not in the table, and none was given
lockstep plan: sweep/results.json: point 6: left out: no root here
lockstep plan: sweep/results.json: point 10: left out: no row of one node for cnn, batch 64, adam, 1 thread on node3"
plan --fit sweep/results.json --rate 1gbit
like "with a rate for those that have none" "$out" '2 x 1 +1gbit +1900 '

refused() { # NAME PATTERN ARGUMENT...
	plan "${@:3}"
	ok "$1 is refused" test "$status" != 0
	like "$1: why" "$err" "$2"
	is "$1: nothing else is printed" "$out" ""
}
printf '{"format": "lockstep cluster", "version": 2, "nodes": [{"devcies": 3}]}' >typo.json
printf '{\n"format": "lockstep cluster",\n"version": 2,,\n' >broken.json
sed 's/"forward_s": [0-9.e-]*/"forward_s": -1/' cnn.json >bad.json
refused "no profile" "PROFILE, --model or --fit is missing" --nodes 2
refused "two sources" "exclude each other" cnn.json --model cnn
refused "a measurement of nothing" "--threads is about a measurement, which --model asks for" cnn.json --threads 2
refused "what a table says" "--strategy has no effect with --fit" --fit oneflow-bert --strategy ps
refused "an unknown table" "unknown set of published figures 'onflow-bert'; did you mean 'oneflow-bert'" --fit onflow-bert
refused "several tables" "name one" --fit published
refused "a directory without a sweep" "without results.json" --fit .
refused "a profile that is not there" 'nowhere.json' nowhere.json
refused "a profile with a bad field" 'bad.json: layers\[0\].forward_s is -1' bad.json
refused "a misspelt field" 'typo.json: nodes\[0\].devcies is not a field of this file; did you mean devices' cnn.json --cluster typo.json
refused "a line that is no JSON" 'broken.json:3: not acceptable JSON' cnn.json --cluster broken.json
refused "a rate without a unit" "'7' is not a rate" cnn.json --rate 7
refused "an unknown model" "unknown model .renset18.; did you mean .resnet18." --model renset18
refused "a strategy that is none" "unknown strategy 'ring'. Known: allreduce, ps, ps-async, mpi" cnn.json --strategy ring
refused "one that is summed by the library" 'strategy mpi cannot be planned: the MPI library chooses how it sums.*; --strategy can be allreduce,ps' \
	cnn.json --strategy allreduce,mpi
refused "one without common steps" 'strategy ps-async cannot be planned: its workers do not wait for each other' cnn.json --strategy ps-async
refused "a wire that is none" "unknown wire 'fp8'" cnn.json --wire fp8
like "help lists those that can be" "$("$LOCKSTEP" plan --help)" '--strategy LIST +predict allreduce or ps \(default: all\)$'
refused "nodes that are no number" "nodes.*many" cnn.json --nodes 2,many
refused "a list with a hole" "nodes '2,,4' is not a list" cnn.json --nodes 2,,4
refused "servers only" '2 servers of 2 nodes: at least one node must compute' cnn.json --nodes 2 --strategy ps --servers 2
test_end

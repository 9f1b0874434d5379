#!/bin/bash
# lockstep plan: tables, JSON, advice, lists, clusters from files and probes, refusals.
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
like "with the best marked" "$out" "[0-9] \\* +[0-9]+ %"
like "and advice" "$out" 'Twice the nodes would give'
is "a lone node is told once" "$(grep -c '1 x 1 ' <<<"$out")" 1
ok "it is not wider than a screen" test "$(wc -L <<<"$(sed '/^Best\|^[0-9]* nodes/d' <<<"$out")")" -le 90

plan cnn.json --nodes 2,4 --rate 10mbit --strategy allreduce --json
is "as JSON" "$status" 0
ok "links of 10 Mbit/s are what limits it" test "$(field 0 bottleneck)" = links
ok "more of it on four nodes" python3 -c 'import sys; sys.exit(not float(sys.argv[1]) > float(sys.argv[2]))' "$(field 1 step_ms)" "$(field 0 step_ms)"

start=$(date +%s)
plan cnn.json --nodes 10000 --devices 8 --rate 10gbit --spread 0.05 --mtbf 50000
is "ten thousand nodes" "$status" 0
ok "in less than a minute" test $(($(date +%s) - start)) -lt 50
like "servers' links limit servers" "$out" "10000 x 8 .* ps .*servers' links"
unlike "who else would own them" "$out" " ps .*owners' links"
like "with their failures" "$out" 'With failures: [0-9.]+ % of the time is useful, with a checkpoint every [0-9]+ s'

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
PYTHON
plan cnn.json --cluster two.json --strategy allreduce --json
probed=$(field 0 compute_ms)
plan cnn.json --cluster two.json --strategy allreduce --replayed --json
ok "a replay does not have the speeds that were probed" \
	python3 -c 'import sys; sys.exit(not 2.4 < float(sys.argv[1]) / float(sys.argv[2]) < 2.6)' "$probed" "$(field 0 compute_ms)"

refused() { # NAME PATTERN ARGUMENT...
	plan "${@:3}"
	ok "$1 is refused" test "$status" != 0
	like "$1: why" "$err" "$2"
	is "$1: nothing else is printed" "$out" ""
}
printf '{"format": "lockstep cluster", "version": 2, "nodes": [{"devcies": 3}]}' >typo.json
printf '{\n"format": "lockstep cluster",\n"version": 2,,\n' >broken.json
sed 's/"forward_s": [0-9.e-]*/"forward_s": -1/' cnn.json >bad.json
refused "no profile" "PROFILE|operand" --nodes 2
refused "a profile that is not there" 'nowhere.json' nowhere.json
refused "a profile with a bad field" 'bad.json: layers\[0\].forward_s is -1' bad.json
refused "a misspelt field" 'typo.json: nodes\[0\].devcies is not a field of this file; did you mean devices' cnn.json --cluster typo.json
refused "a line that is no JSON" 'broken.json:3: not acceptable JSON' cnn.json --cluster broken.json
refused "a rate without a unit" "'7' is not a rate" cnn.json --rate 7
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

#!/bin/bash
# Sweeps over nodes: a point on two nodes is measured in an emulated cluster with links of the rate asked for, which is
# gone afterwards, however the sweep ended.
# shellcheck source=tests/lab/lib.sh
. "$(dirname "$0")/lib.sh"

lab_needed
unset LOCKSTEP_LAB
export LOCKSTEP_LAB_TOOL=$lab

json_get() { # FILE EXPRESSION: its value for o
	python3 -c 'import json, sys
o = json.load(open(sys.argv[1]))
print(eval(sys.argv[2]))' "$@"
}

own_labs() { # those that a sweep started by this script may have made
	local pid
	for pid in "$@"; do
		"$lab" status --name "bench-$pid" 2>/dev/null
		ip netns list | grep -F "lockstep-lab.bench-$pid"
	done
}

# Where a sweep fails to take its cluster down, this script does.
pids=()
clean() {
	local one
	for one in "${pids[@]}"; do
		"$lab" down --name "bench-$one" 2>/dev/null
	done
	test_clean
}
trap clean EXIT

sweep() { # OPTION...: as run, and $pid
	"$LOCKSTEP" bench "$@" >.out 2>.err &
	pid=$!
	pids+=("$pid")
	wait $pid
	status=$?
	out=$(cat .out)
	err=$(cat .err)
}

# ---- a rate ----
sweep --model mlp --nodes 1,2 --batch-per-device 64 --warmup 2 --steps 8 --repeat 3 --rate 100mbit,1gbit --strategy allreduce,ps \
	--wire fp32,bf16 --out out
is "points on two nodes are measured" "$status" 0
is "one node, and each rate with each strategy and wire, and with a server on one node" \
	"$(json_get out/results.json 'len([p for p in o["points"] if "/replayed/" not in p["key"]])')" 13
ok "and one device replayed, where some of them are" json out/results.json \
	'len([p for p in o["points"] if "/replayed/" in p["key"]]) == any(p["job"]["replay"] for p in o["points"])'
ok "all are done" json out/results.json 'all(p["state"] == "done" for p in o["points"])'
ok "a node has the name it has in the lab" json out/results.json \
	'all([n["host"] for n in p["nodes"]][:2] == ["node1", "node2"] for p in o["points"] if len(p["nodes"]) > 1)'
ok "servers are nodes beside the others" json out/results.json \
	'all(len(p["nodes"]) == p["job"]["nodes"] + p["job"]["servers"] and p["nodes"][-1]["devices"] == (p["job"]["strategy"] != "ps") for p in o["points"])'
cat >limits.py <<'PYTHON'
import json
for p in json.load(open("out/results.json"))["points"]:
    bits = {"100mbit": 1e8, "1gbit": 1e9}.get(p["job"]["rate"])
    if bits and p["samples_per_s"] > 0:
        sent = max(n["sent_bytes"] for n in p["nodes"])
        # half a millisecond's worth of bytes passes at once
        assert 8 * sent / bits < 1.3 * p["step_ms"] / 1000 + 0.001, (p["key"], sent, p["step_ms"])
PYTHON
ok "no link carries more than its rate" python3 limits.py
ok "a tenth of the rate is slower" json out/results.json \
	'(lambda r: r["100mbit"] < 0.5 * r["1gbit"])({p["job"]["rate"]: p["samples_per_s"] for p in o["points"] if p["job"]["nodes"] == 2 and p["job"]["strategy"] == "allreduce" and p["job"]["wire"] == "fp32"})'
is "the lab is gone" "$(own_labs $pid)$(ls out/lab 2>/dev/null)" ""
like "rows of the table" "$out" '^mlp +fp32 +2 +1 +64 +ps bf16 +1gbit +(measured|simulated) +[0-9.]+'
sweep --model mlp --nodes 2 --batch-per-device 64 --warmup 1 --steps 4 --repeat 1 --strategy ps-async,mpi --out others
is "other strategies are measured, too" "$status" 0
ok "under their names, with their servers" json others/results.json \
	'[(p["job"]["strategy"], p["job"]["servers"], p["state"]) for p in o["points"] if p["job"]["nodes"] == 2] == [("ps-async", 1, "done"), ("mpi", 0, "done")]'

# ---- replay, training, unequal nodes ----
cores=$(python3 -c 'import os; print(len(os.sched_getaffinity(0)))')
cat >nodes.json <<JSON
{ "format": "lockstep recipe", "version": 2, "title": "t", "table": "walltime", "warmup": 1, "steps": 4, "repeat": 1,
  "points": [
    { "model": "mlp", "batch_per_device": 16, "devices": "$cores+1" },
    { "kind": "train", "model": "mlp", "data": "glyphs", "batch_per_device": 32, "samples": 640, "epochs": 2, "nodes": 2,
      "speeds": "1,0.5", "arguments": "--log-every 5 --test-samples 100" },
    { "kind": "train", "model": "mlp", "data": "glyphs", "batch_per_device": 32, "samples": 640, "epochs": 1, "on": [1, 2],
      "speeds": "1,0.5", "arguments": "--log-every 5 --test-samples 100" },
    { "kind": "train", "model": "mlp", "data": "glyphs", "batch_per_device": 32, "samples": 640, "epochs": 1, "on": 3 } ] }
JSON
if [ "$cores" -lt 2 ]; then
	skip "a recipe of nodes" "one core"
else
	sweep nodes.json --out nodes
	is "a recipe of nodes, one of which needs hosts" "$status" 3
	is "what is replayed, and what is not" \
		"$(json_get nodes/results.json '" ".join(p["state"] + str(p["job"]["replay"]) for p in o["points"])')" \
		"done1 done0 done0 done0 skipped0 done1"
	is "rows of single nodes" \
		"$(json_get nodes/results.json '" ".join(p["nodes"][0]["host"] for p in o["points"][2:4])')" "node1 node2"
	ok "training on two nodes has a row of each" json nodes/results.json \
		'[n["devices"] for n in o["points"][1]["nodes"]] == [1, 1] and o["points"][1]["nodes"][0]["compute_ms"] > 0'
	like "a row of a node needs hosts" "$(json_get nodes/results.json 'o["points"][4]["reason"]')" 'need --hosts'
	is "nothing is left of it" "$(own_labs $pid)" ""
fi

# ---- hosts ----
# a sweep with --hosts needs no lab, and takes the first of them
run "$LOCKSTEP" bench --model mlp --batch-per-device 16 --nodes 1,2,3 --hosts localhost,localhost --warmup 1 --steps 3 --repeat 2 --out hosts
is "with --hosts, of which there are too few" "$status" 3
is "as many nodes as there are hosts" "$(json_get hosts/results.json '" ".join(p["state"] for p in o["points"])')" \
	"done done skipped"
like "else it is told" "$(json_get hosts/results.json 'o["points"][2]["reason"]')" 'needs 3 hosts; --hosts names 2'

# ---- stopping ----
slow=(--model mlp --batch-per-device 64 --nodes 2 --rate 1mbit --warmup 1 --steps 100000 --repeat 1)
lab_runs() { [ -n "$("$lab" ps node2 --name "bench-$pid" 2>/dev/null)" ]; }
for signal in INT:130 TERM:143; do
	# a script's background jobs ignore SIGINT, and a sweep keeps to that: give it back
	env --default-signal=INT "$LOCKSTEP" bench "${slow[@]}" --out stopped >stopped.out 2>stopped.err &
	pid=$!
	pids+=("$pid")
	ok "a measurement is running (${signal%:*})" wait_for 60 lab_runs
	kill "-${signal%:*}" $pid
	sleep 0.2
	kill "-${signal%:*}" $pid 2>/dev/null # impatience does not make it leave the cluster behind
	wait $pid
	is "it exits with ${signal#*:}" $? "${signal#*:}"
	is "and the lab is gone" "$(own_labs $pid)$(ls stopped/lab 2>/dev/null)" ""
	ok "its results can be read" json stopped/results.json 'o["points"][0]["state"] == "pending"'
done

# A copy of the directory has a copy of the mark: a sweep there must not touch the cluster, neither while its owner runs
# nor later. One that is killed leaves its cluster; the next in the same directory takes it down.
short=(--model mlp --batch-per-device 64 --warmup 1 --steps 2 --repeat 1)
"$LOCKSTEP" bench "${slow[@]}" --out stopped >stopped.out 2>stopped.err &
pid=$!
pids+=("$pid")
ok "a measurement is running (KILL)" wait_for 60 lab_runs
cp -r stopped copy
run "$LOCKSTEP" bench "${short[@]}" --out copy
is "a sweep in a copy of the directory" "$status" 0
like "says that the mark is of another" "$err" 'copy/lab is not of this directory'
ok "and leaves the cluster of the sweep that runs" lab_runs
is "the copied mark is gone" "$(ls copy/lab 2>/dev/null)" ""
mkdir alive
sed '$d' stopped/lab >alive/lab
echo "directory $(stat -c %i alive) $(realpath alive)" >>alive/lab
run "$LOCKSTEP" bench "${short[@]}" --out alive
like "a mark whose owner runs" "$err" "process $pid still uses the emulated nodes bench-$pid"
ok "is left, too" lab_runs
kill -9 $pid
wait $pid 2>/dev/null
is "the cluster's name is kept" "$(head -n 1 stopped/lab)" "bench-$pid"
cp -r stopped copy2
run "$LOCKSTEP" bench "${short[@]}" --out copy2
ok "a copy is no reason to remove it after its owner's death" "$lab" status --name "bench-$pid"
run "$LOCKSTEP" bench "${short[@]}" --out stopped
is "the next sweep" "$status" 0
is "takes down what was left" "$(own_labs $pid)$(ls stopped/lab 2>/dev/null)" ""

test_end

#!/bin/bash
# --elastic: nodes die, stop, are cut off and come back; the run goes on to the bits of one that nothing happened to.
# shellcheck disable=SC2317 # functions are called by ok and wait_for
# shellcheck source=tests/lab/lib.sh
. "$(dirname "$0")/lib.sh"

timeout_s=4
job=(--model mlp --data glyphs --samples 330 --test-samples 100 --batch 64 --micro-batch 8 --schedule constant --eval-every 0
	--ckpt-every 25 --log-every 1 --timeout "$timeout_s" --threads 1) # of three nodes: more would spin, waiting for a core
lab_up 3 --rate 1gbit

declare -A whole # by steps
for steps in 300 1500; do
	run "$LOCKSTEP" train "${job[@]}" --devices 1 --steps $steps
	whole[$steps]=$(fingerprint "$out")
	like "a run of $steps steps that nothing happens to" "$status ${whole[$steps]}" '^0 [0-9a-f]{16}$'
done

begin_elastic() { # RUN STEPS [OPTION]...: in the background, until it has a checkpoint
	name=$1 steps=$2 expected=${whole[$2]}
	shift 2
	: >bg.out
	"$lab" run "$LOCKSTEP" train --elastic --hosts a:1,b:1,c:1 "${job[@]}" --steps $steps --run "$name" "$@" >bg.out 2>bg.err &
	job_id=$!
	ok "$name: a checkpoint is written" wait_for 30 has_checkpoint "$name"
	number=$(cut -d ' ' -f 1 "$name/.snapshots")
	began=$(date +%s%N)
}
said() { grep -qE "^Elastic: $1" bg.out; }
ends_right() {
	wait_bounded $job_id
	is "$name: ends with the same bits" "$? $(fingerprint "$(cat bg.out)" | tail -n 1)" "0 $expected"
	[ "$(fingerprint "$(cat bg.out)" | tail -n 1)" = "$expected" ] || test_note "$(grep ^Elastic bg.out)" "$(cat bg.err)"
	ok "$name: nothing is left on any host" wait_for 30 lab_is_empty
	like "$name: snapshots had a number" "$number" '^[0-9a-f]{16}$'
	is "$name: none is left in memory" "$(lab_memory "$number")" ""
	is "$name: nothing half written is left" "$(find "$name/ckpt" -mindepth 1 -maxdepth 1 ! -name 'step-*')" ""
}
first_new_step() { # milliseconds from $began to the first step of the second start
	python3 - "$name" "$began" <<'END'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1] + "/metrics.jsonl")]
start = next(i for i, l in enumerate(lines) if l["kind"] == "start" and l["generation"] == 2)
step = next(l for l in lines[start:] if l["kind"] == "step")
print(round(1000 * step["time"] - int(sys.argv[2]) / 1e6))
END
}

# ---- a node dies -----------------------------------------------------------------------------------------------------
for host in b a; do
	begin_elastic "killed-$host" 300
	kill -9 "$(node_on $host)"
	ok "$name: the run goes on" wait_for 30 said 'continuing on 3 nodes: a:1,b:1,c:1$'
	ends_right
	like "$name: says who was lost" "$(cat bg.out)" "^Elastic: node [01] \($host\) was ended by a signal$"
	took=$(first_new_step)
	ok "$name: the first new step comes soon ($took ms)" test "$took" -lt 8000
done
ok "the timeline is in metrics.jsonl" json killed-a/metrics.jsonl \
	'[(l["generation"], l["nodes"], l["hosts"]) for l in o if l["kind"] == "start"] == [(1, 3, "a:1,b:1,c:1"), (2, 3, "a:1,b:1,c:1")]'
ok "with where its state is from" json killed-a/metrics.jsonl \
	'[l["source"] for l in o if l["kind"] == "start"] in (["new", "snapshot"], ["new", "checkpoint"])' # whichever is newer
ok "why starts ended" json killed-a/metrics.jsonl '[l["outcome"] for l in o if l["kind"] == "stop"] == ["lost", "ended"]'
ok "and who was lost" json killed-a/metrics.jsonl \
	'[(l["host"], l["event"], l["why"]) for l in o if l["kind"] == "host"] == [("a", "lost", "node 0 (a) was ended by a signal")]'
like "killed-a: says where it went on from" "$(cat bg.out)" \
	'^Elastic: training from step [0-9]+ \((snapshots in memory|checkpoint on disk)\), [0-9]+ steps? computed again$'

# ---- a node is stopped -----------------------------------------------------------------------------------------------
begin_elastic stopped 300
kill -STOP "$(node_on c)"
ok "stopped: the run goes on" wait_for $((timeout_s + 30)) said 'continuing on 3 nodes'
ends_right

# MPI_Init() waits for all nodes, and nobody watches anybody before it is done. A node has its guard just before.
: >bg.out
name=stopped-early expected=${whole[300]}
"$lab" run "$LOCKSTEP" train --elastic --hosts a:1,b:1,c:1 "${job[@]}" --steps 300 --run $name >bg.out 2>bg.err &
job_id=$!
has_guard() { [ "$("$lab" ps b | while read -r pid; do ps -o comm= -p "$pid"; done | grep -c '^lockstep-guard$')" = 1 ]; }
ok "$name: a node begins" wait_for 30 has_guard
kill -STOP "$(node_on b)"
ok "$name: the run goes on" wait_for $((2 * timeout_s + 30)) said 'continuing on 3 nodes'
number=$(wait_for 30 test -s $name/.snapshots && cut -d ' ' -f 1 $name/.snapshots)
ends_right

# ---- a host is cut off, and comes back -------------------------------------------------------------------------------
begin_elastic cut 1500
"$lab" cut b
ok "cut: the run goes on without it" wait_for $((timeout_s + 30)) said 'continuing on 2 nodes: a:1,c:1$'
"$lab" mend b
ok "cut: and with it when it is back" wait_for 30 said 'continuing on 3 nodes: a:1,b:1,c:1$'
ends_right
ok "cut: says that it is back" said 'host b came back$'
ok "cut: the timeline has it" json cut/metrics.jsonl \
	'[(l["host"], l["event"]) for l in o if l["kind"] == "host"] == [("b", "lost"), ("b", "silent"), ("b", "back")]'
ok "cut: and how many trained" json cut/metrics.jsonl '[l["nodes"] for l in o if l["kind"] == "start"] == [3, 2, 3]'
ok "cut: the report draws it" "$LOCKSTEP" report cut --out cut.html
like "cut: bars and losses" "$(grep -c '<rect class="part p0"' cut.html) $(grep -c 'class="cross' cut.html)" '^(9|1[0-9]) [3-9]$'

# ---- too few ---------------------------------------------------------------------------------------------------------
begin_elastic waits 300 --min-nodes 3
"$lab" cut c
ok "too few: the run waits" wait_for $((timeout_s + 30)) said 'waiting for hosts: 2 of 3 available$'
"$lab" mend c
ok "too few: and goes on when there are enough" wait_for 30 said 'continuing on 3 nodes'
ends_right

# ---- the supervisor dies ---------------------------------------------------------------------------------------------
begin_elastic orphaned 300
kill -9 "$(launcher)"
wait_bounded $job_id 2>/dev/null
ok "orphaned: nothing is left on any host" wait_for 30 lab_is_empty
run "$lab" run "$LOCKSTEP" train --elastic --hosts a:1,b:1 --run orphaned --resume --steps $steps
is "orphaned: --resume goes on to the same bits" "$status $(fingerprint "$out")" "0 $expected"

# ---- a stop on request -----------------------------------------------------------------------------------------------
# Nodes that stop together wait for nobody: a pause would delay every start with other hosts. The machine may be busy, so the
# quickest of three counts.
quickest=999999
for attempt in 1 2 3; do
	begin_elastic "asked-$attempt" 1500
	began=$(date +%s%N)
	kill -TERM "$(launcher)" # behind & a shell has SIGINT ignored
	wait_bounded $job_id
	took=$((($(date +%s%N) - began) / 1000000))
	quickest=$((took < quickest ? took : quickest))
	[ $quickest -ge 2700 ] || break
done
ok "a stop on request takes no pause ($quickest ms)" test $quickest -lt 2700

# ---- lists -----------------------------------------------------------------------------------------------------------
fails() { # NAME STATUS PATTERN OPTION...
	local name=$1 code=$2 pattern=$3
	shift 3
	fails_with "$name" "$code" "$pattern" timeout 60 "$lab" run "$LOCKSTEP" train --elastic "${job[@]}" --steps 5 "$@"
}
echo '# nobody' >nobody
fails "a file that names nobody" 2 'nobody names no host' --hosts @nobody --run r
fails "a file without a name" 2 "hosts: a file's name is missing after @" --hosts @ --run r
fails "a host twice" 2 "'a' is named twice" --hosts a:1,b:1,a:1 --run r
fails "more nodes than hosts" 2 '--min-nodes 3 of 2 hosts' --hosts a:1,b:1 --min-nodes 3 --run r
fails "no run directory" 2 '--elastic needs --run' --hosts a:1,b:1
fails "no hosts" 2 '--elastic needs --hosts or --discover' --run r
fails "a command that fails" 1 "'exit 7' failed with status 7" --discover 'exit 7' --run r
fails "batches that follow devices" 2 '--elastic: the number of devices changes' --hosts a:1,b:1 --run r --batch-per-device 8
ok "and none of them leaves a run" test ! -e r
run timeout 60 "$lab" run "$LOCKSTEP" train --elastic "${job[@]}" --steps 30 --hosts a:1,nowhere:1,b:1 --run some
is "a host that cannot be reached at the start is left out" "$status $(grep -cE '^Elastic: host nowhere does not answer' <<<"$out")" "0 1"
run timeout 60 "$lab" run "$LOCKSTEP" train --elastic "${job[@]}" --steps 30 --discover 'echo a:1; echo b:1' --run found
is "hosts that a command prints" "$status $(grep -cE '^Elastic: starting on 2 nodes: a:1,b:1$' <<<"$out")" "0 1"

test_end

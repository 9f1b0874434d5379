#!/bin/bash
# What an elastic run goes on from: snapshots in memory, also of a host that is gone (its neighbour has a copy); the
# disk where two neighbours are. How often they are taken, and what a lost host keeps.
# shellcheck disable=SC2317 # functions are called by ok and wait_for
# shellcheck source=tests/lab/lib.sh
. "$(dirname "$0")/lib.sh"

# Adam has state, which is sharded: without a neighbour's copy a lost host's would be missing. Nothing is written to
# disk before the end.
job=(--model mlp --data glyphs --samples 330 --test-samples 100 --batch 64 --micro-batch 8 --schedule constant --optimizer adam --eval-every 0
	--log-every 1 --timeout 4 --threads 1)
never=1000000 steps=300
lab_up 4 --rate 1gbit
run "$LOCKSTEP" train "${job[@]}" --ckpt-every $never --devices 1 --steps $steps
whole=$(fingerprint "$out")
like "a run that nothing happens to" "$status $whole" '^0 [0-9a-f]{16}$'

recorded() { grep -c "\"kind\": \"$2\"" "$1/metrics.jsonl" 2>/dev/null; } # RUN KIND
has_recorded() { [ "$(recorded "$1" "$2")" -ge "$3" ]; }
begin() { # RUN OPTION...: in the background, until it has snapshots
	name=$1
	shift
	: >bg.out
	"$lab" run "$LOCKSTEP" train --elastic --hosts b:1,c:1,d:1 "${job[@]}" --steps $steps --run "$name" "$@" >bg.out 2>bg.err &
	job_id=$!
	ok "$name: snapshots are taken" wait_for 60 has_recorded "$name" snapshot 5
	number=$(cut -d ' ' -f 1 "$name/.snapshots")
	is "$name: all hosts have one" "$(lab_memory "$number" | cut -d ' ' -f 1 | paste -sd ' ')" "b c d"
}
said() { grep -qE "^Elastic: $1" bg.out; }
ends_right() { # HOST...: which keep their snapshots
	wait_bounded $job_id
	is "$name: ends with the same bits" "$? $(fingerprint "$(cat bg.out)" | tail -n 1)" "0 $whole"
	[ "$(fingerprint "$(cat bg.out)" | tail -n 1)" = "$whole" ] || test_note "$(grep ^Elastic bg.out)" "$(cat bg.err)"
	ok "$name: nothing is left on any host" wait_for 30 lab_is_empty
	is "$name: snapshots are removed, but on hosts that were lost" "$(lab_memory "$number" | cut -d ' ' -f 1 | sort -u | paste -sd ' ')" "$*"
}
sources() { # RUN: of its starts, and on how many nodes
	python3 - "$1" <<'END'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1] + "/metrics.jsonl")]
print(*[f'{l["source"]}:{l["nodes"]}' for l in lines if l["kind"] == "start"])
END
}
resumed_at='[l["step"] for l in o if l["kind"] == "start"][1]'

# ---- a process dies, and its memory stays ----------------------------------------------------------------------------
begin killed --ckpt-every $never --snapshot-every 5
kill -9 "$(node_on c)"
ends_right
is "killed: goes on from memory" "$(sources killed)" "new:3 snapshot:3"
ok "killed: from a snapshot" json killed/metrics.jsonl "$resumed_at % 5 == 0 and $resumed_at >= 25"
like "killed: and says so" "$(cat bg.out)" '^Elastic: training from step [0-9]+ \(snapshots in memory\), [0-9]+ steps? computed again$'

# ---- a host is gone, and its neighbour has a copy --------------------------------------------------------------------
# of the first node, after which another one leads, and of the last one, whose copy is with the first
for host in b d; do
	begin "cut-$host" --ckpt-every $never --snapshot-every 5
	"$lab" cut $host
	ok "cut-$host: the run goes on without it" wait_for 40 said 'continuing on 2 nodes'
	ends_right $host
	"$lab" mend $host
	is "cut-$host: goes on from memory" "$(sources "cut-$host")" "new:3 snapshot:2"
	ok "cut-$host: from a snapshot" json "cut-$host/metrics.jsonl" "$resumed_at % 5 == 0 and $resumed_at >= 25"
	run timeout 60 "$lab" run "$LOCKSTEP" train --elastic --hosts $host:1 "${job[@]}" --steps 5 --run "after-$host"
	is "cut-$host: the next start on the host removes its snapshots" "$status $(ls "$("$lab" shm $host)")" "0 "
done

# ---- two neighbours are gone -----------------------------------------------------------------------------------------
begin neighbours --ckpt-every 10 --snapshot-every 5
ok "neighbours: there is a checkpoint" wait_for 30 has_checkpoint neighbours
"$lab" cut c
"$lab" cut d
ok "neighbours: the run goes on without them" wait_for 60 said 'continuing on 1 node: b:1$'
ends_right c d
"$lab" mend c
"$lab" mend d
like "neighbours: goes on from disk" "$(sources neighbours)" '^new:3( snapshot:2)? checkpoint:1$'

# ---- how often -------------------------------------------------------------------------------------------------------
cat >interval.py <<'PYTHON'
# Each line has the seconds that the snapshot took and the steps until the next one: as many as make that 0.5 % of their
# time, by the time of the steps before it, but at most four times as many as before. The lines' times are those of
# steps up to JITTER.
import json, math, sys
SHARE, GROWTH, FIRST, JITTER, LEAST_S = 0.005, 4, 2, 0.03, 0.1
lines = [l for l in map(json.loads, open(sys.argv[1])) if l["kind"] == "snapshot"]
assert lines[0]["step"] == FIRST, f"the first came after {lines[0]['step']} steps"
assert lines[0]["every"] <= GROWTH * FIRST, "the second is too far from the first"
good = measured = limited = 0
for before, line in zip(lines, lines[1:]):
    assert line["step"] == before["step"] + before["every"], f"not when it was due: {before} {line}"
    assert 1 <= line["every"] <= GROWTH * before["every"], f"grows too fast: {before} {line}"
    span, steps = line["time"] - before["time"], before["every"]
    if span < LEAST_S:
        continue
    most, least = (max(1, math.ceil(line["cost_s"] / SHARE * steps / (span + sign * JITTER))) for sign in (-1, 1))
    limited += line["every"] == GROWTH * before["every"] < least
    measured += 1
    good += min(least, GROWTH * before["every"]) <= line["every"] <= most
print(f"{len(lines)} snapshots, {measured} intervals measured, {good} as they should be, {limited} cut to {GROWTH} times the one before")
assert measured >= 5 and good >= 0.8 * measured, "intervals do not follow from costs" # a process may wait for a core at the wrong moment
PYTHON
steps=3000
run timeout 200 "$lab" run "$LOCKSTEP" train --elastic --hosts b:1,c:1 "${job[@]}" --ckpt-every $never --steps $steps --run often
is "a run that measures what a snapshot costs" "$status" 0
run python3 interval.py often/metrics.jsonl
is "takes one as often as that is half a percent of the time" "$status" 0
test_note "$out"
[ "$status" = 0 ] || test_note "$err" "$(grep '"snapshot"' often/metrics.jsonl)"

test_end

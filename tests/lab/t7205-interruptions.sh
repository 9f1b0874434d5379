#!/bin/bash
# Nodes that are stopped or cut off for less than the timeout: the run goes on, to the same bits.
# shellcheck disable=SC2317 # functions are called by ok and wait_for
# shellcheck source=tests/lab/lib.sh
. "$(dirname "$0")/lib.sh"

# TCP sends again 0.2, 0.6, 1.4, 3.0, 6.2 and 12.6 s after the first loss: a link that is back after 7 s is silent for 5.6 more,
# and what else was lost may take 15 s after that. The timeout leaves a busy machine seconds to notice that the link is back.
timeout_s=16 pause_s=7
job=(--model mlp --data glyphs --samples 330 --test-samples 100 --batch 64 --micro-batch 8 --schedule constant --timeout "$timeout_s")
lab_up 3 --rate 1gbit

lines() { grep -c '^Epoch' bg.out; }
more_than() { [ "$(lines)" -gt "$1" ]; }

# The run is stopped on request afterwards; what it came to is held against one on one node with as many steps.
survives() { # NAME BEGIN END: commands
	local before code at
	rm -rf run
	: >bg.out
	"$lab" run "$LOCKSTEP" train --hosts a:1,b:1,c:1 "${job[@]}" --epochs 100000 --run run >bg.out 2>bg.err &
	job_id=$!
	ok "$1: nodes train" wait_for 60 grep -q '^Epoch' bg.out
	$2
	sleep 1
	before=$(lines)
	sleep $((pause_s - 1))
	ok "$1: nothing goes on meanwhile" test "$(lines)" = "$before"
	$3
	ok "$1: the run goes on" wait_for $((5 * timeout_s)) more_than "$((before + 1))"
	more_than "$((before + 1))" || test_note "what it said:" "$(cat bg.err)"
	kill -TERM "$(launcher)"
	wait_bounded $job_id
	code=$?
	at=$(sed -nE 's/.*stopped after step ([0-9]+) of .*/\1/p' bg.err)
	is "$1: and ends when asked to" "$code $((at > 0))" "143 1"
	ok "$1: nothing is left" wait_for 15 lab_is_empty
	run "$LOCKSTEP" train "${job[@]}" --devices 2 --run run --resume --epochs 100000 --steps $((at + 5))
	resumed=$(fingerprint "$out")
	run "$LOCKSTEP" train "${job[@]}" --devices 2 --epochs 100000 --steps $((at + 5))
	like "$1: the bits" "$resumed" '^[0-9a-f]{16}$'
	is "$1: are those of a run that was not interrupted" "$resumed" "$(fingerprint "$out")"
}

stop_node() { node=$(node_on b) && kill -STOP "$node"; }
go_on() { kill -CONT "$node"; }
survives "stopped" stop_node go_on
survives "cut off" "$lab cut b" "$lab mend b"
survives "the first cut off" "$lab cut a" "$lab mend a"

test_end

#!/bin/bash
# A run goes on where it was, to the bits of one never stopped: on other nodes, after a kill, after a request to stop.
# shellcheck disable=SC2317 # functions are called by ok and wait_for
# shellcheck source=tests/lab/lib.sh
. "$(dirname "$0")/lib.sh"

job=(--data glyphs --samples 330 --test-samples 100 --batch 64 --micro-batch 8 --schedule constant)
lab_up 3 --rate 1gbit

epoch_losses() { # RUN: of the tests after whole epochs of six steps, with all digits
	python3 -c 'import json, sys
for line in open(sys.argv[1] + "/metrics.jsonl"):
    record = json.loads(line)
    if record["kind"] == "test" and record["step"] % 6 == 0:
        print(record["step"], record["epoch"], record["loss"], record["accuracy"])' "$1"
}
newest() { # RUN: the step of its newest checkpoint, 0 without one
	local name
	name=$(find "$1/ckpt" -maxdepth 1 -name 'step-*' 2>/dev/null | sort | tail -n 1)
	echo $((10#0${name##*-}))
}

# ---- a checkpoint of any layout goes on in any other -----------------------------------------------------------------
run "$LOCKSTEP" train --model cnn --optimizer adam "${job[@]}" --devices 1 --steps 12 --run whole
expected=$(fingerprint "$out")
like "a run that is not stopped" "$status $expected" '^0 [0-9a-f]{16}$'
is "is tested twice" "$(epoch_losses whole | wc -l)" 2

half() { # LAYOUT OPTION...: "here OPTIONS" on one node, "HOSTS OPTIONS" in the lab
	local layout
	read -ra layout <<<"$1"
	shift
	if [ "${layout[0]}" = here ]; then
		run "$LOCKSTEP" train --model cnn --optimizer adam "${job[@]}" "${layout[@]:1}" "$@"
	else
		train_on "${layout[0]}" --model cnn --optimizer adam "${job[@]}" "${layout[@]:1}" "$@"
	fi
}
from_to() { # RUN LAYOUT LAYOUT
	half "$2" --run "$1" --steps 7
	is "'$2' then '$3': the first part" "$status$err" 0
	half "$3" --run "$1" --steps 12 --resume
	is "'$2' then '$3': the bits of one never stopped" "$status $(fingerprint "$out")" "0 $expected"
	is "'$2' then '$3': and its test losses" "$(epoch_losses "$1")" "$(epoch_losses whole)"
}
from_to two-one "a:1,b:1" "here --devices 3 --pin off"
from_to one-ps "here --devices 2" "a:1,b:2,c:1 --strategy ps"
from_to ps-three "a:1,b:1,c:1 --strategy ps --servers 2" "a:1,b:1,c:1"

# ---- a run knows its hosts and its settings --------------------------------------------------------------------------
half "a:1,b:1" --run recalled --steps 7
run "$lab" run "$LOCKSTEP" train --run recalled --resume --steps 12
is "--run and --resume alone: the bits of one never stopped" "$status $(fingerprint "$out")" "0 $expected"
ok "--run and --resume alone: on the same hosts" json recalled/run.json \
	'[(r["settings"]["hosts"], r["settings"]["nodes"], r["settings"]["devices"]) for r in o["resumes"]] == [("a:1,b:1", 2, 2)]'

# ---- killed, or asked to stop ----------------------------------------------------------------------------------------
# Steps enough that a run is caught in the middle.
long=(--model mlp "${job[@]}" --steps 600 --ckpt-every 20 --eval-every 0)
run "$LOCKSTEP" train "${long[@]}" --devices 1
expected=$(fingerprint "$out")
like "a long run that is not stopped" "$status $expected" '^0 [0-9a-f]{16}$'

begin_long() { # RUN [OPTION]...: in the background, until it has a checkpoint
	local name=$1
	shift
	"$lab" run "$LOCKSTEP" train --hosts a:1,b:1,c:1 "${long[@]}" --run "$name" "$@" >bg.out 2>bg.err &
	job_id=$!
	ok "$name: a checkpoint is written" wait_for 30 has_checkpoint "$name"
}
has_checkpoint() { [ "$(newest "$1")" -gt 0 ]; }

begin_long killed
{
	# shellcheck disable=SC2046 # ids
	kill -9 $(lab_processes)
	wait_bounded $job_id
	code=$?
} 2>/dev/null
is "killed: all of it" $code 137
ok "killed: nothing is left" wait_for 20 lab_is_empty
ok "killed: in the middle ($(newest killed))" test "$(newest killed)" -lt 600
run "$LOCKSTEP" train "${long[@]}" --devices 2 --run killed --resume
is "killed: goes on elsewhere to the same bits" "$status $(fingerprint "$out")" "0 $expected"

begin_long stopped --strategy ps
kill -TERM "$(launcher)"
wait_bounded $job_id
is "asked to stop: the status shows the signal" "$?" 143
like "asked to stop: one message, with the step and how to go on" "$(cat bg.err)" \
	'^lockstep train: stopped after step [0-9]+ of 600; continue with --run stopped --resume$'
is "asked to stop: and no other" "$(grep -c lockstep bg.err)" 1
at=$(sed -nE 's/.*stopped after step ([0-9]+) of .*/\1/p' bg.err)
is "asked to stop: that step is kept" "$(newest stopped)" "$at"
ok "asked to stop: nothing is left" wait_for 20 lab_is_empty
train_on a:1,b:1 "${long[@]}" --run stopped --resume
is "asked to stop: goes on elsewhere to the same bits" "$status $(fingerprint "$out")" "0 $expected"

test_end

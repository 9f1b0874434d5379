#!/bin/bash
# Every start of a run has a number: a process of an older start ends by itself and publishes nothing.
# shellcheck disable=SC2317 # functions are called by ok and wait_for
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

job=(--model mlp --data glyphs --samples 1000 --test-samples 100 --batch 64 --micro-batch 64 --devices 1 --schedule constant --eval-every 0)

run "$LOCKSTEP" train "${job[@]}" --steps 5 --run counted
is "the first start is number 1" "$status $(cat counted/.generation)" "0 1"
run "$LOCKSTEP" train "${job[@]}" --steps 10 --run counted --resume
is "the second is number 2" "$status $(cat counted/.generation)" "0 2"
run "$LOCKSTEP" train "${job[@]}" --steps 10 --run counted --resume --lr 0.5
is "one that is refused has none" "$status $(cat counted/.generation)" "1 2"

# What a host that was cut off finds when it is back: the run was started again, on a file server that forgot its lock.
"$LOCKSTEP" train "${job[@]}" --steps 1000000 --ckpt-every 20 --log-every 10 --run run >bg.out 2>bg.err &
pid=$!
ok "a run has a checkpoint" wait_for 60 has_checkpoint run
kill -STOP "$pid"
mkdir newer
cp -r run/. newer # what the newer start finds
before=$(find newer/ckpt -type f ! -path '*/.step-*' -exec sha256sum {} + | sed 's| newer/| run/|' | sort)
echo 7 >run/.generation
cp run/metrics.jsonl metrics.before
rm run/metrics.jsonl # the newer start has replaced it
echo '{"kind": "step", "step": 1, "time": 1.0, "loss": 1.0}' >run/metrics.jsonl
kill -CONT "$pid"
ok "it ends by itself" wait_for 30 bash -c "! kill -0 $pid"
kill -9 "$pid" 2>/dev/null
wait "$pid"
is "with status 1" "$?" 1
like "and says why" "$(cat bg.err)" '^lockstep train: .*was started again meanwhile'
is "no checkpoint was published or removed" "$(find run/ckpt -type f ! -path '*/.step-*' -exec sha256sum {} + | sort)" "$before"
is "the newer start's records are its own" "$(wc -l <run/metrics.jsonl)" 1
ok "and so is the end of the run" json run/run.json '"end" not in o'
cp metrics.before run/metrics.jsonl
run "$LOCKSTEP" train "${job[@]}" --steps 50 --run run --resume
resumed=$(fingerprint "$out")
is "the next start is the next number" "$status $(cat run/.generation)" "0 8"
run "$LOCKSTEP" train "${job[@]}" --steps 50
is "and goes on to the same bits" "$resumed" "$(fingerprint "$out")"

echo rubbish >counted/.generation
run "$LOCKSTEP" train "${job[@]}" --steps 15 --run counted --resume
is "a damaged number does not stop a run" "$status" 0
like "but is named" "$err" 'counted/.generation is damaged: this start of the run has number [0-9]{10,}'
ok "and is whole again" grep -qE '^[0-9]{10,}$' counted/.generation

test_end

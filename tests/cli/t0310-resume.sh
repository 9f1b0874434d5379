#!/bin/bash
# Stop and resume: the same end as a run never stopped, wherever it was stopped.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

run small_train --steps 40
whole=$(fingerprint "$out")
like "a run never stopped has a fingerprint" "$whole" '^[0-9a-f]{16}$'

for stop in 1 7 16 17 32; do # first step, mid-epoch, end of an epoch, after it, end of the second
	run small_train --steps $stop --run "runs/at$stop"
	run small_train --steps 40 --run "runs/at$stop" --resume
	is "stopped at step $stop and resumed" "$(fingerprint "$out")" "$whole"
done

run small_train --steps 5 --run runs/twice
run small_train --steps 21 --run runs/twice --resume --threads 2
run small_train --steps 40 --run runs/twice --resume --log-every 3 --keep 5
is "stopped twice, with other threads" "$(fingerprint "$out")" "$whole"

dropout=(--model cnn --dropout 0.3 --optimizer sgd --nesterov --schedule linear --warmup 3 --samples 256 --epochs 2)
run small_train "${dropout[@]}"
whole=$(fingerprint "$out")
cp -r runs/at7 runs/other
run small_train "${dropout[@]}" --run runs/dropout --ckpt-every 3 --keep 100
ok "a run with dropout, momentum and a schedule leaves checkpoints" test -d runs/dropout/ckpt/step-000000003
find runs/dropout/ckpt -mindepth 1 -maxdepth 1 ! -name step-000000003 -exec rm -r {} +
run small_train "${dropout[@]}" --run runs/dropout --resume
is "and resumes from the middle to the same end" "$(fingerprint "$out")" "$whole"

run small_train --steps 50 --run runs/other --resume --lr 0.5 --seed 9
is "other settings are refused" "$status" 1
like "the learning rate is named with both values" "$err" "--lr was 0.001, now 0.5"
like "the seed, too" "$err" "--seed was 1, now 9"
unlike "the length may change" "$err" "--steps"
run small_train --steps 50 --run runs/other --resume --batch 32 --micro-batch 32
like "another batch is refused" "$err" "--batch.* was 64, now 32"
run small_train --steps 50 --run runs/other --resume --batch 64 --micro-batch 16
like "another micro-batch is refused" "$err" "--micro-batch.* was 64, now 16"
run small_train --steps 50 --run runs/other --resume --batch 64 --micro-batch 64
is "the same batch said otherwise is not" "$status" 0
run small_train --steps 50 --run runs/other --resume --model cnn
like "another model is refused" "$err" "--model was mlp, now cnn"

fails_with "resume of nothing" 1 "nowhere" small_train --run runs/nowhere --resume
run small_train --resume
ok "resume without a run directory is a mistake" test "$status" != 0
like "that is explained" "$err" "--run"

# Tests are recorded once, wherever the run stopped: each epoch's, and the last step's.
tests_of() { # RUN: step, epoch, loss and accuracy of each test
	python3 -c 'import json, sys
for line in map(json.loads, open(sys.argv[1])):
    if line["kind"] == "test":
        print(line["step"], line["epoch"], line["loss"], line["accuracy"])' "$1/metrics.jsonl"
}
run small_train --steps 40 --run runs/tests
tested=$(tests_of runs/tests)
is "a run has a test an epoch and one at its end" "$(cut -d ' ' -f 1,2 <<<"$tested" | tr '\n' ,)" "16 0,32 1,40 2,"
for devices in 1 2; do
	# killed between the checkpoint and the record of its test: as if that had not been written
	run small_train --steps 16 --run "runs/owed$devices"
	sed -i '/"kind": "test"/d' "runs/owed$devices/metrics.jsonl"
	run small_train --steps 40 --run "runs/owed$devices" --resume --devices $devices --micro-batch 64 --batch 64
	is "a test that is owed is made up for, on $devices" "$(tests_of "runs/owed$devices")" "$tested"
	like "and said, on $devices" "$err" "epoch 1 was not tested before the run ended"
done
run small_train --steps 16 --run runs/once
run small_train --steps 40 --run runs/once --resume
is "a test that is recorded is not made again" "$(tests_of runs/once)" "$tested"
unlike "nor said to be owed" "$err" "not tested"
run small_train --steps 40 --run runs/once --resume
is "nor at the end of a run that is complete" "$(tests_of runs/once)" "$tested"
like "which tells its accuracy all the same" "$out" "test accuracy: 0\."
sed -i '/"step": 40,/d' runs/once/metrics.jsonl
run small_train --steps 40 --run runs/once --resume
is "unless it was killed before that" "$(tests_of runs/once)" "$tested"
run small_train --steps 16 --run runs/untested
sed -i '/"kind": "test"/d' runs/untested/metrics.jsonl
run small_train --steps 40 --run runs/untested --resume --eval-every 2
is "a test that was not wanted is not owed" "$(tests_of runs/untested | cut -d ' ' -f 1 | tr '\n' ,)" "32,40,"

# The same with a kill: an evaluation that takes long begins when the checkpoint is there.
"$LOCKSTEP" train --model mlp --data glyphs --samples 1000 --test-samples 2000000 --batch 64 --micro-batch 64 --devices 1 --schedule constant \
	--steps 40 --run runs/killed >killed.out 2>&1 &
pid=$!
ok "a run to be killed during a test" wait_for 60 test -d runs/killed/ckpt/step-000000016
kill -KILL "$pid"
wait "$pid" 2>/dev/null
is "a run killed during a test has no record of it" "$(tests_of runs/killed)" ""
run small_train --steps 40 --run runs/killed --resume
is "and a resumed one has all" "$(tests_of runs/killed)" "$tested"

# The fingerprint is in every file a run writes.
run small_train --steps 20 --run runs/named
print=$(fingerprint "$out")
ok "run.json has the fingerprint" json runs/named/run.json "o['end']['step'] == 20 and o['end']['fingerprint'] == '$print'"
ok "metrics.jsonl, too" json runs/named/metrics.jsonl \
	"[(l['step'], l['fingerprint']) for l in o if l['kind'] == 'end'] == [(20, '$print')]"
ok "and the checkpoint" json runs/named/ckpt/step-000000020/state.json "o['fingerprint'] == '$print'"
ok "each checkpoint has a record" json runs/named/metrics.jsonl "[l['step'] for l in o if l['kind'] == 'checkpoint'] == [16, 20]"
run small_train --steps 20 --run runs/named --resume
run small_train --steps 25 --run runs/named --resume
ok "an end is recorded once" json runs/named/metrics.jsonl "[l['step'] for l in o if l['kind'] == 'end'] == [20, 25]"
ok "run.json has the last" json runs/named/run.json "o['end']['step'] == 25 and o['end']['fingerprint'] == '$(fingerprint "$out")'"
run "$LOCKSTEP" eval runs/named
is "eval prints the same" "$(fingerprint "$out")" "$(python3 -c 'import json; print(json.load(open("runs/named/run.json"))["end"]["fingerprint"])')"

# A damaged newest checkpoint is noticed, and the one before is used.
run small_train --steps 20 --run runs/damaged --ckpt-every 10
printf 'x' | dd of=runs/damaged/ckpt/step-000000020/model.safetensors bs=1 seek=5000 conv=notrunc 2>/dev/null
run small_train --steps 40 --run runs/damaged --resume
like "damage is reported" "$err" "step-000000020"
run small_train --steps 40
whole=$(fingerprint "$out")
run small_train --steps 40 --run runs/damaged --resume
is "and the run ends where it should" "$(fingerprint "$out")" "$whole"

test_end

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
run small_train --steps 50 --run runs/other --resume --batch 32
like "another batch is refused" "$err" "--batch.* was 64, now 32"
run small_train --steps 50 --run runs/other --resume --batch 16 --global-batch 64
like "another leaf is refused" "$err" "--leaf.* was 64, now 16"
run small_train --steps 50 --run runs/other --resume --global-batch 64 --leaf 64
is "the same batch said otherwise is not" "$status" 0
run small_train --steps 50 --run runs/other --resume --model cnn
like "another model is refused" "$err" "--model was mlp, now cnn"

fails_with "resume of nothing" 1 "nowhere" small_train --run runs/nowhere --resume
run small_train --resume
ok "resume without a run directory is a mistake" test "$status" != 0
like "that is explained" "$err" "--run"

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

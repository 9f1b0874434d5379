#!/bin/bash
# The bits do not depend on the number of devices, nor on what a run was resumed with.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

same() { # NAME OPTIONS...
	local name=$1 devices first
	shift
	for devices in 1 2 3 4; do
		run "$LOCKSTEP" train --data glyphs --samples 210 --test-samples 64 --steps 5 --devices $devices "$@"
		[ $devices = 1 ] && first=$(fingerprint "$out")
		is "$name: $devices devices" "$(fingerprint "$out")" "$first"
	done
	like "$name trains" "$first" '^[0-9a-f]{16}$'
}

same "cnn, five micro-batches and a tail" --model cnn --batch 60 --micro-batch 12
same "mlp with clipping" --model mlp --batch 49 --micro-batch 7 --clip-norm 0.05
same "cnn with lamb" --model cnn --batch 60 --micro-batch 12 --optimizer lamb --lr 0.02 --weight-decay 0.01
same "mlp, one micro-batch, lamb" --model mlp --batch 49 --micro-batch 49 --optimizer lamb --lr 0.02
same "cnn with lamb and clipping" --model cnn --batch 60 --micro-batch 12 --optimizer lamb --lr 0.02 --clip-norm 0.05
same "resnet18 with lamb" --model resnet18 --batch 32 --micro-batch 8 --steps 2 --optimizer lamb --weight-decay 0.01
same "resnet18 with batch statistics" --model resnet18 --batch 32 --micro-batch 8 --steps 3
same "two threads per device" --model cnn --batch 36 --micro-batch 12 --threads 2 --dropout 0.3

layout=(--steps 12 --eval-every 0 --batch 128)
run small_train "${layout[@]}" --devices 2
whole=$(fingerprint "$out")
run small_train "${layout[@]}" --steps 4 --devices 2 --run run
run small_train "${layout[@]}" --steps 8 --devices 1 --run run --resume
is "a run of two devices goes on with one" "$status" 0
run small_train "${layout[@]}" --devices 2 --run run --resume
is "and back, and ends with the bits of one never stopped" "$(fingerprint "$out")" "$whole"
run small_train "${layout[@]}" --steps 16 --batch 192 --devices 3 --run run --resume
is "another batch is refused" "$status" 1
like "naming both" "$err" "was 128, now 192"

lamb=(--steps 12 --eval-every 0 --model cnn --optimizer lamb --lr 0.02 --weight-decay 0.01 --batch 128 --micro-batch 32)
run small_train "${lamb[@]}" --devices 2
whole=$(fingerprint "$out")
run small_train "${lamb[@]}" --steps 5 --devices 3 --run lamb
ok "a run with lamb keeps both means" grep -q exp_avg_sq lamb/ckpt/step-000000005/optimizer.safetensors
run small_train "${lamb[@]}" --devices 1 --run lamb --resume
is "and goes on with other devices to the same end" "$(fingerprint "$out")" "$whole"

run small_train --steps 2 --devices 64 --batch 128 --micro-batch 2
is "more devices than cores are allowed" "$status" 0
like "with a warning" "$err" "64 threads on [0-9]+ cores?: oversubscribed"

run small_train --steps 2 --strategy ps
is "servers on one node: no node would be left to compute" "$status" 2
like "and are refused" "$err" "1 parameter server on 1 node: no node would be left to compute"

test_end

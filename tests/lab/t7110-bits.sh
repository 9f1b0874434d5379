#!/bin/bash
# One job, one result, down to the last bit: on any nodes, devices, threads and servers, and however micro-batches are assigned.
# shellcheck source=tests/lab/lib.sh
. "$(dirname "$0")/lib.sh"

# Epochs of 41 micro-batches of 8 and one of 2: six steps, the last a short one. A run of nine ends inside an epoch.
job=(--model cnn --data glyphs --samples 330 --test-samples 100 --batch 64 --micro-batch 8 --steps 9 --schedule constant --dropout 0.3)
lab_up 4 --rate 1gbit

same() { # HOSTS [OPTION]...: the result is $expected
	local hosts=$1
	shift
	train_on "$hosts" "${job[@]}" "$@"
	is "$hosts${*:+ $*}: the same" "$status $(result "$out")" "0 $expected"
	[ "$status" = 0 ] || test_note "$err"
}

run "$LOCKSTEP" train "${job[@]}" --devices 1
expected=$(result "$out")
like "a fingerprint, and an accuracy an epoch and at the end" "$(paste -sd ' ' <<<"$expected")" \
	'^[0-9a-f]{16} test accuracy: 0\.[0-9]+ test accuracy: 0\.[0-9]+$'
for devices in 2 3 4; do
	run "$LOCKSTEP" train "${job[@]}" --devices $devices
	is "$devices devices: the same" "$(result "$out")" "$expected"
done
same a:4
same a:2,b:2
same a:3,b:2
same b:2,a:3
same a:1,b:1,c:1,d:1
same a:2,b:2,c:1 --strategy ps
same a:1,b:1,c:1,d:1 --strategy ps --servers 2
same a:3,b:2,c:1,d:1 --strategy ps --servers 2 --bucket-bytes 4096
same a:1,b:1 --share equal --threads 2
same a:1,b:1 --share 3:1 --bucket-bytes 65536
same a:1,b:1,c:1 --share 1:5 --strategy ps
same a:1,b:3 --share auto --pin off
same a:1,b:1 --audit-every 2 --log-every 1

run "$LOCKSTEP" train "${job[@]}" --devices 1 --clip-norm 0.05
unclipped=$expected
expected=$(result "$out")
ok "clipping matters in this job" test "$expected" != "$unclipped"
same a:3,b:2 --clip-norm 0.05
same a:1,b:1,c:1,d:1 --clip-norm 0.05 --strategy ps --servers 2

run "$LOCKSTEP" train "${job[@]}" --devices 1 --optimizer lamb --lr 0.02 --weight-decay 0.01
expected=$(result "$out")
ok "and so does the optimizer" test "$expected" != "$unclipped"
same a:3,b:2 --optimizer lamb --lr 0.02 --weight-decay 0.01
same a:1,b:1,c:1,d:1 --optimizer lamb --lr 0.02 --weight-decay 0.01 --strategy ps --servers 2 --bucket-bytes 4096
run "$LOCKSTEP" train "${job[@]}" --devices 1 --optimizer lamb --lr 0.02 --clip-norm 0.05
expected=$(result "$out")
same a:1,b:1,c:1 --optimizer lamb --lr 0.02 --clip-norm 0.05
same a:2,b:1,c:1 --optimizer lamb --lr 0.02 --clip-norm 0.05 --strategy ps

# Text: sentences of other lengths in every micro-batch, masked words that are counted over the whole step, shared weights. Nodes
# get runs of micro-batches, so the rows and dropout of a micro-batch must not depend on its node.
text=(--samples 190 --test-samples 50 --batch 32 --micro-batch 4 --steps 8 --schedule constant --dropout 0.1 --seq-len 40)
for model in "--model transformer --data babble --layers 2 --width 64 --heads 2" \
	"--model bert-tiny --data babble-pairs --clip-norm 1 --optimizer adamw --weight-decay 0.01"; do
	# shellcheck disable=SC2206 # words
	job=($model "${text[@]}")
	run "$LOCKSTEP" train "${job[@]}" --devices 1
	expected=$(result "$out")
	like "${model%% --data*}: one device" "$(paste -sd ' ' <<<"$expected")" '^[0-9a-f]{16}( (test|next-sentence) accuracy: 0\.[0-9]+)+$'
	for strategy in allreduce ps; do
		same a:2,b:2 --strategy $strategy
		same a:1,b:2,c:1 --strategy $strategy --threads 2 --bucket-bytes 65536
	done
	same a:1,b:1 --share 3:1
done

# A real model, with statistics of batches and weights that are not exchanged.
job=(--model resnet18 --data glyphs --samples 480 --test-samples 64 --batch 256 --micro-batch 32 --steps 2 --schedule constant)
run "$LOCKSTEP" train "${job[@]}" --devices 2
expected=$(result "$out")
like "resnet18, two devices" "$(paste -sd ' ' <<<"$expected")" '^[0-9a-f]{16} test accuracy: 0\.[0-9]+$'
for devices in 1 3 4; do
	run "$LOCKSTEP" train "${job[@]}" --devices $devices
	is "resnet18, $devices devices: the same" "$(result "$out")" "$expected"
done
same a:4
for strategy in allreduce ps; do
	same a:2,b:2 --strategy $strategy
	same a:3,b:2 --strategy $strategy
	same a:1,b:1,c:1,d:1 --strategy $strategy
done
same a:1,b:1,c:1 --strategy ps

# Text: most of the words' gradient is zero and stays at home.
job=(--model transformer --data babble --layers 2 --width 64 --heads 2 --ffn 96 --seq-len 40 --samples 190 --test-samples 50)
job+=(--batch 16 --micro-batch 4 --steps 14 --schedule constant --dropout 0.1)
run "$LOCKSTEP" train "${job[@]}" --devices 1
expected=$(result "$out")
like "transformer" "$(paste -sd ' ' <<<"$expected")" '^[0-9a-f]{16} test accuracy: 0\.[0-9]+'
same a:2,b:1
same a:1,b:1,c:1,d:1 --bucket-bytes 65536
same a:1,b:2,c:1,d:1 --strategy ps --servers 2

test_end

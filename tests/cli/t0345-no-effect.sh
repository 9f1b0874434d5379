#!/bin/bash
# Options without effect: the command goes on, and says which and why. (tests/unit/settings/test_effects.c has every row.)
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

idle() { # NAME SENTENCE COMMAND...: one warning, with this sentence
	local name=$1 sentence=$2
	shift 2
	run "$@"
	is "$name" "$status $(grep -c '^warning: ' <<<"$err") $(grep -F -c -- "warning: $sentence" <<<"$err")" "0 1 1" ||
		test_note "$err"
}
plan=(small_train --plan-memory)

run "${plan[@]}" --lr 0.1 --warmup 3
is "options that count are no matter of warnings" "$status$err" 0

idle "a learning rate of 0" "--lr is 0: nothing will be learned" "${plan[@]}" --lr 0
idle "momentum of adam" "--momentum has no effect with --optimizer adam" "${plan[@]}" --momentum 0.9
idle "the order of options does not matter" "--momentum has no effect with --optimizer adamw" "${plan[@]}" --momentum 0.8 --optimizer adamw
idle "Nesterov's form of adam" "--nesterov has no effect with --optimizer adam" "${plan[@]}" --nesterov
idle "Nesterov's form of no momentum" "--nesterov has no effect with --momentum 0" "${plan[@]}" --nesterov --optimizer sgd --momentum 0
for option in beta1 beta2 epsilon; do
	idle "$option of sgd" "--$option has no effect with --optimizer sgd" "${plan[@]}" --optimizer sgd --$option 0.5
done
idle "a minimum of a constant rate" "--lr-min has no effect with --schedule constant" "${plan[@]}" --lr-min 0.1
idle "steps between cuts of a constant rate" "--lr-step-every has no effect with --schedule constant" "${plan[@]}" --lr-step-every 5
idle "cuts of a constant rate" "--lr-step-factor has no effect with --schedule constant" "${plan[@]}" --lr-step-factor 0.5
idle "a vocabulary of images" "--vocab has no effect with --data glyphs: it is not text" "${plan[@]}" --vocab none.txt
idle "capitals of images" "--cased has no effect with --data glyphs" "${plan[@]}" --cased
idle "tokens of images" "--seq-len has no effect with --data glyphs: it is not text" "${plan[@]}" --seq-len 8
idle "encodings of images" "--replace-invalid has no effect with --data glyphs" "${plan[@]}" --replace-invalid
idle "a vocabulary of generated text" "--vocab has no effect with --data babble" \
	"$LOCKSTEP" train --plan-memory --model transformer --layers 1 --data babble --samples 64 --test-samples 8 --devices 1 --vocab none.txt
idle "a folder of generated data" "--data-dir has no effect with --data glyphs" "${plan[@]}" --data-dir .
idle "test samples without a test" "--test-samples has no effect with --eval-every 0" "${plan[@]}" --eval-every 0
idle "epochs beside steps" "--epochs has no effect with --steps 3" "${plan[@]}" --epochs 2 --steps 3
idle "checkpoints of no run" "--ckpt-every has no effect: nothing is saved without --run" "${plan[@]}" --ckpt-every 5
idle "a number of checkpoints of no run" "--keep has no effect: nothing is saved without --run" "${plan[@]}" --keep 5
idle "steps of no trace" "--trace-steps has no effect: there is no --trace" "${plan[@]}" --trace-steps 5
idle "devices beside hosts that have theirs" "--devices has no effect with --hosts localhost:1: each host" "${plan[@]}" --hosts localhost:1
for option in "strategy allreduce" "wire bf16" "share equal" "timeout 9" "audit-every 9"; do
	# shellcheck disable=SC2086 # words
	idle "${option% *} on one node" "--${option% *} has no effect: there is only one node" "${plan[@]}" --$option
done
run "${plan[@]}" --conv winograd --precision bf16 # which is emulated on some processors: another warning
like "an algorithm for products in bf16" "$status $err" '--conv has no effect with --precision bf16: convolutions are computed directly'
idle "one for convolutions of text" "--conv has no effect with --model transformer: it has no convolutions" \
	"$LOCKSTEP" train --plan-memory --model transformer --layers 1 --data babble --samples 64 --test-samples 8 --devices 1 --conv direct
# a plan of memory makes no exchange, so that only training knows
idle "buckets of one device" "--bucket-bytes has no effect: there is one device" small_train --steps 1 --bucket-bytes 65536
run small_train --steps 1 --batch 128 --micro-batch 16 --devices 2 --bucket-bytes 65536
unlike "buckets of two count" "$err" "bucket-bytes has no effect"
# devices without a micro-batch; where they are more than the cores, another warning says so
four=("$LOCKSTEP" train --model mlp --data glyphs --samples 1000 --test-samples 200 --devices 4 --steps 1)
run "${four[@]}" --batch 128 --micro-batch 128
like "three of four devices idle" "$err" \
	'^warning: 3 of 4 devices have no micro-batch to compute: a step of 128 samples is 1 micro-batch of 128; use --micro-batch 32, which changes the trained bits$'
run "${four[@]}" --batch 192 --micro-batch 64 --plan-memory
like "one of four" "$err" '^warning: 1 of 4 devices has no micro-batch to compute: a step of 192 samples is 3 micro-batches of 64; use --micro-batch 48, which changes the trained bits$'
run "${four[@]}" --samples 3
like "more devices than samples" "$err" '3 of 4 devices have no micro-batch to compute: a step of 3 samples is 1 micro-batch of 3; use fewer devices or a larger batch$'
run "$LOCKSTEP" train --model mlp --data glyphs --samples 1000 --test-samples 200 --devices 1 --steps 1 --schedule constant \
	--batch 128 --micro-batch 128 --run idle-resumed
run "$LOCKSTEP" train --run idle-resumed --resume --steps 2 --devices 4
is "a run goes on with more devices than micro-batches" "$status" 0
like "and is not advised to change them" "$err" '^warning: 3 of 4 devices have no micro-batch to compute: .*; use fewer devices$'
run "${four[@]}" --batch 128 --micro-batch 32
unlike "a micro-batch for each" "$err" "no micro-batch to compute"
run "$LOCKSTEP" bench --model mlp --batch 128 --micro-batch 128 --devices 2 --warmup 0 --steps 1 --repeat 1
like "bench: one of two" "$err" '^warning: 1 of 2 devices has no micro-batch to compute: .*; use --micro-batch 64, which changes the trained bits$'

idle "a warm-up longer than the run" \
	"--warmup 200 is longer than the run of 16 steps: the learning rate never reaches --lr, and --schedule linear has no effect" \
	"${plan[@]}" --warmup 200 --schedule linear
idle "one of a constant rate" "--warmup 17 is longer than the run of 16 steps: the learning rate never reaches --lr" "${plan[@]}" --warmup 17
run "${plan[@]}" --warmup 16 --schedule linear
is "one as long as the run" "$status$err" 0

ok "few samples" "$LOCKSTEP" data make glyphs --samples 64 --out few --quiet
few=("$LOCKSTEP" train --model mlp --batch 32 --devices 1)
idle "more samples than there are" "--samples 100: few has only 64 training samples, and all of them are used" \
	"${few[@]}" --data ./few --samples 100 --test-samples 10 --run few-run
tests=$(sed -nE 's/.* and ([0-9]+) test .*/\1/p' <<<"$("${few[@]}" --data ./few --steps 1)")
idle "more test samples" "--test-samples 99999999: few has only $tests test samples, and all of them are used" \
	"${few[@]}" --data ./few --test-samples 99999999
idle "eval: more samples" "--samples 99999999: few has only $tests test samples" "$LOCKSTEP" eval few-run --samples 99999999
for i in {1..40}; do
	printf 'The %s dog sees a cat. The cat runs to the tree. It sits there for %s hours.\n\n' "$i" "$i"
done >corpus.txt
ok "a vocabulary" "$LOCKSTEP" data make vocab corpus.txt --size 100 --out words.txt --quiet
run "$LOCKSTEP" train --model bert-mini --seq-len 32 --data corpus.txt --vocab words.txt --test-samples 640 --batch 8 --devices 1 --plan-memory
like "more text than there is" "$err" '^warning: --test-samples 640: corpus.txt has only [0-9]+ test samples?, and all of them are used$'

run small_train --hosts localhost --momentum 0.5 --quiet
is "--quiet silences warnings, too" "$status$err" 0

run small_train --steps 3 --run run
idle "eval: a vocabulary of images" "--vocab has no effect with --data glyphs" "$LOCKSTEP" eval run --vocab none.txt
idle "eval: tokens of images" "--seq-len has no effect with --data glyphs" "$LOCKSTEP" eval run --seq-len 8
idle "eval: capitals of images" "--cased has no effect with --data glyphs" "$LOCKSTEP" eval run --cased
idle "eval: a folder of generated data" "--data-dir has no effect with --data glyphs" "$LOCKSTEP" eval run --data-dir .
run "$LOCKSTEP" eval run --batch 16
is "eval: options that count" "$status$err" 0

bench=("$LOCKSTEP" bench --model mlp --batch-per-device 8 --warmup 0 --steps 1 --repeat 1)
run "${bench[@]}" --optimizer sgd --seed 3
is "bench: options that count" "$status$err" 0
idle "bench: a vocabulary of images" "--vocab has no effect: it is not text" "${bench[@]}" --vocab none.txt
idle "bench: a wire on one node" "--wire has no effect: there is only one node" "${bench[@]}" --wire bf16
idle "bench: devices beside hosts" "--devices has no effect with --hosts localhost:1" "${bench[@]}" --hosts localhost:1 --devices 2
idle "bench: a speed of no replay" "--replay-speed has no effect without --replay" "${bench[@]}" --replay-speed 0.5
idle "bench: the size of text" "--channels and --image-size have no effect with a model of text" \
	"$LOCKSTEP" bench --model transformer --layers 1 --batch-per-device 2 --seq-len 8 --warmup 0 --steps 1 --repeat 1 --image-size 32
ok "bench: a profile" "${bench[@]}" --profile-out mlp.json
idle "bench: the model of a replay" "--model cnn has no effect: the profile of --replay is of mlp" \
	"$LOCKSTEP" bench --model cnn --batch-per-device 8 --warmup 0 --steps 1 --repeat 1 --replay mlp.json

idle "plan: servers of allreduce" "--servers has no effect with --strategy allreduce" \
	"$LOCKSTEP" plan mlp.json --nodes 2 --strategy allreduce --servers 1
idle "plan: checkpoints of nodes that do not fail" "--checkpoint-every has no effect" "$LOCKSTEP" plan mlp.json --nodes 2 --checkpoint-every 60
run "$LOCKSTEP" plan mlp.json --nodes 2 --servers 1 --checkpoint-every 60 --mtbf 1000
is "plan: options that count" "$status$err" 0

idle "data info: a vocabulary of images" "--vocab has no effect: glyphs is not text" "$LOCKSTEP" data info glyphs --vocab none.txt
idle "data info: capitals of generated text" "--cased has no effect: babble is not text that is read from files" "$LOCKSTEP" data info babble --cased
idle "data info: a folder of generated data" "--dir has no effect: files of glyphs" "$LOCKSTEP" data info glyphs --dir .
idle "data make: the same" "--dir has no effect: files of glyphs" "$LOCKSTEP" data make glyphs --samples 8 --out eight --dir . --quiet

test_end

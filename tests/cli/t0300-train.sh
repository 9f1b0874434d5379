#!/bin/bash
# Training: what is printed, what is kept, and that it learns.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

run "$LOCKSTEP" train --model cnn --data glyphs --samples 2000 --test-samples 500 --batch 64 --micro-batch 64 --devices 1 --epochs 2 \
	--log-every 10 --run runs/cnn
is "a small run succeeds" "$status" 0
like "a rate every so many steps, as published" "$out" '^Step10: [0-9.]+ data/sec, loss [0-9]+\.[0-9]{4}$'
like "a line an epoch, as published" "$out" \
	'^Epoch 2 in [0-9.]+ sec, test time [0-9.]+ sec, test accuracy: (0\.[0-9]{4}|1\.0000)$'
like "the fingerprint is the last line" "$(tail -n 1 <<<"$out")" '^parameters xxh64 [0-9a-f]{16}$'
accuracy=$(sed -nE 's/^Epoch 2 .*accuracy: ([0-9.]+)$/\1/p' <<<"$out")
ok "it learns: accuracy $accuracy is above 0.6" awk "BEGIN { exit !($accuracy + 0 > 0.6) }"
first=$(fingerprint "$out")

# What a run will do, in three lines before anything else.
is "three lines, and then the log" "$(grep -n -m 1 '^Step' <<<"$out" | cut -d: -f1)" 4
like "the model and the data" "$(sed -n 1p <<<"$out")" \
	'^model cnn: [0-9]+ parameters; data glyphs: 2000 training and 500 test samples of 1x28x28, 10 classes, normalised with mean 0\.[0-9]+, deviation 0\.[0-9]+$'
like "steps, batch, optimizer and schedule" "$(sed -n 2p <<<"$out")" \
	'^64 steps \(2 epochs\) of 64 samples in micro-batches of 64; adam, lr 0.001, schedule wsd$'
like "devices, threads and the run" "$(sed -n 3p <<<"$out")" '^1 device x [0-9]+ threads? \([a-z0-9]+, [a-z0-9]+\); run directory runs/cnn$'
is "the parameters are those of the table of models" "$(sed -nE '1s/^model cnn: ([0-9]+) .*/\1/p' <<<"$out")" \
	"$("$LOCKSTEP" models | awk '$1 == "cnn" { print $2 }')"

ok "run.json holds the settings" json runs/cnn/run.json 'o["settings"]["model"] == "cnn"'
ok "every line of metrics.jsonl is JSON with a step, none before the one above it" json runs/cnn/metrics.jsonl \
	'o[-1]["step"] == 64 and (lambda s: s == sorted(s))([l["step"] for l in o if l["kind"] != "checkpoint"]) and o[0]["step"] > 0'
ok "TensorBoard events are there" bash -c 'ls runs/cnn/events.out.tfevents.*'
ok "a checkpoint is there" bash -c 'ls runs/cnn/ckpt/step-*/model.safetensors'

run "$LOCKSTEP" train --model cnn --data glyphs --samples 2000 --test-samples 500 --batch 64 --micro-batch 64 --devices 1 --epochs 2
is "the same command gives the same bits" "$(fingerprint "$out")" "$first"
run "$LOCKSTEP" train --model cnn --data glyphs --samples 2000 --test-samples 500 --batch 64 --micro-batch 64 --devices 1 --epochs 2 --seed 2
ok "another seed gives other bits" test "$(fingerprint "$out")" != "$first"

run small_train --batch 128 --micro-batch 32 --steps 3 --devices 2 --optimizer sgd --lr 0.5 --warmup 2 --clip-norm 1 \
	--eval-every 0 --run runs/start
like "warm-up, clipping and leaves" "$(sed -n 2p <<<"$out")" \
	'^3 steps \(0.375 epochs\) of 128 samples in micro-batches of 32; sgd, lr 0.5, schedule constant after 2 warm-up steps, gradient norm clipped to 1$'
like "no test set" "$(sed -n 1p <<<"$out")" "data glyphs: 1000 training samples of 1x28x28"
run small_train --batch 128 --micro-batch 32 --steps 5 --devices 2 --optimizer sgd --lr 0.5 --warmup 2 --clip-norm 1 \
	--eval-every 0 --run runs/start --resume
like "a resumed run says where it goes on" "$out" '^5 steps \(0.625 epochs, from step 4 on\) of 128'
run "$LOCKSTEP" train --model transformer --layers 1 --data babble --samples 64 --test-samples 8 --steps 1 --devices 1 --batch 8
like "text" "$(sed -n 1p <<<"$out")" 'data babble: 64 training and 8 test samples of at most [0-9]+ tokens, 5 classes, vocabulary of [0-9]+$'
like "nothing is saved" "$(sed -n 3p <<<"$out")" 'nothing is saved \(no --run\)$'

# The accuracy that is told last is that of the last weights.
run small_train --steps 40 --run runs/inside
like "a run that ends inside an epoch is evaluated" "$(tail -n 2 <<<"$out" | head -n 1)" "^Test time .* accuracy: [0-9.]+$"
ok "and that is kept" json runs/inside/metrics.jsonl '[l["step"] for l in o if l["kind"] == "test"] == [16, 32, 40]'
run small_train --epochs 3 --eval-every 2 --run runs/between
like "one that ends between evaluations, too" "$(tail -n 2 <<<"$out" | head -n 1)" "^Test time .* accuracy: [0-9.]+$"
ok "and that is kept, too" json runs/between/metrics.jsonl '[l["step"] for l in o if l["kind"] == "test"] == [32, 48]'
run small_train --epochs 2
is "one that ends with an evaluation is not evaluated again" "$(grep -c accuracy <<<"$out")" 2

run small_train --epochs 1 --quiet
is "--quiet succeeds" "$status" 0
is "and prints nothing" "$out$err" ""

run small_train --plan-memory
is "--plan-memory succeeds" "$status" 0
like "and tells bytes" "$out" '[0-9.]+ ?[kKMG]i?B'
is "and does not train" "$(fingerprint "$out")" ""

run small_train --epochs 3 --ckpt-every 4 --keep 3 --run runs/keep
is "--keep keeps the newest" "$(cd runs/keep/ckpt && echo step-*)" "step-000000040 step-000000044 step-000000048"
for optimizer in sgd adamw lamb; do
	run small_train --optimizer $optimizer --lr 0.01 --weight-decay 0.01 --clip-norm 1 --schedule cosine --warmup 4
	is "$optimizer, decay, clipping, cosine and warm-up" "$status" 0
done
run small_train --batch 256 --micro-batch 32 --steps 3
is "a step of several micro-batches" "$status" 0
run small_train --batch 1001 --micro-batch 1001 --steps 2
is "a batch larger than the data" "$status" 0

# glyphs has no 1000 samples to write when stdout is gone, but the run is not lost
run bash -c '"$0" train --model mlp --data glyphs --samples 1000 --test-samples 200 --log-every 1 --run runs/pipe | true
	exit "${PIPESTATUS[0]}"' "$LOCKSTEP"
is "a reader that goes away is reported" "$status" 1
ok "but the run is kept" bash -c 'ls runs/pipe/ckpt/step-*/model.safetensors'

# On a terminal: the epoch of all, and steps and time of the whole run.
if command -v script >/dev/null; then
	long=(--model mlp --data glyphs --samples 4000 --batch 8 --devices 1 --epochs 100 --eval-every 0)
	progress='^epoch [0-9]+/100 \|#*-*\| [0-9]+/50000  loss [0-9.]+  [0-9]+ data/sec  [0-9:]+ left'
	for seconds in 4 15 45; do # a busy machine is late
		script -qec "timeout -s INT $seconds $LOCKSTEP train ${long[*]}" /dev/null >screen </dev/null
		! tr '\r' '\n' <screen | grep -qE "$progress" || break
	done
	like "a progress line tells of the run" "$(tr '\r' '\n' <screen)" "$progress"
	ok "and its steps fit the epoch" python3 - screen <<-'END'
		import re, sys
		lines = re.findall(r"epoch (\d+)/100 \|[#-]*\| (\d+)/50000 ", open(sys.argv[1]).read())
		sys.exit(not lines or any((int(step) - 1) // 500 + 1 != int(epoch) for epoch, step in lines))
	END
fi

# ---- output that does not arrive ----
short=(train --model mlp --data glyphs --samples 256 --test-samples 100 --batch 64 --steps 3)
run bash -c '"$@" >/dev/full' - "$LOCKSTEP" "${short[@]}"
is "a full disk under the log is a failure" "$status" 1
like "with its cause" "$err" 'cannot write to standard output: No space left on device'
run bash -c '"$@" >&-' - "$LOCKSTEP" "${short[@]}"
like "closed output, too" "$status $err" '^1 .*cannot write to standard output: it is closed'

test_end

#!/bin/bash
# The bench: one JSON object with sensible numbers, or text with the same.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

quick=(--model cnn --batch-per-device 32 --warmup 1 --steps 2 --repeat 3)
run "$LOCKSTEP" bench "${quick[@]}" --json
is "bench --json succeeds" "$status" 0
is "nothing on stderr" "$err" ""
cp .out bench.json
ok "one JSON object" json bench.json 'type(o) is dict'
ok "the promised numbers are positive" \
	json bench.json 'min(o["samples_per_s"], o["step_ms"], o["peak_rss_bytes"]) > 0'
ok "the job is in it" json bench.json '(o["model"], o["batch"], o["threads"], o["repeat"]) == ("cnn", 32, 1, 3)'
ok "the median lies between the ends" \
	json bench.json 'o["samples_per_s_min"] <= o["samples_per_s"] <= o["samples_per_s_max"]'
ok "rate and step agree within a factor of two" \
	json bench.json '0.5 < o["samples_per_s"] * o["step_ms"] / 1000 / o["batch"] < 2'
ok "each repeat is in it, in the order made" json bench.json \
	'len(o["repeats"]) == 3 and sorted(r["samples_per_s"] for r in o["repeats"])[1] == o["samples_per_s"]'
ok "and how long its steps took" json bench.json 'all(r["step_ms"] > 0 for r in o["repeats"])'
ok "the gradient's size is that of the parameters, but for gaps" json bench.json '421642 * 4 <= o["gradient_bytes"] < 1.01 * 421642 * 4'
ok "kernels and instruction set are told" json bench.json 'o["kernels"] and o["isa"]'

run "$LOCKSTEP" bench "${quick[@]}" --threads 2 --profile --json
ok "--profile gives layers" json .out 'len(o["layers"]) > 3 and sum(l["forward_ms"] + l["backward_ms"] for l in o["layers"]) > 0'
run "$LOCKSTEP" bench "${quick[@]}" --profile
is "as text, too" "$status" 0
like "rate" "$out" '^samples/s +[0-9.]+, median of 3'
like "layers" "$out" '^layer +forward ms'

# What changes the cost of a step is measured, not only recorded. Clipping needs all gradients before the update, so it
# takes the exchange even on one device, where buckets otherwise have no effect.
run "$LOCKSTEP" bench "${quick[@]}" --bucket-bytes 65536
like "one device has no buckets" "$err" 'bucket-bytes has no effect'
run "$LOCKSTEP" bench "${quick[@]}" --bucket-bytes 65536 --clip-norm 1
is "unless gradients are clipped" "$err" ""
run "$LOCKSTEP" bench "${quick[@]}" --optimizer adamw --lr 0.01 --weight-decay 0.1 --clip-norm 2 --dropout 0.25 --json
ok "the settings of the update are in the result" json .out \
	'(o["optimizer"], o["lr"], o["weight_decay"], o["clip_norm"], o["dropout"]) == ("adamw", 0.01, 0.1, 2, 0.25)'
run "$LOCKSTEP" bench "${quick[@]}" --optimizer adamw --weight-decay 0.1 --clip-norm 2 --dropout 0.25
like "and in its first line" "$out" 'adamw.*weight decay 0.1, gradient norm clipped to 2, dropout 0.25'
run "$LOCKSTEP" bench "${quick[@]}" --momentum 0.5
like "a setting that the optimizer does not use is reported" "$err" 'momentum has no effect'

run "$LOCKSTEP" bench "${quick[@]}" --optimizer sgd --lr 1e30
is "a loss that is not finite is no failure" "$status" 0
like "but a warning" "$err" 'the loss of the last step is (NaN|infinite): what was timed is not training; choose a smaller --lr'
fails_with "a model misspelt" 2 "did you mean 'cnn'" "$LOCKSTEP" bench --model cnm
run bash -c '"$@" >/dev/full' - "$LOCKSTEP" bench "${quick[@]}" --json
is "a result that cannot be written is a failure" "$status" 1

test_end

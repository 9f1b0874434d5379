#!/bin/bash
# The bench: one JSON object with sensible numbers, or text with the same.
. "$(dirname "$0")/lib.sh"

quick=(--model cnn --batch 32 --warmup 1 --steps 2 --repeat 3)
run "$LOCKSTEP" bench "${quick[@]}" --json
is "bench --json succeeds" "$status" 0
is "nothing on stderr" "$err" ""
ok "one JSON object" jq -e 'type == "object"' .out
cp .out bench.json
ok "the promised numbers are positive" jq -e '.samples_per_s > 0 and .step_ms > 0 and .peak_rss_bytes > 0' bench.json
ok "the job is in it" jq -e '.model == "cnn" and .batch == 32 and .threads == 1 and .repeat == 3' bench.json
ok "the median lies between the ends" \
	jq -e '.samples_per_s_min <= .samples_per_s and .samples_per_s <= .samples_per_s_max' bench.json
ok "rate and step agree within a factor of two" \
	jq -e '.samples_per_s * .step_ms / 1000 / .batch | . > 0.5 and . < 2' bench.json
ok "kernels and instruction set are told" jq -e '(.kernels | length > 0) and (.isa | length > 0)' bench.json

run "$LOCKSTEP" bench "${quick[@]}" --threads 2 --profile --json
ok "--profile gives layers" jq -e '(.layers | length) > 3 and all(.layers[]; .forward_ms >= 0)' .out
run "$LOCKSTEP" bench "${quick[@]}" --profile
is "as text, too" "$status" 0
like "rate" "$out" '^samples/s +[0-9.]+, median of 3'
like "layers" "$out" '^layer +forward ms'

fails_with "a model misspelt" 2 "did you mean 'cnn'" "$LOCKSTEP" bench --model cnm
run bash -c '"$@" >/dev/full' - "$LOCKSTEP" bench "${quick[@]}" --json
is "a result that cannot be written is a failure" "$status" 1

test_end

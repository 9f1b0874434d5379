#!/bin/bash
# Train to an accuracy: the run ends with the first evaluation that reaches it, complete; or says that none did.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

job=("$LOCKSTEP" train --model cnn --data glyphs --samples 2k --test-samples 500 --schedule constant)
accuracies() { sed -nE 's/^Epoch ([0-9]+) .*test accuracy: ([0-9.]+)$/\1 \2/p' <<<"$1"; }

run "${job[@]}" --epochs 5 --run whole
is "five epochs without a target" "$status" 0
curve=$(accuracies "$out")
is "have five accuracies" "$(wc -l <<<"$curve")" 5
# a target between the first accuracy and the best: reached by a later epoch, but not by the last one
target=$(awk 'NR == 1 { first = $2 } $2 > best { best = $2 } END { print (first + best) / 2 }' <<<"$curve")
epoch=$(awk -v target="$target" '$2 >= target { print $1; exit }' <<<"$curve")
test_note "accuracies $(tr '\n' ' ' <<<"$curve"), target $target, first reached after epoch $epoch"

run "${job[@]}" --epochs 5 --to-accuracy "$target" --run target
is "with a target: success" "$status" 0
is "the epochs up to the target, with the same accuracies" "$(accuracies "$out")" "$(head -n "$epoch" <<<"$curve")"
like "epochs and time are printed" "$out" "^Target accuracy [0-9.]+ reached after $epoch epochs? and [0-9.]+ sec, test accuracy: [0-9.]+$"
like "and the fingerprint" "$out" '^parameters xxh64 [0-9a-f]{16}$'
is "metrics.jsonl has the target once" "$(grep -c '"kind": "target"' target/metrics.jsonl)" 1
ok "with accuracy, epochs and time" json <(grep '"kind": "target"' target/metrics.jsonl) \
	"o['epochs'] == $epoch and o['accuracy'] >= o['target'] and o['seconds'] > 0"
ok "the run has its end" grep -q '"kind": "end"' target/metrics.jsonl
fingerprint_at_target=$(fingerprint "$out")

run "${job[@]}" --epochs 5 --to-accuracy "$target" --run target --resume
is "resumed, the run is complete" "$status" 0
is "with the same weights" "$(fingerprint "$out")" "$fingerprint_at_target"
is "and no further step" "$(grep -c '^Epoch' <<<"$out")" 0
is "and the target is recorded once" "$(grep -c '"kind": "target"' target/metrics.jsonl)" 1
seconds=$(sed -nE 's/.*"kind": "target".*"seconds": ([0-9.]+).*/\1/p' target/metrics.jsonl)
like "the line has the recorded time" "$out" "^Target accuracy [0-9.]+ reached after $epoch epochs? and $(printf %.2f "$seconds") sec, test"
run "${job[@]}" --epochs 5 --to-accuracy 0.9999 --run target --resume
is "a higher target: training goes on" "$(grep -c "^Epoch" <<<"$out")" "$((5 - epoch))"
run "${job[@]}" --epochs 5 --to-accuracy "$target" --run target --resume
is "and not again after later steps" "$(grep -c '"kind": "target"' target/metrics.jsonl)" 1

# the time is that of all processes: the first one took 1000 seconds
run "${job[@]}" --steps 3 --run parts
ok "a checkpoint has the time since the start" json <(grep '"kind": "checkpoint"' parts/metrics.jsonl) "o['seconds'] > 0"
sed -i -E '/"kind": "checkpoint"/s/"seconds": [0-9.]+/"seconds": 1000/' parts/metrics.jsonl
cp -r parts without
run "${job[@]}" --epochs 5 --to-accuracy 0.01 --run parts --resume --steps 6
like "after a resume the time includes earlier processes" "$out" '^Target accuracy 0.01 reached after [0-9.]+ epochs? and 10[0-9][0-9]\.[0-9]+ sec, test'
ok "also in the record" json <(grep '"kind": "target"' parts/metrics.jsonl) "1000 < o['seconds'] < 1100"
sed -i -E '/"kind": "checkpoint"/s/, "seconds": [0-9.]+//' without/metrics.jsonl
run "${job[@]}" --epochs 5 --to-accuracy 0.01 --run without --resume --steps 6
like "where that is not known, the line says so" "$out" '^Target accuracy 0.01 reached after [0-9.]+ epochs? and [0-9.]+ sec since the resume, test'

run "${job[@]}" --epochs 2 --to-accuracy 0.9999
is "a target that is not reached is no failure" "$status" 0
like "but a warning, with the accuracy" "$err" 'test accuracy 0\.[0-9]+ is below the target of 0\.9999 after 2 epochs and [0-9.]+ sec'
is "both epochs are trained" "$(grep -c '^Epoch' <<<"$out")" 2

fails_with "a target without evaluations" 2 "--to-accuracy 0.9 needs a test set and evaluations: --eval-every is 0" \
	"${job[@]}" --to-accuracy 0.9 --eval-every 0
fails_with "a target above 1" 2 "--to-accuracy must be between 0 and 1, not 99" "${job[@]}" --to-accuracy 99
fails_with "a target of 0" 2 "--to-accuracy must be above 0" "${job[@]}" --to-accuracy 0
fails_with "another name of it" 2 "--to-accuracy" "${job[@]}" --target-accuracy 0.9

test_end

#!/bin/bash
# The best weights of a run, an early end, a moving average of weights, evaluations by steps.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

job=(small_train --samples 640 --micro-batch 16 --lr 0.003) # ten steps per epoch
tests_of() { sed -nE 's/^\{"kind": "test", "step": ([0-9]+),.*/\1/p' "$1/metrics.jsonl" | xargs; }

# ---- evaluations by steps ----
run "${job[@]}" --epochs 2 --run epochs
is "by epochs" "$status $(tests_of epochs)" "0 10 20"
plain=$(fingerprint "$out")
run "${job[@]}" --epochs 2 --eval-steps 7 --run steps
is "every 7 steps, and the last weights" "$status $(tests_of steps)" "0 7 14 20"
is "the same bits" "$(fingerprint "$out")" "$plain"
like "each has a line" "$out" '^Step7: test time [0-9.]+ sec, test accuracy: 0\.[0-9]{4}$'
like "epochs without one have none" "$out" '^Epoch 1 in [0-9.]+ sec$'

# ---- early stop ----
run "${job[@]}" --epochs 9 --early-stop 2 --early-stop-delta 100 --run early
is "no evaluation is better by 100: success" "$status" 0
like "after the second that is not" "$out" '^Stopped early after step 30: no better test loss in 2 evaluations$'
like "the best is named" "$out" '^Best test loss: [0-9.]+ after step [0-9]+$'
is "three epochs" "$(tests_of early)" "10 20 30"
is "and recorded" "$(grep -c '"kind": "early_stop", "step": 30,' early/metrics.jsonl)" 1
ended=$(fingerprint "$out")
run "${job[@]}" --epochs 9 --run early --resume
is "resumed, it has ended" "$status $(fingerprint "$out") $(grep -c '^Epoch' <<<"$out")" "0 $ended 0"
is "which is recorded once" "$(grep -c '"kind": "early_stop"' early/metrics.jsonl)" 1
run "${job[@]}" --epochs 9 --early-stop 4 --run early --resume
like "with more patience it goes on" "$out" '^Stopped early after step 50: '
run "${job[@]}" --steps 13 --early-stop 2 --early-stop-delta 100 --run parts
run "${job[@]}" --epochs 9 --run parts --resume
is "in two parts, the first with a test at its end: the same end" "$(fingerprint "$out") $(tests_of parts)" "$ended 10 13 20 30"
run "${job[@]}" --epochs 4 --early-stop 3
unlike "as long as it gets better it goes on" "$out" 'Stopped early'

# ---- the best weights ----
run "${job[@]}" --epochs 4 --lr 0.03 --keep-best accuracy --run best
is "a run that keeps the best" "$status" 0
accuracy=$(sed -nE 's/^Epoch .*test accuracy: ([0-9.]+)$/\1/p' <<<"$out" | sort -n | tail -n 1)
like "says which" "$out" "^Best test accuracy: $accuracy after step [0-9]+, saved as best/best.safetensors$"
run "$LOCKSTEP" eval best --best
like "eval --best" "$out" "^test accuracy: $accuracy,"
weights=$(fingerprint "$out")
run "$LOCKSTEP" eval best/best.safetensors
is "and by its name: the same weights" "$(fingerprint "$out")" "$weights"
run "$LOCKSTEP" export best --best --onnx best.onnx
is "export --best" "$status" 0
ok "the file says what it is" grep -aq '"best-metric":"accuracy"' best/best.safetensors
run "${job[@]}" --epochs 1 --init best/best.safetensors --lr 0 --schedule constant --eval-every 1
is "it can be continued" "$status" 0
run "${job[@]}" --epochs 4 --schedule constant --keep-best loss --ckpt-every 10 --keep 9 --run kept
like "a run with best weights" "$out" '^Best test loss: [0-9.]+ after step [34]0,'
cp kept/best.safetensors kept.safetensors
rm -rf kept/ckpt/step-00000002? kept/ckpt/step-00000003? kept/ckpt/step-00000004? # as if it was killed before it saved them
run "${job[@]}" --steps 20 --run kept --resume
is "resumed from before the best, and ended before it" "$status $(echo kept/ckpt/*)" "0 kept/ckpt/step-000000010 kept/ckpt/step-000000020"
ok "its best weights are not replaced by worse ones" cmp kept/best.safetensors kept.safetensors
like "and named" "$out" '^Best test loss: [0-9.]+ after step [34]0, saved as kept/best.safetensors$'
run "${job[@]}" --epochs 4 --run kept --resume
ok "the same evaluation again gives the same file" cmp kept/best.safetensors kept.safetensors
head -c 100 kept.safetensors >kept/best.safetensors
rm -rf kept/ckpt/step-00000004?
run "${job[@]}" --epochs 4 --run kept --resume
like "a damaged file is warned of" "$err" 'warning: the next evaluation replaces the best weights of the run: kept/best.safetensors'
ok "and replaced" cmp kept/best.safetensors kept.safetensors
fails_with "a run without" 1 'has no best.safetensors: a run keeps its best weights with --keep-best METRIC' "$LOCKSTEP" eval early --best
fails_with "a file" 2 '--best is for a run directory' "$LOCKSTEP" eval best/best.safetensors --best
fails_with "another metric" 2 "unknown metric 'acuracy'; did you mean 'accuracy'\\?" "${job[@]}" --keep-best acuracy
fails_with "without evaluations" 2 '--early-stop 3 needs a test set and evaluations: --eval-every is 0' "${job[@]}" --early-stop 3 --eval-every 0

# ---- moving average ----
run "${job[@]}" --steps 6 --ckpt-every 1 --keep 9 --ema 0.9 --run ema
is "a moving average" "$status" 0
averaged=$(fingerprint "$out")
run "${job[@]}" --steps 6 --ckpt-every 1 --keep 9 --run raw
cat >check.py <<'PYTHON'
"""ema/ has, step by step, the parameters of raw/ and their average, to the bit."""
import json, struct, sys


def read(path):
    raw = open(path, "rb").read()
    size = struct.unpack("<Q", raw[:8])[0]
    head, data = json.loads(raw[8:8 + size]), raw[8 + size:]
    return {k: data[v["data_offsets"][0]:v["data_offsets"][1]] for k, v in head.items() if k != "__metadata__"}


def fp32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


average, weight = {}, fp32(1.0 - 0.9)
for step in range(1, 7):
    kept, plain = (read(f"{run}/ckpt/step-{step:09d}/model.safetensors") for run in ("ema", "raw"))
    state = read(f"ema/ckpt/step-{step:09d}/optimizer.safetensors")
    for name, found in kept.items():
        assert state["raw." + name] == plain[name], (step, name, "trained")
        count = min(len(found) // 4, 3000)
        p = struct.unpack("<%df" % count, plain[name][:4 * count])
        a = average.get(name)
        a = p if a is None else [fp32(x + fp32(weight * fp32(y - x))) for x, y in zip(a, p)]
        average[name] = a
        assert struct.pack("<%df" % count, *a) == found[:4 * count], (step, name, "average")
PYTHON
ok "is the average of the same training" python3 check.py
run "$LOCKSTEP" eval ema
is "what is evaluated" "$(fingerprint "$out")" "$averaged"
like "with the accuracy of the run" "$out" "^test accuracy: $(sed -nE 's/.*"kind": "test", "step": 6,.*"accuracy": ([0-9.]+),.*/\1/p' ema/metrics.jsonl | xargs printf %.4f),"
run "${job[@]}" --steps 6 --ema 0.9 --devices 3 --threads 2
is "on other devices: the same bits" "$(fingerprint "$out")" "$averaged"
run "${job[@]}" --steps 2 --ema 0.9 --run again
run "${job[@]}" --steps 6 --run again --resume
is "after a resume: the same bits" "$(fingerprint "$out")" "$averaged"
ok "in both files" cmp {ema,again}/ckpt/step-000000006/optimizer.safetensors
fails_with "another decay" 1 'options.ema was 0.9, now 0.99|--ema was 0.9, now 0.99' "${job[@]}" --steps 9 --ema 0.99 --run again --resume
run "${job[@]}" --ema 0.9 --plan-memory
like "the memory plan has it" "$out" '^ +moving average +[0-9.]+ MB'
fails_with "no decay at all" 2 '--ema must be above 0' "${job[@]}" --ema 0

test_end

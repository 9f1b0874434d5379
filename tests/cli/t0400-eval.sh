#!/bin/bash
# Evaluation of runs and of files.
# shellcheck disable=SC2317 # functions are called by run
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

accuracy() { sed -nE 's/.*accuracy: ([0-9.]+).*/\1/p' <<<"$1" | tail -n 1; }

run small_train --epochs 2 --run runs/a
trained=$(accuracy "$out")
print=$(grep '^parameters xxh64' <<<"$out")
run "$LOCKSTEP" eval runs/a --samples 200
is "eval of a run succeeds" "$status" 0
like "accuracy, loss, samples" "$out" \
	'^test accuracy: [0-9.]+, loss [0-9.]+, 200 samples in [0-9.]+ sec'
like "the fingerprint is what training printed" "$out" "$print"
is "its accuracy is what training printed" "$(accuracy "$out")" "$trained"
without_time() { echo "${1% in *}"; }
first=$(without_time "$out")

run "$LOCKSTEP" eval runs/a --samples 200 --batch 7 --threads 2
is "neither batch nor threads change it" "$(without_time "$out")" "$first"
for devices in 1 3; do
	run "$LOCKSTEP" eval runs/a --samples 200 --batch 32 --devices $devices --logits logits-$devices.safetensors
	is "nor do $devices devices" "$(without_time "$out")" "$first"
done
ok "and the logits are the same bytes" cmp logits-1.safetensors logits-3.safetensors
fails_with "more threads than there can be" 2 "at most 1024 threads" "$LOCKSTEP" eval runs/a --devices 600 --threads 2
checkpoint=$(echo runs/a/ckpt/step-*32)/model.safetensors
run "$LOCKSTEP" eval "$checkpoint" --data glyphs --samples 200
is "the checkpoint's file gives the same" "$(without_time "$out")" "$first"
run "$LOCKSTEP" eval "$checkpoint" --model mlp --data glyphs --samples 200 --logits logits.safetensors
is "--logits succeeds" "$status" 0
ok "and writes a file for 200 samples of 10 classes" test "$(stat -c %s logits.safetensors)" -ge 8000

run small_train --epochs 2 --init "$checkpoint" --steps 1 --eval-every 0
is "training may start from it" "$status" 0

# The weights of classes are in the file, as numbers: the loss of a file alone is that of its run.
run small_train --epochs 1 --class-weights auto --run runs/weighed
run "$LOCKSTEP" eval runs/weighed
first=$(without_time "$out")
loss=$(sed -nE 's/.*"kind": "test".*"loss": ([0-9.]+),.*/\1/p' runs/weighed/metrics.jsonl | tail -n 1 | xargs printf %.4f)
like "a weighted loss is that of training" "$first" "loss $loss,"
cp runs/weighed/ckpt/step-*16/model.safetensors weighed.safetensors
ok "the file has a weight per class" grep -aqE '"class-weights":"([0-9.e-]+,){9}[0-9.e-]+"' weighed.safetensors
run "$LOCKSTEP" eval weighed.safetensors
is "the file alone has the same loss" "$(without_time "$out")" "$first"
sed 's/"class-weights"/"other-weights"/' weighed.safetensors >plain.safetensors
run "$LOCKSTEP" eval plain.safetensors
unlike "which is not the one without weights" "$out" "loss $loss,"

# Weights that are not numbers are named where they are read; those whose loss is none end with a failure.
cat >poke.py <<'EOF'
import json, struct, sys
source, to, name, *values = sys.argv[1:]
data = bytearray(open(source, "rb").read())
size = struct.unpack("<Q", data[:8])[0]
begin, end = json.loads(data[8 : 8 + size])[name]["data_offsets"]
for at in range(8 + size + begin, 8 + size + end, 4) if len(values) > 1 else [8 + size + begin + 4]:
    data[at : at + 4] = struct.pack("<f", float(values[0]))
open(to, "wb").write(data)
EOF
bias=$(python3 -c 'import json, struct, sys
data = open(sys.argv[1], "rb").read()
print([k for k in json.loads(data[8 : 8 + struct.unpack("<Q", data[:8])[0]]) if k.endswith("bias")][-1])' "$checkpoint")
for value in nan inf; do
	python3 poke.py "$checkpoint" $value.safetensors "$bias" $value
	fails_with "eval of weights with $value" 1 "$value.safetensors: element 1 of tensor '$bias' is (NaN|infinite)" \
		"$LOCKSTEP" eval $value.safetensors --data glyphs --samples 200
	is "prints no result" "$out" ""
	fails_with "training from weights with $value" 1 "$value.safetensors: element 1 of tensor '$bias' is (NaN|infinite)" \
		small_train --init $value.safetensors
	unlike "does not blame the learning rate" "$err" "--lr"
done
python3 poke.py "$checkpoint" large.safetensors "${bias%bias}weight" 3e38 all
fails_with "eval whose loss is not finite" 1 "the loss of large.safetensors on glyphs is (NaN|infinite)" \
	"$LOCKSTEP" eval large.safetensors --data glyphs --samples 200 --logits large-logits.safetensors
is "prints no result, either" "$out" ""
ok "and writes no logits" test ! -e large-logits.safetensors
fails_with "training from them" 1 "at step 1, before any update: the weights of --init large.safetensors" \
	small_train --init large.safetensors
unlike "does not blame the learning rate, either" "$err" "--lr"

fails_with "another model than the weights are of" 1 "safetensors" "$LOCKSTEP" eval "$checkpoint" --model cnn --data glyphs
fails_with "a run that is not there" 1 "nowhere" "$LOCKSTEP" eval nowhere
mkdir empty
fails_with "a directory without a checkpoint" 1 "empty" "$LOCKSTEP" eval empty

# A run's own test set: size, seed and folder, unless another is named.
run small_train --epochs 1 --seed 7 --run runs/seven
trained=$(accuracy "$out")
run "$LOCKSTEP" eval runs/seven
like "as many samples as training tested on" "$out" ", 200 samples in"
is "and the same ones" "$(accuracy "$out")" "$trained"
first=$(without_time "$out")
cp runs/seven/ckpt/step-*/model.safetensors alone.safetensors
run "$LOCKSTEP" eval alone.safetensors
is "a file away from its run knows them, too" "$(without_time "$out")" "$first"
run "$LOCKSTEP" eval runs/seven --samples 50
like "--samples wins" "$out" ", 50 samples in"

# --logits replaces nothing but a file of its own.
checkpoint=$(echo runs/seven/ckpt/step-*)/model.safetensors
before=$(sha256sum <"$checkpoint")
fails_with "logits over the weights" 2 "the weights are read from it" "$LOCKSTEP" eval runs/seven --logits "$checkpoint"
ln -s "$checkpoint" link
fails_with "also by a link" 2 "the weights are read from it" "$LOCKSTEP" eval runs/seven --logits link
is "the weights are as they were" "$(sha256sum <"$checkpoint")" "$before"
mkfifo pipe
fails_with "logits into a pipe that nobody reads" 1 "pipe: no process reads from it" timeout 10 "$LOCKSTEP" eval runs/seven --logits pipe
cat pipe >from-pipe &
run timeout 20 "$LOCKSTEP" eval runs/seven --logits pipe
wait $!
is "logits into one that is read" "$status" 0
ok "come out at its other end" test "$(stat -c %s from-pipe)" -ge 8000
ok "the pipe is still one" test -p pipe
echo old >target
ln -s target way
run "$LOCKSTEP" eval runs/seven --logits way
is "logits through a link" "$status" 0
ok "the link is still one" test -L way
ok "and its target has the logits" test "$(stat -c %s target)" -ge 8000

fails_with "weights from a pipe" 1 "pipe is not a regular file" timeout 10 "$LOCKSTEP" eval pipe
fails_with "initial weights from a pipe" 1 "pipe is not a regular file" timeout 10 "$LOCKSTEP" train --model mlp \
	--data glyphs --samples 64 --steps 1 --init pipe
fails_with "weights from a device" 1 "/dev/zero is not a regular file" timeout 10 "$LOCKSTEP" eval /dev/zero

# The number of classes is the run's, whatever labels the data has.
"$LOCKSTEP" data make glyphs --samples 300 --out digits --quiet
idx() { # FROM TO COUNT LABELS: the first COUNT test images of FROM whose label is in LABELS, plus SHIFT
	python3 - "$@" "${SHIFT:-0}" <<'PYTHON'
import os, struct, sys
source, target, count, labels, shift = sys.argv[1:]
images = open(source + "/t10k-images-idx3-ubyte", "rb").read()[16:]
labels_in = open(source + "/t10k-labels-idx1-ubyte", "rb").read()[8:]
wanted = [i for i, label in enumerate(labels_in) if str(label) in labels.split(",")][:int(count)]
os.makedirs(target, exist_ok=True)
for split in ["t10k"] + (["train"] if os.environ.get("BOTH") else []):
    with open(target + "/" + split + "-images-idx3-ubyte", "wb") as out:
        out.write(struct.pack(">4I", 0x803, len(wanted), 28, 28) + b"".join(images[784 * i:784 * i + 784] for i in wanted))
    with open(target + "/" + split + "-labels-idx1-ubyte", "wb") as out:
        out.write(struct.pack(">2I", 0x801, len(wanted)) + bytes(labels_in[i] + int(shift) for i in wanted))
PYTHON
}
idx digits few 100 0,1,2,3,4
run "$LOCKSTEP" eval runs/a --data few
is "digits 0 to 4 on a run of ten classes" "$status$err" 0
like "all of them" "$out" ', 100 samples in'
idx digits one 1 0
run "$LOCKSTEP" eval runs/a --data one
is "one image, of one label" "$status$err" 0
like "is one sample" "$out" ', 1 samples? in'
run "$LOCKSTEP" eval runs/a/ckpt/step-000000032/model.safetensors --data few
is "of a file alone" "$status$err" 0
SHIFT=6 idx digits beyond 50 2,3,4
fails_with "labels beyond the run's classes" 1 "t10k-labels-idx1-ubyte: label 10 at index [0-9]+, expected 0\.\.9: there are 10 classes" \
	"$LOCKSTEP" eval runs/a --data beyond

# Weights for another number of classes: the layer of classes is newly initialised, and a message says so.
BOTH=1 idx digits five 100 0,1,2,3,4
train_five() { "$LOCKSTEP" train --model mlp --data five --devices 1 --batch 20 --steps 2 "$@"; }
run train_five --init runs/a --run runs/five
is "ten classes to five" "$status" 0
like "is said" "$err" "has 10 classes, this model 5: its layer fc3 is not used, the model's own is newly initialised"
ok "the run has five" python3 -c 'import json, struct, sys
data = open("runs/five/ckpt/step-000000002/model.safetensors", "rb").read()
header = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
assert header["fc3.weight"]["shape"] == [5, 128] and header["fc2.weight"]["shape"] == [128, 256]'
run "$LOCKSTEP" eval runs/five
is "and is evaluated" "$status$err" 0
fails_with "on ten digits it is refused" 1 "expected 0\.\.4: there are 5 classes" "$LOCKSTEP" eval runs/five --data digits
run train_five --init runs/five
unlike "the same number is taken whole" "$err" "newly initialised"

# a file alone is evaluated with the loss of its run
run "$LOCKSTEP" train --model mlp --data glyphs --samples 64 --test-samples 32 --steps 2 --batch 32 --loss bce --run bce
run "$LOCKSTEP" eval bce
whole=$(grep -o 'loss [0-9.]*' <<<"$out")
cp bce/ckpt/step-000000002/model.safetensors bce.safetensors
run "$LOCKSTEP" eval bce.safetensors
is "a file notes its loss" "$(grep -o 'loss [0-9.]*' <<<"$out")" "${whole:-none}"

test_end

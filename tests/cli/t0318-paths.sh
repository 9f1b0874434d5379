#!/bin/bash
# What a run keeps of paths holds in any directory, and data is known by its samples wherever it lies.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

train() {
	"$LOCKSTEP" train --model mlp --batch 64 --micro-batch 64 --devices 1 --schedule constant "$@"
}
ok "a folder of images" "$LOCKSTEP" data make glyphs --samples 300 --out pictures
mkdir elsewhere

run train --data pictures --steps 4 --run runs/a
accuracy=$(sed -nE 's/.*test accuracy: ([0-9.]+)$/\1/p' <<<"$out")
like "a run on a folder by a relative name" "$accuracy" '^[0-9.]+$'
ok "run.json has the whole path" json runs/a/run.json "o['settings']['data'] == '$PWD/pictures'"
ok "and a hash" json runs/a/run.json "len(o['settings']['train-hash']) == 16 and o['settings']['train-hash'] != o['settings']['test-hash']"
cd elsewhere || exit 1
run "$LOCKSTEP" eval ../runs/a
like "it is evaluated from another directory" "$out" "test accuracy: $accuracy"
run "$LOCKSTEP" eval ../runs/a/ckpt/step-000000004/model.safetensors
like "and so is its file of weights" "$out" "test accuracy: $accuracy"
unlike "the samples are those of the run" "$err" "has changed"
run train --data ../pictures --steps 6 --run ../runs/a --resume
is "a resume may name the folder in another way" "$status" 0
cd .. || exit 1

# Another place, the same samples; the same place, others.
mv pictures moved
run train --data moved --steps 8 --run runs/a --resume
is "data that was moved is the same data" "$status" 0
run "$LOCKSTEP" eval runs/a
is "and is found where it was last" "$status" 0
ok "other pictures" "$LOCKSTEP" data make glyphs --samples 300 --seed 5 --out pictures
fails_with "other data in another place is refused" 1 "--data was .*/moved, now .*/pictures" train --data pictures --steps 9 --run runs/a --resume
rm -rf moved
mv pictures moved
fails_with "other data in the same place, too" 1 "the training data has different samples than before" train --data moved --steps 9 --run runs/a --resume
run "$LOCKSTEP" eval runs/a
is "eval goes on with it" "$status" 0
like "and says so" "$err" "warning: the test set of .*/moved has changed since the run"
rm -rf moved
ok "pictures again" "$LOCKSTEP" data make glyphs --samples 300 --out pictures

# A run of an earlier version: a relative name, no hash.
run train --data pictures --steps 4 --run runs/old
python3 - runs/old <<'P'
import glob, json, sys
def earlier(settings):
    settings["data"] = "pictures"
    for key in ("train-hash", "test-hash"):
        settings.pop(key)
path = sys.argv[1] + "/run.json"
o = json.load(open(path))
earlier(o["settings"])
o.pop("format")
json.dump(o, open(path, "w"))
P
rm -r runs/old/ckpt
run train --data pictures --steps 6 --run runs/old --resume
is "a run without hashes is read" "$status" 0
fails_with "and its data compared by name" 1 "--data was .*/pictures, now glyphs" \
	bash -c 'rm -r runs/old/ckpt; '"$LOCKSTEP"' train --model mlp --batch 64 --micro-batch 64 --devices 1 --schedule constant --data glyphs --steps 6 --run runs/old --resume'

# The weights that a run starts from.
run train --data pictures --steps 4 --init runs/a --run runs/from
ok "--init is kept as a whole path" json runs/from/run.json "o['settings']['init'] == '$PWD/runs/a'"
begun=$(fingerprint "$out")
rm -r runs/from/ckpt
cd elsewhere || exit 1
run train --data ../pictures --steps 4 --run ../runs/from --resume
is "a start over finds them from another directory" "$(fingerprint "$out")" "$begun"
cd .. || exit 1

# Every sample of a small set counts.
run "$LOCKSTEP" data make glyphs --samples 5 --out five
cp -r five other
images=other/train-images-idx3-ubyte
printf '\377' | dd of=$images bs=1 seek=$(($(stat -c %s $images) - 1)) conv=notrunc 2>/dev/null
for set in five other; do
	run train --data $set --batch 5 --micro-batch 5 --steps 1 --eval-every 0 --run runs/$set
	is "a run on 5 samples, $set" "$status" 0
done
train_hash() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["settings"]["train-hash"])' "$1"; }
ok "sets whose last samples differ have different hashes" \
	test "$(train_hash runs/five/run.json)" != "$(train_hash runs/other/run.json)"

test_end

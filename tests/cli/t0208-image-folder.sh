#!/bin/bash
# Training on a folder of images: the same bits whatever decodes them, one decoding per image, and images that are wrong.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
export LOCKSTEP_DATA=$PWD/data

ok "digits as IDX files" "$LOCKSTEP" data make glyphs --samples 900 --out idx --quiet
ok "and as a folder of images" python3 "$SOURCE_DIR/tests/cli/image_folder.py" idx digits

run "$LOCKSTEP" data info digits
is "data info" "$status" 0
like "says what it found" "$out" 'train: 900 samples of 1 x 28 x 28, 10 classes'

fingerprint() { # ARGUMENT...: of a training
	"$LOCKSTEP" train --model cnn --data digits --epochs 2 --batch 60 --micro-batch 15 "$@" 2>err | tail -n 1
}
rm -rf data
first=$(fingerprint --devices 1 --threads 1 --cache off)
like "it trains" "$first" '^parameters xxh64 [0-9a-f]{16}$'
is "nothing is kept with --cache off" "$(ls data/images 2>/dev/null)" ""
echo "ten digits" >digits/README.txt # a text beside images does no harm
is "the same bits while the cache is filled" "$(fingerprint --devices 2 --threads 1)" "$first"
is "a file for each split" "$(find data/images -name 'digits-28x28x1-*.cache' | wc -l)" 2
is "and from the cache" "$(fingerprint --devices 1 --threads 2)" "$first"
is "and from one elsewhere" "$(fingerprint --cache elsewhere)" "$first"
ok "which is there" test -n "$(ls elsewhere)"
transformed=$(fingerprint --devices 1 --threads 1 --cache off --augment crop:3,flip,randaugment:2:9,mixup:0.4)
like "images are transformed" "$transformed" '^parameters xxh64 [0-9a-f]{16}$'
unlike "which changes the bits" "$transformed" "${first##* }"
for cache in off fresh fresh; do # decoded each time, written to a cache, read from it
	is "four reader threads: the same bits, cache $cache" \
		"$(fingerprint --devices 1 --threads 4 --cache $cache --augment crop:3,flip,randaugment:2:9,mixup:0.4)" "$transformed"
done
is "and on two devices with two each" \
	"$(fingerprint --devices 2 --threads 2 --cache off --augment crop:3,flip,randaugment:2:9,mixup:0.4)" "$transformed"
threads() { "$LOCKSTEP" train --model mlp --devices 1 --threads 4 --steps 1 --plan-memory "$@" 2>&1 | sed -nE 's/^ *threads .*\(([0-9]+) threads?\)/\1/p'; }
is "the memory plan counts the readers of both parts" "$(threads --data digits)" $((4 + 4 + 4))
is "of bytes that are mapped there is one each" "$(threads --data idx)" $((4 + 1 + 1))
before=$(stat -c %i data/images/*.cache)
fingerprint --samples 300 --test-samples 40 >/dev/null
is "fewer samples leave the cache alone" "$(stat -c %i data/images/*.cache)" "$before"

# The bytes of the files are no longer needed; that they are the same files is seen by size and time.
mkdir saved
cp -a digits/train/'digit 3' saved/
for file in digits/train/'digit 3'/*.png; do
	touch -r "$file" stamp
	head -c 32 "$file" >garbage # the header says size and colours
	head -c "$(($(stat -c %s "$file") - 32))" /dev/zero >>garbage
	cat garbage >"$file"
	touch -r stamp "$file"
done
is "no image is decoded twice" "$(fingerprint)" "$first"
fails_with "images that are not" 1 "digits/train/digit 3/[0-9]+.png: not a PNG" \
	"$LOCKSTEP" train --model cnn --data digits --steps 2 --cache off
rm -rf digits/train/'digit 3'
cp -a saved/'digit 3' digits/train/

run "$LOCKSTEP" train --model cnn --data digits --steps 4 --batch 60 --schedule constant --run run --quiet
is "a run" "$status" 0
ok "keeps mean and deviation of its images" json run/run.json \
	"0.05 < o['settings']['mean'][0] < 0.5 and o['settings']['mean'][0] != 0.1307 and o['settings']['deviation'][0] > 0.1"
run "$LOCKSTEP" eval run
is "is evaluated on its folder" "$status" 0
like "of test images" "$out" 'accuracy'
is "the run keeps the names of its classes" "$(head -n 2 run/labels.txt | tr '\n' ,)" "digit 0,digit 1,"
run "$LOCKSTEP" predict run "digits/test/digit 4/$(ls 'digits/test/digit 4' | head -n 1)"
is "predictions" "$status" 0
like "have names" "$out" '^input,row,label,name,probability'
run "$LOCKSTEP" train --run run --resume --steps 6 --quiet
is "and resumed" "$status" 0
cp -a digits darker
python3 - "$SOURCE_DIR" <<'EOF'
import pathlib, sys, zlib
sys.path.insert(0, sys.argv[1] + "/tests/cli")
from image_folder import png
for path in pathlib.Path("darker").glob("*/*/*.png"):
    data = path.read_bytes()
    rows = zlib.decompress(data[41:data.index(b"IEND") - 8])
    path.write_bytes(png(bytes(rows[29 * y + x + 1] // 4 for y in range(28) for x in range(28)), 28, 28))
EOF
rm -rf data elsewhere
run "$LOCKSTEP" train --model cnn --data digits --steps 2 --batch 60 --cache off --run uncached --quiet
run "$LOCKSTEP" eval uncached
is "a run without a cache" "$status" 0
is "is evaluated without one" "$(ls data/images 2>/dev/null)" ""
run "$LOCKSTEP" eval uncached --cache elsewhere
ok "unless it is asked for" test -n "$(ls elsewhere)"
run "$LOCKSTEP" train --model cnn --data digits --steps 2 --batch 60 --cache gone --run cached --quiet
mv gone away
run "$LOCKSTEP" eval cached
is "a cache that is not there" "$status" 0
ok "is made in its usual place" test ! -e gone -a -n "$(ls data/images)"
# A run whose constants are not those that are measured now, as of a version that measured otherwise.
run "$LOCKSTEP" train --model cnn --data darker --steps 2 --batch 60 --schedule constant --init run --run older --quiet
mean=$(python3 -c 'import json; print("%.9g" % json.load(open("older/run.json"))["settings"]["mean"][0])')
run "$LOCKSTEP" train --model cnn --data darker --steps 2 --batch 60
unlike "darker images are measured as such" "$out$err" "normalised with mean $mean,"
run "$LOCKSTEP" train --run older --resume --steps 4
is "a resumed run keeps its mean, whatever is measured now" "$status" 0
like "and says so" "$out$err" "normalised with mean $mean,"
mkdir -p other/train
cp -a digits/train/* other/train/
mv 'other/train/digit 0' 'other/train/nought'
fails_with "other classes" 1 "class 0 of dataset 'other' is 'digit 1', and the weights were trained with 'digit 0'" \
	"$LOCKSTEP" eval run --data other
fails_with "metrics over the weights" 2 'the weights are read from it' "$LOCKSTEP" eval run --metrics "$(find run -name model.safetensors | sort | tail -n 1)"
run "$LOCKSTEP" train --model cnn --data digits --steps 2 --image-size 20 --plan-memory
is "another size" "$status" 0
mkdir -p odd
cp -a digits/train/'digit 4' odd/$'an\x1b[31m odd\nname'
cp -a digits/train/'digit 5' odd/dog
run "$LOCKSTEP" train --model mlp --data odd --steps 2 --run odd-run --quiet
is "a class may have any name; its line has nothing for a terminal" "$(tr '\n' , <odd-run/labels.txt)" "an?[31m odd name,dog,"
run "$LOCKSTEP" eval odd-run --per-class
is "such a run is evaluated" "$status" 0
like "with the name in a line" "$out" '^0 an\?\[31m odd\?name '
fails_with "a size that is none" 2 "image-size" "$LOCKSTEP" train --data digits --image-size 0
fails_with "a cache that cannot be" 1 "/proc/none" "$LOCKSTEP" train --model cnn --data digits --steps 1 --cache /proc/none

test_end

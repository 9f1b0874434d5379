#!/bin/bash
# lockstep export: a model of a run or of a file becomes an ONNX file, whole or not at all. What other programs make of it is
# compared in tests/golden/t9060-onnx.sh.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

run "$LOCKSTEP" train --model cnn --data glyphs --samples 64 --test-samples 16 --steps 1 --run cnn --quiet
is "a run to export" "$status" 0
run "$LOCKSTEP" export cnn --onnx cnn.onnx
is "is exported in silence" "$status$out$err" 0
ok "with its producer" grep -aq lockstep cnn.onnx
ok "which says in what it was trained" grep -aqP 'precision\x12\x04fp32' cnn.onnx
for text in input logits conv1.weight fc2.bias Conv MaxPool Gemm mean 0.1307; do
	ok "the file has $text" grep -aqF "$text" cnn.onnx
done
parameters=421642
ok "and all parameters" test "$(stat -c %s cnn.onnx)" -gt $((4 * parameters)) -a "$(stat -c %s cnn.onnx)" -lt $((4 * parameters + 8192))
cp cnn/ckpt/step-*/model.safetensors file.safetensors
run "$LOCKSTEP" export file.safetensors --onnx file.onnx
ok "the weights alone give the same file" cmp cnn.onnx file.onnx
run "$LOCKSTEP" export file.safetensors --onnx shape.onnx --input 1x28x28
ok "so does the shape that is given" cmp cnn.onnx shape.onnx

# Regression: what the exported model computes is in the units of the targets, as predictions are.
mkdir houses
for part in train test; do
	awk -v part=$part 'BEGIN { srand(length(part)); print "area,age,price,tax"
		for (i = 0; i < (part == "train" ? 200 : 20); i++) { a = int(rand() * 150) + 30; y = int(rand() * 60)
			printf "%d,%d,%d.5,%.3f\n", a, y, 1000 * a - 200 * y + 50000, a / 100 - 3 } }' >houses/$part.csv
done
run "$LOCKSTEP" train --model mlp --data houses --target price,tax --epochs 3 --batch 32 --run rows --quiet
run "$LOCKSTEP" eval rows --logits rows.safetensors --quiet
run "$LOCKSTEP" predict rows houses/test.csv
tail -n +2 <<<"$out" | cut -d, -f3- >predicted
run "$LOCKSTEP" export rows --onnx rows.onnx
is "a model of a table is exported" "$status" 0
ok "with its columns" grep -aqF '"price"' rows.onnx
ok "its outputs are in the units of the targets" eval 'python3 "$SOURCE_DIR/tests/cli/onnx_rows.py" rows.onnx rows.safetensors >computed'
is "of every sample" "$(wc -l <computed)" 20
ok "and are what predict writes" python3 -c '
for a, b in zip(open("computed"), open("predicted"), strict=True):
    for x, y in zip(map(float, a.split(",")), map(float, b.split(",")), strict=True):
        assert abs(x - y) < 1e-4 * max(1, abs(y)), (a, b)'

# bf16: the file computes in fp32, and says what the run did.
run "$LOCKSTEP" train --model cnn --data glyphs --samples 64 --test-samples 16 --steps 2 --run rounded --precision bf16 --quiet
run "$LOCKSTEP" export rounded --onnx rounded.onnx
is "a run in bf16 is exported with a note" "$status $out$err" \
	"0 note: the model was trained in bf16; the ONNX file computes in fp32, so its logits differ by about 0.1 % of the largest"
ok "and with its precision" grep -aqP 'precision\x12\x04bf16' rounded.onnx

# Text has no shape of an image.
run "$LOCKSTEP" train --model gpt-nano --data babble --samples 16 --test-samples 4 --seq-len 12 --steps 1 --run text --quiet
fails_with "the shape of an image for a model of text" 2 '--input is the shape of an image, and model gpt-nano takes text; leave it out' \
	"$LOCKSTEP" export text --onnx x.onnx --input 1x2x3
fails_with "without a file to write" 2 'nothing to write: give --onnx FILE or --safetensors FILE' "$LOCKSTEP" export cnn
fails_with "without weights" 2 'RUN' "$LOCKSTEP" export --onnx x.onnx
fails_with "what is not there" 1 'none' "$LOCKSTEP" export none --onnx x.onnx
fails_with "a shape that is none" 2 "input is '28x28', not CHANNELSxHEIGHTxWIDTH" "$LOCKSTEP" export cnn --onnx x.onnx --input 28x28
fails_with "a shape that does not fit the weights" 1 'fc1.weight' "$LOCKSTEP" export cnn --onnx x.onnx --input 1x14x14
fails_with "a place that cannot be written, before anything is read" 1 'nowhere/x.onnx' "$LOCKSTEP" export none --onnx nowhere/x.onnx
fails_with "a disk that is full" 1 '/dev/full' "$LOCKSTEP" export cnn --onnx /dev/full
ok "nothing is left of what failed" test ! -e x.onnx

# The file the weights come from is never replaced, nor one output by the other.
cp file.safetensors kept.safetensors
ln -s file.safetensors link.safetensors
for flag in --onnx --safetensors; do
	for name in file.safetensors ./file.safetensors link.safetensors; do
		fails_with "$flag $name over the weights" 2 "cannot export to $name: the weights are read from it" "$LOCKSTEP" export file.safetensors $flag $name
	done
done
ok "which are as before" cmp file.safetensors kept.safetensors
mkdir out
ln -s out same
for name in out/m ./out/m out/../out/m same/m "$PWD/out/m"; do
	fails_with "two files of one name: $name" 2 '--onnx and --safetensors are the same file' "$LOCKSTEP" export cnn --onnx out/m --safetensors "$name"
done
ok "none is written" test ! -e out/m
ln -s m out/n
touch out/m
fails_with "two names of one file" 2 '--onnx and --safetensors are the same file' "$LOCKSTEP" export cnn --onnx out/m --safetensors out/n
run "$LOCKSTEP" export cnn --onnx out/m --safetensors m
is "one name in two directories" "$status $err" "0 "
ok "both are whole" eval 'cmp out/m cnn.onnx && cmp m file.safetensors'

test_end

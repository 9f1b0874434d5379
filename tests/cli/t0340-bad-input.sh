#!/bin/bash
# Bad input: a clear message, a non-zero status, and nothing that was there is lost.
# shellcheck disable=SC2016 # Perl and awk have dollars of their own
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# A loss that leaves the numbers: the step is told, the last good checkpoint stays.
run small_train --lr 1e30 --steps 20
is "a diverging run fails" "$status" 1
like "and tells the step" "$err" "[Ss]tep [0-9]+"
like "and what happened" "$err" "NaN|finite"
run small_train --optimizer sgd --lr 0.01 --schedule step --lr-step-every 12 --lr-step-factor 1e6 --steps 60 \
	--run runs/nan --ckpt-every 5 --keep 100
is "a run that diverges later fails" "$status" 1
ok "its good checkpoints stay" test -d runs/nan/ckpt/step-000000010
run "$LOCKSTEP" eval runs/nan --samples 100
is "and can be used" "$status" 0
unlike "and are finite" "$out" "nan|inf"

# Weights from outside. A header of LENGTH bytes of JSON, then DATA bytes.
safetensors() { # FILE JSON DATA-BYTES [CLAIMED-HEADER-LENGTH]
	perl -e 'my ($file, $json, $bytes, $claim) = @ARGV;
		open my $f, ">:raw", $file or die;
		print $f pack("Q<", $claim // length $json), $json, "\0" x $bytes;' "$@"
}
hostile() { # NAME FILE
	fails_with "$1" 1 "$2" small_train --steps 1 --init "$2"
}
: >empty.safetensors
hostile "an empty file" empty.safetensors
safetensors huge.safetensors '{}' 0 1152921504606846976
hostile "a header longer than the file" huge.safetensors
safetensors text.safetensors 'not json' 0
hostile "a header that is not JSON" text.safetensors
safetensors type.safetensors '{"w":{"dtype":"Q9","shape":[2],"data_offsets":[0,8]}}' 8
hostile "a type nobody knows" type.safetensors
safetensors overlap.safetensors \
	'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}' 12
hostile "tensors that overlap" overlap.safetensors
safetensors beyond.safetensors '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,800]}}' 8
hostile "offsets beyond the end" beyond.safetensors
safetensors shape.safetensors '{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}}' 8
hostile "a shape whose product overflows" shape.safetensors
safetensors sign.safetensors '{"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}' 8
hostile "a negative shape" sign.safetensors
safetensors other.safetensors '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}' 8
hostile "weights of something else" other.safetensors
hostile "a file that is not there" missing.safetensors
hostile "a directory" runs

# Datasets from outside.
"$LOCKSTEP" data make glyphs --samples 200 --out good --quiet
damage() { # NAME COMMAND: a copy of good/ in bad/, damaged by the command; both info and train must refuse it
	local name=$1
	shift
	rm -rf bad
	cp -r good bad
	"$@"
	run "$LOCKSTEP" data info bad
	is "$name: data info refuses" "$status" 1
	like "$name: and names the file" "$err" "bad/train-(images|labels)"
	run "$LOCKSTEP" train --model mlp --data bad --steps 1
	is "$name: train refuses" "$status" 1
}
images=bad/train-images-idx3-ubyte
labels=bad/train-labels-idx1-ubyte
damage "images cut short" truncate -s 5000 $images
damage "a header cut short" truncate -s 7 $images
damage "an empty file" truncate -s 0 $labels
damage "labels as images" cp $labels $images
damage "fewer labels than images" \
	perl -e 'open my $f, ">:raw", $ARGV[0]; print $f pack("NN", 2049, 100), "\1" x 100' $labels
damage "a count that is a lie" perl -e 'open my $f, "+<:raw", $ARGV[0]; seek $f, 4, 0; print $f pack("N", 4294967295)' $images
damage "gzip cut short" bash -c "gzip -c $images | head -c 2000 >$images.gz; rm $images"
ln -s loop loop
ln -s gone dangling
fails_with "a link to nothing" 1 "dataset 'dangling' is a symbolic link to gone, which does not exist" "$LOCKSTEP" train \
	--model mlp --data dangling --steps 1
fails_with "a link to itself" 1 "cannot open dataset 'loop': Too many levels of symbolic links" "$LOCKSTEP" train --model mlp --data loop --steps 1
fails_with "a directory without a dataset" 1 "runs" "$LOCKSTEP" train --model mlp --data runs --steps 1

# More than the machine has.
run "$LOCKSTEP" train --model resnet18 --data glyphs --samples 100M --batch-per-device 100000000
ok "a batch that cannot fit is refused" test "$status" != 0
like "with how much it would take" "$err" "[0-9.]+ ?[GTP]i?B"
like "and what would fit" "$err" "fit|--batch"

# Places that cannot be written to.
echo "a file" >file
fails_with "a run directory inside a file" 1 "directory file" small_train --steps 2 --run file/run
is "the file is as it was" "$(cat file)" "a file"
run small_train --steps 5 --run runs/full
is "a run to be filled up" "$status" 0
# a limit on the size of files stands for a full disk
run bash -c 'ulimit -f 8; "$@"' - "$LOCKSTEP" train --model mlp --data glyphs --samples 1000 \
	--test-samples 200 --batch-per-device 64 --steps 10 --run runs/full --resume
is "a checkpoint that cannot be written fails the run" "$status" 1
is "the one before is the newest" "$(cd runs/full/ckpt && echo *)" "step-000000005"
run "$LOCKSTEP" eval runs/full --samples 100
is "and is whole" "$status" 0

fails_with "kernels nobody knows" 2 "LOCKSTEP_KERNELS" env LOCKSTEP_KERNELS=fast "$LOCKSTEP" train --model mlp \
	--data glyphs --samples 64 --steps 1
fails_with "an instruction set nobody knows" 2 "LOCKSTEP_ISA" env LOCKSTEP_ISA=mmx "$LOCKSTEP" train --model mlp \
	--data glyphs --samples 64 --steps 1

# Batch norm needs more than one value per channel: ResNet's last maps of 28x28 images are 1x1, so micro-batches of one
# sample, also the last one of an epoch, are refused before the first step; where none comes the run goes on.
resnet=("$LOCKSTEP" train --model resnet18 --data glyphs --test-samples 20 --devices 1)
fails_with "batch norm on one sample" 2 "batch norm 'layer4.0.bn1' has maps of 1x1 and needs more than one value per channel" \
	"${resnet[@]}" --samples 20 --batch-per-device 1 --steps 1
like "what to give" "$err" "give a larger --batch or --micro-batch"
is "before training" "$out" ""
fails_with "in micro-batches of one sample" 2 "batch norm 'layer4.0.bn1'" "${resnet[@]}" --samples 20 --batch 4 --micro-batch 1
fails_with "in a dataset of one sample" 2 "batch norm 'layer4.0.bn1'" "${resnet[@]}" --samples 1
fails_with "in the last micro-batch of every step" 2 \
	"the last micro-batch of a step \(993 samples, 32 per micro-batch\) has 1 sample; --micro-batch must divide the batch" \
	"${resnet[@]}" --samples 2000 --batch 993 --steps 1
fails_with "in the last micro-batch of an epoch" 2 \
	"the last micro-batch of an epoch \(9 samples, 4 per micro-batch\) has 1 sample; use --samples 8" \
	"${resnet[@]}" --samples 9 --batch-per-device 4
fails_with "in the last micro-batch of the only step" 2 "the last micro-batch of an epoch \(9 samples, 4 per micro-batch\)" \
	"${resnet[@]}" --samples 9 --batch 16 --micro-batch 4
run "${resnet[@]}" --samples 9 --batch-per-device 4 --steps 2
is "a run that ends before it is not refused" "$status" 0
run "${resnet[@]}" --samples 8 --batch-per-device 4 --eval-every 0
is "nor one without a rest" "$status" 0
fails_with "nor measured" 2 "batch norm 'layer4.0.bn1'" "$LOCKSTEP" bench --model resnet18 --batch-per-device 1 --steps 1 --warmup 0 --repeat 1
run "$LOCKSTEP" train --model cnn --data glyphs --samples 9 --test-samples 20 --batch 4 --devices 1
is "a model without batch norm takes any" "$status" 0

# Labels of one class: the data are to blame, and can still be looked at.
python3 - <<'PY'
import os, struct
os.mkdir("one")
open("one/train-images-idx3-ubyte", "wb").write(struct.pack(">IIII", 0x803, 64, 8, 8) + bytes(range(64)) * 64)
open("one/train-labels-idx1-ubyte", "wb").write(struct.pack(">II", 0x801, 64) + bytes(64))
PY
fails_with "one class" 1 'one/train-labels-idx1-ubyte: all its labels are 0; training needs samples of at least two classes' \
	"$LOCKSTEP" train --model mlp --data one --steps 1 --eval-every 0
unlike "one class: the command line was not to blame" "$err" '--help'
run "$LOCKSTEP" data info one
is "one class: can be looked at" "$status" 0

test_end

#!/bin/bash
# The table of models: known sizes, and what the image's size does to them.
# shellcheck disable=SC2016 # Perl and awk have dollars of their own
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

run "$LOCKSTEP" models
is "models succeeds" "$status" 0
like "columns" "$(head -n 1 <<<"$out")" '^model +parameters +GFLOP +padded GFLOP +gradient MB +what$'
for name in mlp cnn resnet18 resnet34 resnet50 resnet101 resnet152; do
	like "it lists $name" "$out" "^$name +[0-9]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ "
done
like "the CNN has about 0.42 million parameters" "$out" '^cnn +42[0-9]{4} '
ok "useful arithmetic is at most the padded" awk 'NR > 1 && $3 > $4 { exit 1 }' <<<"$out"
ok "and less for ResNets, whose maps are small" awk '/^resnet[0-9]+ / && $3 > 0.8 * $4 { exit 1 }' <<<"$out"

# torchvision's counts
run "$LOCKSTEP" models --channels 3 --image-size 224 --classes 1000
for row in resnet18:11689512 resnet34:21797672 resnet50:25557032 resnet101:44549160 resnet152:60192808; do
	like "${row%:*} has torchvision's ${row#*:} parameters" "$out" "^${row%:*} +${row#*:} "
done

# The layers of one model.
run "$LOCKSTEP" models cnn
is "layers of the CNN" "$status" 0
like "columns of layers" "$(head -n 1 <<<"$out")" '^ *node  layer +operator +reads +output +parameters +GFLOP$'
like "its first layer" "$out" '^ +1  conv1 +conv2d +0 +32x28x28 +[0-9]+ +0\.[0-9]{4}$'
like "its loss" "$out" '^ +[0-9]+  cross_entropy +cross_entropy +[0-9]+ +loss +0 +0\.0000$'
parameters=$("$LOCKSTEP" models | awk '$1 == "cnn" { print $2 }')
is "parameters add up" "$(awk 'NR > 1 { sum += $(NF - 1) } END { print sum }' <<<"$out")" "$parameters"
run "$LOCKSTEP" models resnet18 --image-size 32
like "what runs together is one line" "$out" '^ +[0-9]+  layer1\.0\.bn2 +batch_norm, add, relu +[0-9]+, [0-9]+ +64x'
run "$LOCKSTEP" models bert-tiny
like "text" "$out" 'attention +[0-9]+, [0-9]+, [0-9]+ +[0-9]+ tokens x 128 '
fails_with "a model that there is not" 2 "unknown model 'resnet19'; did you mean 'resnet18'" "$LOCKSTEP" models resnet19

fails_with "an image too small for a model says so" 2 "size|image|kernel|input" "$LOCKSTEP" models --image-size 1 --channels 1
test_end

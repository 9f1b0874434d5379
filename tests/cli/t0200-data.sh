#!/bin/bash
# Datasets: listed, made, described; damaged ones are refused with the reason.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

run "$LOCKSTEP" data list
is "data list succeeds" "$status" 0
for name in mnist glyphs bigmnist; do
	like "it names $name" "$out" "^$name "
done
like "no text is cut" "$out" "five sentiment classes, any number, no download$"

run "$LOCKSTEP" data info glyphs
is "data info of a built-in dataset succeeds" "$status" 0
like "it tells the shape" "$out" "28"
like "and whose constants it is normalised with" "$out" "normalised with mean 0.1307, deviation 0.3081 \(MNIST's constants\)"
fails_with "only generated images can be made" 2 "babble.*(glyphs.*bigmnist|bigmnist.*glyphs)" "$LOCKSTEP" data make babble --out no

run "$LOCKSTEP" data make glyphs --samples 300 --out made --quiet
is "data make succeeds" "$status" 0
run "$LOCKSTEP" data make glyphs --samples 300 --out again --seed 1 --threads 1 --quiet
is "data make succeeds with one thread" "$status" 0
ok "and writes the same files" diff -r made again
run "$LOCKSTEP" data make glyphs --samples 300 --out other --seed 2 --quiet
ok "another seed gives other files" bash -c '! diff -rq made other'
run "$LOCKSTEP" data make glyphs --samples 0.3k --out made --quiet
is "made again, it is found complete" "$status" 0
ok "and nothing changed" diff -r made again

run "$LOCKSTEP" data info made
is "data info of a directory succeeds" "$status" 0
like "it tells the count" "$out" "300"

run small_train --samples 300 --steps 3
named=$(fingerprint "$out")
run "$LOCKSTEP" train --model mlp --data made --batch 64 --micro-batch 64 --devices 1 --steps 3 --test-samples 200
is "training on the files is training on the name" "$(fingerprint "$out")" "$named"

fails_with "a name misspelt" 2 "'mnits'.*did you mean 'mnist'" "$LOCKSTEP" data get mnits
mkdir empty
fails_with "files that are not there" 1 "train-images" "$LOCKSTEP" data get mnist --from empty --quiet
mkdir fake
for file in train-images-idx3 train-labels-idx1 t10k-images-idx3 t10k-labels-idx1; do
	echo "not a dataset" >fake/$file-ubyte
done
fails_with "files that are not MNIST" 1 "fake" "$LOCKSTEP" data get mnist --from fake --quiet
ok "what failed to check is not kept" bash -c '! find cache -name "*ubyte*" 2>/dev/null | grep -q .'
run "$LOCKSTEP" train --data mnist --model mlp --steps 1
is "training on what was never got fails" "$status" 1
like "and says how to get it" "$err" "lockstep data get mnist"

mkdir disk
if unshare -m mount -t tmpfs -o size=64k tmpfs disk 2>/dev/null; then
	# shellcheck disable=SC2016 # the inner shell expands it
	run unshare -m bash -c 'mount -t tmpfs -o size=64k tmpfs disk && { "$0" data make glyphs --samples 64k --out disk/x; echo "$?" disk/*; }' "$LOCKSTEP"
	is "a disk that is too small is refused, and nothing is left there" "$out" "1 disk/*"
	like "with both sizes in MB" "$err" 'disk/x needs [0-9.]+ MB more, but only 0\.0[0-9] MB are free there'
else
	skip "a disk that is too small" "cannot mount"
fi

test_end

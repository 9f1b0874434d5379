#!/bin/bash
# One fingerprint for every kind of data: an augmented folder of images, a table, text for GPT and images for ViT, on any devices, threads
# and nodes, which read and decode with as many threads per device as compute, and with the cache of decoded images off, filled and used.
# shellcheck source=tests/lab/lib.sh
. "$(dirname "$0")/lib.sh"
export LOCKSTEP_DATA=$PWD/data

lab_up 3 --rate 1gbit
ok "digits as IDX files" "$LOCKSTEP" data make glyphs --samples 200 --out idx --quiet
ok "and as a folder of images" python3 "$SOURCE_DIR/tests/cli/image_folder.py" idx digits
awk 'BEGIN { srand(7); print "id,area,city,age,price"
	for (i = 0; i < 300; i++) { a = int(rand() * 150) + 30; o = rand() < 0.5; y = int(rand() * 60)
		printf "house %d,%s,%s,%s,%d.5\n", i, (i % 23 ? a : ""), (o ? "Oslo" : "Lyon"), (i % 31 ? y : "NA"), 1000 * a + 50000 * o - 200 * y } }' >houses.csv
awk 'BEGIN { srand(5); for (i = 0; i < 4000; i++) printf "%s%s", substr("the a one my his", 1 + 4 * int(4 * rand()), 4), (i % 9 ? " " : ".\n") }' >text.txt

common=(--steps 5 --schedule constant --seed 3)
images=(--data digits --test-samples 40 --batch 32 --micro-batch 8 --augment "crop,flip,rotate,erase,mixup" "${common[@]}")
cnn=(--model cnn "${images[@]}" --dropout 0.2)
vit=(--model vit-tiny "${images[@]}" --image-size 32 --steps 3)
table=(--model mlp --data houses.csv --target price --batch 32 --micro-batch 8 "${common[@]}")
gpt=(--model gpt-nano --data text.txt --seq-len 32 --batch 16 --micro-batch 4 --dropout 0.1 "${common[@]}")

check() { # NAME OPTION...: the job has one fingerprint
	local name=$1 layout expected
	shift
	run "$LOCKSTEP" train "$@" --devices 1 --threads 1
	expected=$(fingerprint "$out")
	like "$name: it trains" "$status $expected" '^0 [0-9a-f]{16}$'
	[ "$status" = 0 ] || test_note "$err"
	for layout in "--devices 1 --threads 3" "--devices 2 --threads 1" "--devices 3 --threads 2"; do
		# shellcheck disable=SC2086 # words
		run "$LOCKSTEP" train "$@" $layout
		is "$name: $layout" "$status $(fingerprint "$out")" "0 $expected"
	done
	for layout in "a:1,b:1" "a:2,b:1,c:1 --strategy ps --servers 1" "b:1,a:2 --threads 2"; do
		# shellcheck disable=SC2086
		train_on $layout "$@"
		is "$name: nodes $layout" "$status $(fingerprint "$out")" "0 $expected"
		[ "$status" = 0 ] || test_note "$err"
	done
}

check "augmented folder, no cache" "${cnn[@]}" --cache off
without=$(fingerprint "$out")
is "nothing was kept" "$(ls data/images 2>/dev/null)" ""
check "augmented folder, cache" "${cnn[@]}"
is "with and without the cache: the same" "$(fingerprint "$out")" "$without"
ok "the cache is there" test -n "$(ls data/images)"
run "$LOCKSTEP" train "${cnn[@]}" --augment none
ok "augmentation matters in this job" test "$(fingerprint "$out")" != "$without"
check "table" "${table[@]}"
check "GPT" "${gpt[@]}"
check "ViT" "${vit[@]}"
cached=$(fingerprint "$out")
run "$LOCKSTEP" train "${vit[@]}" --cache off
is "ViT without the cache: the same" "$(fingerprint "$out")" "$cached"

test_end

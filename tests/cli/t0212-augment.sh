#!/bin/bash
# --augment: the same bits on any devices, threads and processes, and after a resume; other bits than without.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

fingerprint() { # ARGUMENT...: of a training
	"$LOCKSTEP" train --model cnn --data glyphs --samples 300 --test-samples 50 --epochs 3 --batch 60 --micro-batch 15 \
		--schedule constant "$@" 2>err | tail -n 1
}
list=crop:3,flip:0.2,erase,brightness:0.3,contrast,resized-crop:0.3,randaugment:2:9,elastic,mixup:0.4,cutmix
first=$(fingerprint --augment $list --devices 1 --threads 1)
like "it trains" "$first" '^parameters xxh64 [0-9a-f]{16}$'
unlike "differently from without" "$(fingerprint)" "${first##* }"
unlike "and from another order" "$(fingerprint --augment "flip:0.2,${list/,flip:0.2/}")" "${first##* }"
is "the same on four devices" "$(fingerprint --augment $list --devices 4 --threads 1)" "$first"
is "and with two threads" "$(fingerprint --augment $list --devices 1 --threads 2)" "$first"
if ! command -v mpirun >/dev/null || PATH=/nowhere "$LOCKSTEP" train --hosts localhost,localhost 2>&1 | grep -q 'has no MPI'; then
	skip "in two processes" "there is no mpirun, or this build has no MPI"
else
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 LSAN_OPTIONS=detect_leaks=0 # of MPI's plug-ins
	run timeout -k 5 120 mpirun -q --oversubscribe --bind-to none -np 2 "$LOCKSTEP" train --model cnn --data glyphs --samples 300 \
		--test-samples 50 --epochs 3 --batch 60 --micro-batch 15 --schedule constant --augment $list --devices 1 --threads 1
	is "and in two processes" "$(tail -n 1 <<<"$out")" "$first"
fi
run "$LOCKSTEP" train --model cnn --data glyphs --samples 300 --test-samples 50 --epochs 3 --batch 60 --micro-batch 15 \
	--schedule constant --augment $list --steps 7 --run run --quiet
is "a run that stops in the middle of an epoch" "$status" 0
run "$LOCKSTEP" train --run run --resume --steps 15
is "goes on to the same bits" "$(tail -n 1 <<<"$out")" "$first"
fails_with "but not with another list" 1 'augment' "$LOCKSTEP" train --run run --resume --augment flip --steps 20
fails_with "an unknown transform" 2 "did you mean 'flip'" "$LOCKSTEP" train --data glyphs --augment flop
fails_with "an impossible amount" 2 'probability of flip' "$LOCKSTEP" train --data glyphs --augment flip:7
fails_with "too many numbers" 2 'rotate has 1 number, and more follow: 4' "$LOCKSTEP" train --data glyphs --augment rotate:3:4
fails_with "colours of grey images" 2 "hue needs colour images" "$LOCKSTEP" train --data glyphs --augment hue
fails_with "a crop of all of it" 2 "images of dataset 'glyphs' are 28 x 28: nothing would be left" \
	"$LOCKSTEP" train --data glyphs --augment crop:28
fails_with "text" 2 "is text" "$LOCKSTEP" train --model transformer --data babble --augment flip
like "help lists them" "$("$LOCKSTEP" train --help --augment)" 'vertical-flip +mirror top and bottom'

# --label-smoothing: a uniform start has the loss ln 10 whatever the targets are; a model that has learned has more.
learn() { "$LOCKSTEP" train --model mlp --data glyphs --samples 600 --test-samples 100 --epochs 4 --batch 60 --quiet --run "$@"; }
learn plain
learn smooth --label-smoothing 0.2
loss() { "$LOCKSTEP" eval "$1" | sed -nE 's/.*loss ([0-9.]+),.*/\1/p'; }
ok "smoothed targets cannot be met: the loss is larger" python3 -c "import sys; sys.exit(not $(loss smooth) > $(loss plain) + 0.05)"
like "run.json says so" "$(cat smooth/run.json)" '"label-smoothing": "?0\.2'
fails_with "a part above one" 2 'label-smoothing' "$LOCKSTEP" train --data glyphs --label-smoothing 1.5

test_end

#!/bin/bash
# Files that are cut short while they are in use, and limits that are small: a message, a checkpoint, never a crash.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

run "$LOCKSTEP" data make glyphs --samples 9000 --out data --quiet
is "data to cut" "$status" 0
images=data/train-images-idx3-ubyte
cp $images whole
train() { "$LOCKSTEP" train --model mlp --data data --batch 128 --micro-batch 64 --schedule constant --log-every 1 --eval-every 0 "$@"; }
print() { grep '^parameters xxh64'; }

has_steps() { [ "$(grep -c loss .out)" -gt 5 ]; }

# A run without an end, until its data are cut. Held meanwhile, so that all of it happens between two of its steps or
# inside one, as it comes.
cut_during() { # OPTION...
	local child
	: >.out # now: the shell in the background may come to it later than the search below
	train --steps 1000000 "$@" >.out 2>.err &
	child=$!
	ok "$*: a run makes steps" wait_for 60 has_steps
	kill -STOP $child
	truncate -s 100000 $images
	kill -CONT $child
	wait $child
	status=$?
	out=$(cat .out) err=$(cat .err)
	cp whole $images
}
for layout in "--devices 1" "--devices 1 --micro-batch 16" "--devices 2 --micro-batch 8 --clip-norm 1" "--devices 2 --optimizer lamb"; do
	rm -rf run
	# shellcheck disable=SC2086 # several words
	cut_during $layout --run run
	is "$layout: data that were cut end the run" "$status" 1
	like "$layout: the file is named, and what is saved" "$err" \
		"$images was cut short while it was in use: it had [0-9]+ bytes, now it has 100000.*step [0-9]+ is saved.*--run run --resume"
	saved=$(sed -nE 's/.*step ([0-9]+) is saved.*/\1/p' <<<"$err")
	ok "$layout: its checkpoint is there" test -d "run/ckpt/$(printf 'step-%09d' "${saved:-0}")"
	# shellcheck disable=SC2086
	run train $layout --run run --resume --steps $((${saved:-0} + 5))
	is "$layout: with the data whole again it goes on" "$status" 0
	like "$layout: from there" "$err" "resuming run/ckpt/step-0*$saved "
	resumed=$(print <<<"$out")
	# shellcheck disable=SC2086
	run train $layout --steps $((${saved:-0} + 5))
	is "$layout: to the same bits" "$(print <<<"$out")" "$resumed"
done
cut_during --devices 1
is "without a run directory it ends, too" "$status" 1
like "and says why" "$err" "$images was cut short"

# On several nodes: the newest checkpoint is left, and the run goes on from it to the same bits.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 # for Open MPI's mpirun
if command -v mpirun >/dev/null && [ -z "${SANITIZER:-}" ]; then
	LOCKSTEP_ALONE=$LOCKSTEP
	nodes() { timeout -k 5 100 mpirun -q --oversubscribe --bind-to none -np 2 "$LOCKSTEP_ALONE" "$@"; }
	rm -rf run
	LOCKSTEP=nodes cut_during --devices 1 --run run --ckpt-every 4
	if grep -q 'has no MPI' <<<"$err"; then
		skip "2 nodes" "a build without MPI"
	else
		is "2 nodes: data that were cut end the run" "$status" 1
		like "2 nodes: the file is named" "$err" "$images was cut short while it was in use"
		saved=$(find run/ckpt -name 'step-?????????' | sort | tail -n 1 | sed 's/.*step-0*//')
		is "2 nodes: a checkpoint that was due is left" "$((${saved:-1} % 4))" 0
		LOCKSTEP=nodes run train --devices 1 --run run --resume --ckpt-every 4 --steps $((${saved:-0} + 5))
		is "2 nodes: with the data whole again it goes on" "$status" 0
		resumed=$(print <<<"$out")
		run train --devices 2 --steps $((${saved:-0} + 5))
		is "2 nodes: to the same bits" "$(print <<<"$out")" "$resumed"
	fi
fi

# A small stack.
small() { (ulimit -s 128 && "$@"); }
for command in "train --model resnet18 --data data --steps 1 --batch-per-device 2 --samples 4 --test-samples 2 --schedule constant --run small" "eval small --samples 2" \
	"train --model resnet18 --data data --steps 2 --batch-per-device 2 --samples 4 --test-samples 2 --schedule constant --run small --resume" \
	"train --model bert-tiny --data babble-pairs --steps 1 --batch-per-device 2 --samples 4 --test-samples 2 --devices 2" \
	"bench --model cnn --batch-per-device 2 --steps 1 --warmup 0 --repeat 1 --devices 2" "report small --out small.html" \
	"data info data" "data make glyphs --samples 100 --out more" "models" "slurm --nodes 2 -- --model mlp --data glyphs"; do
	# shellcheck disable=SC2086 # several words
	run small "$LOCKSTEP" $command
	is "ulimit -s 128: ${command%% --*}" "$status" 0
	[ "$status" = 0 ] || test_note "$err"
done
smaller() { (ulimit -s 64 && "$@"); }
run smaller "$LOCKSTEP" eval small --samples 2
is "ulimit -s 64: eval" "$status" 0
python3 - <<'PY'
import struct
deep = b'{"a":' + b"[" * 2040 + b"]" * 2040 + b"}"
open("deep.safetensors", "wb").write(struct.pack("<Q", len(deep)) + deep)
open("deep.json", "wb").write(deep)
PY
fails_with "ulimit -s 64: a nested header" 1 "deep.safetensors: tensor 'a'" smaller "$LOCKSTEP" eval deep.safetensors --model mlp --data glyphs
fails_with "ulimit -s 64: a nested recipe" 1 "deep.json: not a lockstep recipe" smaller "$LOCKSTEP" bench ./deep.json

# Few addresses: libxsmm, which cannot go on without its table of kernels, is not called.
if [ -z "${SANITIZER:-}" ]; then
	for kb in 30000 34000 38000 42000 46000; do
		statuses+=" $( (ulimit -v $kb && exec "$LOCKSTEP" eval run --data glyphs --samples 2 >/dev/null 2>.err); echo $?)"
		! grep -q 'libxsmm needs' .err || named=1
	done
	unlike "ulimit -v: eval never crashes" "$statuses" '139|134'
	is "ulimit -v: what needs more is named" "${named:-0}" 1
fi

# A header of a million tensors is refused before it is parsed.
python3 - <<'PY'
import struct
header = ("{" + ",".join('"t%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}' % i for i in range(1000000)) + "}").encode()
open("many.safetensors", "wb").write(struct.pack("<Q", len(header)) + header)
PY
fails_with "a million tensors" 1 "many.safetensors: the header has more than 100000 tensors" \
	timeout 20 "$LOCKSTEP" eval many.safetensors --model mlp --data glyphs --samples 10

# A gzip file that declares gigabytes beside a few labels is refused by its header.
python3 - <<'PY'
import gzip, os, struct
os.mkdir("bomb")
with gzip.open("bomb/train-images-idx3-ubyte.gz", "wb", 1) as f:
    f.write(struct.pack(">IIII", 0x803, 400000, 28, 28))
    for _ in range(300):
        f.write(bytes(1 << 20))
open("bomb/train-labels-idx1-ubyte", "wb").write(struct.pack(">II", 0x801, 64) + bytes(64))
PY
limited() { ([ -n "${SANITIZER:-}" ] || ulimit -v 4000000; "$LOCKSTEP" data info bomb); }
fails_with "a gzip that declares too much" 1 "bomb/train-images-idx3-ubyte.gz holds 400000 images but .* holds 64 labels" limited

test_end

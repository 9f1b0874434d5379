#!/bin/bash
# The bits do not depend on the number of threads.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

same() { # NAME OPTIONS...
	local name=$1 threads first
	shift
	run "$LOCKSTEP" train --data glyphs --samples 200 --test-samples 64 --batch 32 --devices 1 --steps 5 --threads 1 "$@"
	first=$(fingerprint "$out")
	like "$name trains" "$first" '^[0-9a-f]{16}$'
	for threads in 2 3; do
		run "$LOCKSTEP" train --data glyphs --samples 200 --test-samples 64 --batch 32 --devices 1 --steps 5 \
			--threads $threads "$@"
		is "$name: $threads threads give the bits of one" "$(fingerprint "$out")" "$first"
	done
}

same "mlp" --model mlp
same "cnn with dropout" --model cnn --dropout 0.5
same "cnn with micro-batches of 7 and clipping" --model cnn --micro-batch 7 --batch 35 --clip-norm 0.1
same "resnet18" --model resnet18 --steps 3
same "resnet50 with a short tail" --model resnet50 --samples 40 --steps 2 --test-samples 10
LOCKSTEP_KERNELS=portable same "cnn on portable kernels" --model cnn

test_end

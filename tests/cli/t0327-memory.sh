#!/bin/bash
# The memory plan: it is what a run takes at its peak, it is printed also when it does not fit, and its advice is taken.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 # for Open MPI's mpirun

# Peak resident size in MB of a command, of each of its nodes a line in .peaks; its own output goes to .run.
cat >peak.py <<'END'
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=open(".run", "wb"), stderr=subprocess.STDOUT)
_, status, usage = os.wait4(process.pid, 0)
peaks = os.open(".peaks", os.O_WRONLY | os.O_CREAT | os.O_APPEND) # mpirun may mix what two nodes print
os.write(peaks, b"%.2f\n" % (usage.ru_maxrss * 1024 / 1e6))
sys.exit(os.waitstatus_to_exitcode(status))
END

total() { # TEXT of a plan
	awk '$1 == "total" { print $2 }' <<<"$1"
}

near() { # PLAN PEAK...: every peak is within 10 % of the plan
	[ $# -gt 1 ] && awk -v plan="$1" 'BEGIN { for (i = 2; i < ARGC; i++) {
		d = plan / ARGV[i] - 1; if (d < -0.1 || d > 0.1) bad = 1 }; exit bad + 0 }' "$@"
}

sanitized() {
	[ -n "${SANITIZER:-}" ]
}

holds() { # NAME OPTIONS...
	local name=$1 plan peak code
	shift
	run "$LOCKSTEP" train "$@" --plan-memory
	plan=$(total "$out")
	like "$name: a plan" "$plan" '^[0-9]+\.[0-9]+$'
	if sanitized; then
		skip "$name: is the peak" "a sanitizer takes memory of its own"
		return
	fi
	rm -f .peaks
	python3 peak.py "$LOCKSTEP" train "$@"
	code=$?
	peak=$(cat .peaks)
	is "$name: the run ends well" "$code" 0
	[ "$code" = 0 ] || test_note "$(tail -n 5 .run)"
	ok "$name: is the peak: $plan MB, $peak MB" near "$plan" "$peak"
}

images=(--data glyphs --samples 400 --eval-every 0 --steps 5)
pairs=(--data babble-pairs --samples 400 --eval-every 0 --steps 3)
holds "mlp" --model mlp "${images[@]}" --devices 1 --batch 200 --micro-batch 200
holds "mlp, 8 devices, sgd" --model mlp "${images[@]}" --devices 8 --batch-per-device 50 --optimizer sgd
holds "cnn, 16 devices" --model cnn "${images[@]}" --devices 16 --batch-per-device 8
holds "cnn, 64 devices" --model cnn "${images[@]}" --devices 64 --batch-per-device 4 --steps 3
holds "cnn, 1 device, 16 micro-batches" --model cnn "${images[@]}" --devices 1 --batch 256 --micro-batch 16
holds "cnn, 3 devices, 25 micro-batches, a tail, clipping" --model cnn "${images[@]}" --devices 3 --batch 300 \
	--micro-batch 12 --clip-norm 1
holds "resnet18, update during backward" --model resnet18 "${images[@]}" --devices 1 --batch 16 --steps 2
holds "resnet18, 2 threads" --model resnet18 "${images[@]}" --devices 1 --threads 2 --batch 16 --steps 2
holds "resnet18, 4 devices, 16 micro-batches, lamb" --model resnet18 "${images[@]}" --devices 4 --batch 64 --micro-batch 4 \
	--optimizer lamb --steps 2
holds "resnet50" --model resnet50 "${images[@]}" --devices 1 --batch 8 --steps 1
holds "transformer, 2 devices" --model transformer --layers 2 --data babble --samples 400 --eval-every 0 --devices 2 \
	--batch-per-device 40 --steps 4
holds "bert-tiny, 2 devices, lamb" --model bert-tiny "${pairs[@]}" --devices 2 --batch-per-device 16 --optimizer lamb
holds "bert-mini, 8 devices" --model bert-mini "${pairs[@]}" --devices 8 --batch-per-device 2
holds "with evaluation" --model bert-tiny --data babble-pairs --samples 200 --test-samples 600 --devices 2 --batch-per-device 8 --steps 2
holds "with evaluation of fewer samples than devices could take" --model bert-tiny --data babble-pairs --samples 400 --steps 2 \
	--test-samples 64 --devices 4 --batch-per-device 4
holds "with timeline and checkpoints" --model bert-tiny "${pairs[@]}" --devices 2 --batch-per-device 8 --run traced --trace

holds "with checkpoints on the way, from a copy" --model bert-tiny "${pairs[@]}" --devices 2 --batch-per-device 8 --run copied --ckpt-every 1

# Several nodes: each has the plan of the first, but for what is its own.
among() { # NAME NODES OPTIONS...
	local name=$1 nodes=$2 plan peaks code
	shift 2
	if ! command -v mpirun >/dev/null || sanitized; then
		skip "$name" "no mpirun, or a sanitizer"
		return
	fi
	local start=(mpirun -q --oversubscribe --bind-to none -np "$nodes")
	run timeout -k 5 100 "${start[@]}" "$LOCKSTEP" train "$@" --plan-memory
	if grep -q 'has no MPI' <<<"$err"; then
		skip "$name" "a build without MPI"
		return
	fi
	plan=$(total "$out")
	rm -f .peaks
	timeout -k 5 100 "${start[@]}" python3 peak.py "$LOCKSTEP" train "$@"
	code=$?
	peaks=$(cat .peaks)
	is "$name: all nodes end well" "$code $(wc -l <<<"$peaks")" "0 $nodes"
	# shellcheck disable=SC2086 # several words
	ok "$name: is the peak: $plan MB, $(tr '\n' ' ' <<<"$peaks")MB" near "$plan" $peaks
}
among "2 nodes" 2 --model resnet18 "${images[@]}" --devices 2 --batch-per-device 8 --steps 3
among "2 nodes, 8 micro-batches, equal shares" 2 --model resnet18 "${images[@]}" --devices 1 --batch 64 --micro-batch 8 \
	--steps 3 --share equal
among "2 nodes, bf16" 2 --model resnet18 "${images[@]}" --devices 1 --batch-per-device 8 --steps 3 --wire bf16

# One copy of the gradient per device, where each computes one micro-batch: it was 14.
gradient() { # OPTIONS...: copies of the gradient that are planned
	"$LOCKSTEP" train --model cnn --data glyphs --samples 4096 "$@" --plan-memory 2>.err |
		sed -n 's/^  gradient sums *\([0-9.]*\) MB *(the gradient has \([0-9.]*\) MB.*/\1 \2/p' |
		awk '{ print int($1 / $2 + 0.5) }'
}
is "64 devices, about one copy of the gradient each" "$(($(gradient --devices 64 --batch-per-device 8) / 10))" 6
is "1 device, 16 micro-batches: five copies" "$(gradient --devices 1 --batch 256 --micro-batch 16)" 5

# Under a limit: the plan is printed, the refusal gives advice, and who takes it trains.
limited() { # KB COMMAND...
	(ulimit -v "$1" && shift && "$@")
}
advised() { # NAME OPTION KB OPTIONS...
	local name=$1 option=$2 kb=$3 advice
	shift 3
	run limited "$kb" "$LOCKSTEP" "$@"
	is "$name: too much is refused" "$status" 1
	advice=$(sed -n "s/.*; $option \([0-9]*\) would fit.*/\1/p" <<<"$err")
	like "$name: with advice" "$advice" '^[0-9]+$'
	run limited "$kb" "$LOCKSTEP" "$@" "$option" "${advice:-0}"
	is "$name: which is taken, $option $advice" "$status" 0
	[ "$status" = 0 ] || test_note "$err"
}
# Address space: what the plan asks for is enough, and less is refused by the name of the limit before the first step.
addresses() { # NAME OPTIONS...
	local name=$1 kb
	shift
	run limited 20000000 "$LOCKSTEP" train "$@" --plan-memory
	kb=$(awk '$1 == "address" { printf "%d", $3 * 1e6 / 1024 + 512 }' <<<"$out")
	like "$name: a plan of addresses" "$kb" '^[0-9]+$'
	run limited "${kb:-0}" "$LOCKSTEP" train "$@"
	is "$name: runs under ulimit -v $kb" "$status" 0
	[ "$status" = 0 ] || test_note "$err"
	kb=$((${kb:-0} * 19 / 20))
	run limited $kb "$LOCKSTEP" train "$@"
	is "$name: does not start under ulimit -v $kb" "$status$(grep -c '^parameters' <<<"$out")" 10
	like "$name: and the limit is named" "$err" "need [0-9.]+ [MG]B of address space but .*\\(ulimit -v $kb\\)"
}
if sanitized; then
	skip "address space" "a sanitizer needs addresses without a limit"
else
	small=(--model mlp --data glyphs --samples 400 --batch-per-device 20 --steps 3)
	for kb in 100000 200000 300000; do
		run limited $kb "$LOCKSTEP" train "${small[@]}" --devices 1
		is "a job of 28 MB runs under ulimit -v $kb" "$status" 0
		[ "$status" = 0 ] || test_note "$err"
	done
	run limited 300000 "$LOCKSTEP" train "${small[@]}" --devices 8
	is "on 8 devices, too" "$status" 0
	addresses "mlp" "${small[@]}" --devices 1
	addresses "mlp, 8 devices, a run directory" "${small[@]}" --devices 8 --run limited-run
	addresses "resnet18" --model resnet18 "${images[@]}" --devices 2 --batch-per-device 8 --steps 1
	addresses "bert-tiny, evaluation" --model bert-tiny --data babble-pairs --samples 200 --test-samples 300 --devices 2 \
		--batch-per-device 8 --steps 2
	run "$LOCKSTEP" train --model resnet18 "${images[@]}" --devices 1 --batch 8 --steps 1 --schedule constant --run weights
	addresses "weights of a run" --model resnet18 "${images[@]}" --devices 1 --batch 8 --steps 1 --init weights
	bench=(bench --model bert-tiny --devices 8 --batch-per-device 2 --steps 1 --warmup 0 --repeat 1)
	run limited 120000 "$LOCKSTEP" "${bench[@]}"
	mb=$(sed -n 's/.* need \([0-9]*\) MB of address space but .*/\1/p' <<<"$err")
	like "bench of text: the addresses it needs" "$mb" '^[0-9]+$'
	run limited $(((${mb:-0} + 1) * 1000000 / 1024)) "$LOCKSTEP" "${bench[@]}"
	is "bench of text: runs with as many, $mb MB" "$status" 0
	[ "$status" = 0 ] || test_note "$err"
	data_of() { # OPTIONS...: MB that a run needs of ulimit -d
		(ulimit -d 20000000 && "$LOCKSTEP" train --model resnet18 "${images[@]}" --devices 1 --batch 8 --steps 1 "$@" \
			--plan-memory) | awk '$1 == "address" { printf "%d", $3 }'
	}
	fresh=$(data_of) reading=$(data_of --init weights)
	like "ulimit -d has a plan" "$fresh $reading" '^[0-9]+ [0-9]+$'
	ok "without the weights that are only read: $fresh MB, with --init $reading MB" \
		test "$((${reading:-999} - ${fresh:-0}))" -lt 20
	run bash -c 'ulimit -d 100000 && "$@"' - "$LOCKSTEP" train "${small[@]}" --devices 1
	is "a small job runs under ulimit -d" "$status" 0
	fails_with "a large one does not start under ulimit -d" 1 'need .* \(ulimit -d 100000\)' \
		bash -c 'ulimit -d 100000 && "$@"' - "$LOCKSTEP" train --model resnet18 "${images[@]}" --devices 1 --batch 64 --micro-batch 64
fi

if sanitized; then
	skip "advice" "a sanitizer needs addresses without a limit"
else
	train=(train --model bert-mini "${pairs[@]}" --steps 1)
	run limited 900000 "$LOCKSTEP" "${train[@]}" --devices 2 --batch-per-device 64 --plan-memory
	is "a plan that does not fit ends with a failure" "$status" 1
	like "is printed all the same" "$out" '^  total  *[0-9.]+ MB'
	like "in the words of the field" "$out" '^    activations, per device:$'
	advised "train" --batch-per-device 900000 "${train[@]}" --devices 2 --batch-per-device 64
	advised "train, 8 devices" --batch-per-device 2500000 "${train[@]}" --devices 8 --batch-per-device 100
	advised "train, micro-batches" --micro-batch 600000 "${train[@]}" --devices 1 --batch 120 --micro-batch 120
	advised "bench" --batch-per-device 1200000 bench --model bert-mini --devices 2 --batch-per-device 64 --steps 1 --warmup 0 --repeat 1
	run limited 200000 "$LOCKSTEP" "${train[@]}" --devices 8 --batch-per-device 8
	is "where nothing fits" "$status" 1
	like "nothing is advised" "$err" 'no --batch-per-device would fit'
fi

test_end

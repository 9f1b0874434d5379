#!/bin/bash
# avx2 and avx512, and xsmm and portable kernels on them, train to the same bits: nodes and resumed runs may mix them.
# generic rounds otherwise: it is refused beside them, and nothing else is.
# shellcheck disable=SC2317 # functions are called by run
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

export LSAN_OPTIONS=detect_leaks=0 # of MPI
if ! LOCKSTEP_ISA=avx2 "$LOCKSTEP" train --model mlp --data glyphs --samples 16 --steps 1 --plan-memory >/dev/null 2>&1; then
	skip "instruction sets" "this processor has only generic"
	test_end
fi
sets=(avx2)
if LOCKSTEP_ISA=avx512 "$LOCKSTEP" train --model mlp --data glyphs --samples 16 --steps 1 --plan-memory >/dev/null 2>&1; then
	sets+=(avx512)
else
	skip "avx512" "this processor has none"
fi

train() { # MODEL DATA [OPTION]...
	"$LOCKSTEP" train --model "$1" --data "$2" --samples 96 --test-samples 20 --batch 20 --devices 1 --schedule constant "${@:3}"
}
for job in "mlp glyphs" "cnn glyphs" "resnet18 glyphs" "transformer babble" "bert-tiny babble-pairs"; do
	read -r model data <<<"$job"
	export LOCKSTEP_ISA=avx2 LOCKSTEP_KERNELS=portable
	run train "$model" "$data" --steps 2
	expected=$(fingerprint "$out")
	like "$model has a fingerprint" "$expected" '^[0-9a-f]{16}$'
	unset LOCKSTEP_KERNELS
	for isa in "${sets[@]}"; do
		export LOCKSTEP_ISA=$isa
		run train "$model" "$data" --steps 2
		is "$model on $isa: the same bits" "$(fingerprint "$out")" "$expected"
	done
done

# A run goes on under another set and other kernels.
export LOCKSTEP_ISA=${sets[-1]}
run train mlp glyphs --steps 6 --run whole
expected=$(fingerprint "$out")
run train mlp glyphs --steps 3 --run parts
export LOCKSTEP_ISA=avx2 LOCKSTEP_KERNELS=portable
run train mlp glyphs --steps 6 --run parts --resume
is "resumed under avx2 and portable kernels: the same bits" "$status $(fingerprint "$out")" "0 $expected"
ok "run.json says what computed each part" json parts/run.json \
	"(o['isa'], o['resumes'][0]['isa'], o['resumes'][0]['kernels']) == ('${sets[-1]}', 'avx2', 'portable')"
export LOCKSTEP_ISA=generic
fails_with "resumed under generic: refused" 1 \
	"was trained with instruction set avx2, this run would use generic, which gives other bits; set LOCKSTEP_ISA=avx2" \
	train mlp glyphs --steps 7 --run parts --resume
unset LOCKSTEP_ISA LOCKSTEP_KERNELS

mpirun=$(command -v mpirun.openmpi || command -v mpirun)
if [ -z "$mpirun" ] || PATH=/nowhere "$LOCKSTEP" train --hosts localhost,localhost 2>&1 | grep -q 'has no MPI'; then
	skip "mixed nodes" "there is no mpirun, or this build has no MPI"
	test_end
fi
start=(timeout 60 "$mpirun" --oversubscribe --bind-to none)
[ "$(id -u)" != 0 ] || start+=(--allow-run-as-root)
job=("$LOCKSTEP" train --model cnn --data glyphs --samples 96 --test-samples 20 --batch 32 --micro-batch 8 --steps 3)
mixed() { # VARIABLE... -- VARIABLE...: two nodes, each with its own
	local words=() word
	for word in "$@"; do
		[ "$word" = -- ] && words+=("${job[@]}" --devices 2 : -np 1 env) || words+=("$word")
	done
	run "${start[@]}" -np 1 env "${words[@]}" "${job[@]}" --devices 2
}
run "${job[@]}" --devices 1
expected=$(fingerprint "$out")
mixed LOCKSTEP_ISA=avx2 LOCKSTEP_KERNELS=portable -- LOCKSTEP_ISA="${sets[-1]}"
is "nodes of avx2 and ${sets[-1]}: the same bits" "$status $(fingerprint "$out")" "0 $expected"
mixed LOCKSTEP_ISA=avx2 -- LOCKSTEP_ISA=generic
is "a generic node among them: refused" "$((status != 0))$(fingerprint "$out")" 1
like "saying who and what to set" "$err" \
	'node 0 .* computes with avx2 and node 1 .* with generic, which give different bits: set LOCKSTEP_ISA=generic for all'
mixed LOCKSTEP_ISA=generic -- LOCKSTEP_ISA=generic
ok "generic nodes alone: other bits" test "$status" = 0 -a "$(fingerprint "$out")" != "$expected"

test_end

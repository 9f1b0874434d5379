#!/bin/bash
# Every instruction set of this processor, with xsmm and with portable kernels, trains every family of models to the same
# bits: nodes and resumed runs may mix them. `make test-arm64` compares other processors and compilers.
# shellcheck disable=SC2317 # functions are called by run
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

export LSAN_OPTIONS=detect_leaks=0 # of MPI
unset LOCKSTEP_ISA LOCKSTEP_KERNELS
sets=()
for isa in generic avx2 avx512 neon; do
	if LOCKSTEP_ISA=$isa "$LOCKSTEP" train --model mlp --data glyphs --samples 16 --steps 1 --plan-memory >/dev/null 2>&1; then
		sets+=("$isa")
	fi
done
best=${sets[-1]}
is "the portable set is always there" "${sets[0]}" generic
fails_with "a set that no processor of this family has" 1 "LOCKSTEP_ISA=.* the best that this processor has is $best" \
	env LOCKSTEP_ISA="$([ "$best" = neon ] && echo avx2 || echo neon)" "$LOCKSTEP" train --model mlp --data glyphs --samples 16

# One table: a line per family of models and precision, computed with every set and kernels.
run "$SOURCE_DIR/tools/same-bits" --quick "$LOCKSTEP"
is "all families of models have one fingerprint each" "$status" 0
[ "$status" = 0 ] || test_note "$out"
like "the table has a line for each" "$(sed -nE 's/^([^ ]+) +([^ ]+).* [0-9a-f]{16}  OK$/\2,\1/p' <<<"$out" | xargs)" \
	'^mlp,fp32 .*cnn,fp32 cnn,bf16 cnn,bf16-amx resnet18,.* vit-tiny,fp32 vit-tiny,bf16 transformer,fp32 .*bert-tiny,bf16 .*gpt-nano,bf16 text,fp32$'
for isa in "${sets[@]}"; do
	like "computed with $isa" "$(head -n 1 <<<"$out")" " $isa/portable"
done
like "which counts as tests" "$(tail -n 1 <<<"$out")" '^1[0-9] passed, 0 failed, 0 skipped$'

# A stand-in whose bits depend on the instruction set in bf16, and which has no gpt-nano.
cat >stand-in <<'END'
#!/bin/bash
case "$LOCKSTEP_ISA $*" in
*gpt-nano* | *generate*) echo "no such model" >&2; exit 1 ;;
"generic "*"--precision bf16 "*) echo "parameters xxh64 00000000000000bb" ;;
*) echo "parameters xxh64 00000000000000aa" ;;
esac
END
chmod +x stand-in
run "$SOURCE_DIR/tools/same-bits" --quick "$PWD/stand-in"
is "where a way gives other bits the status is 1" "$status" 1
like "equal bits are" "$out" '^fp32 +cnn +00000000000000aa  OK$'
like "other bits differ" "$out" '^bf16 +cnn +DIFFERS$'
like "the ways of that job are listed" "$out" '^    generic/portable +00000000000000bb$'
like "what fails is no fingerprint" "$out" '^    avx2/portable +failed$'
like "with the reason" "$err" '^    avx2/portable: no such model$'
is "and both count as failed" "$(grep -c DIFFERS <<<"$out") $(tail -n 1 <<<"$out")" "8 11 passed, 8 failed, 0 skipped"

# The C library rounds square roots and the like as IEEE 754 says, on every processor; of these it has versions that differ in
# the last bit. libxsmm, which is linked in later, is not in these archives.
of_libm='(a?(sin|cos|tan)h?|sincos|atan2|exp|exp2|exp10|expm1|log|log2|log10|log1p|pow|cbrt|hypot|erfc?|[lt]gamma|fma)[fl]?'
is "nothing that is computed calls functions of the C library that differ between processors" \
	"$(nm -A -u "$BUILD_DIR"/libls_{base,kernels,ops,graph,backends,optim,params,data,exchange,models,trainer,run}*.a |
		awk -v names="^$of_libm$" '{ sub("@.*", "", $NF) } $NF ~ names' | xargs)" ""

train() { # MODEL DATA [OPTION]...
	"$LOCKSTEP" train --model "$1" --data "$2" --samples 96 --test-samples 20 --batch 20 --devices 1 --schedule constant "${@:3}"
}
# A run goes on under another set and other kernels.
run train mlp glyphs --steps 6 --run whole
expected=$(fingerprint "$out")
run train mlp glyphs --steps 3 --run parts
export LOCKSTEP_ISA=generic LOCKSTEP_KERNELS=portable
run train mlp glyphs --steps 6 --run parts --resume
is "resumed under generic and portable kernels: the same bits" "$status $(fingerprint "$out")" "0 $expected"
ok "run.json says what computed each part" json parts/run.json \
	"(o['isa'], o['resumes'][0]['isa'], o['resumes'][0]['kernels']) == ('$best', 'generic', 'portable')"
if [ "$best" != neon ]; then
	like "where multiply-adds are emulated, that is said" "$err" '^warning: generic: fused multiply-adds are emulated, .* some 20 times slower'
fi
unset LOCKSTEP_ISA LOCKSTEP_KERNELS
run train mlp glyphs --steps 1
unlike "and only there" "$err" 'emulated'

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
mixed LOCKSTEP_ISA=generic LOCKSTEP_KERNELS=portable -- LOCKSTEP_ISA="$best"
is "nodes of generic and $best: the same bits" "$status $(fingerprint "$out")" "0 $expected"
if [ "${#sets[@]}" -gt 2 ]; then
	mixed LOCKSTEP_ISA="${sets[1]}" -- LOCKSTEP_ISA=generic
	is "nodes of ${sets[1]} and generic: the same bits" "$status $(fingerprint "$out")" "0 $expected"
fi

# The first node chooses the precision of all, whatever the others would measure.
job+=(--precision auto)
mixed LOCKSTEP_ISA="$best" -- LOCKSTEP_ISA=generic
chosen=$(sed -nE 's/^--precision auto is ([a-z0-9-]+): .*/\1/p' <<<"$err")
mixed_bits="$status $(fingerprint "$out")"
is "one node measures" "$(wc -w <<<"$chosen")" 1
run "${job[@]}" --precision "$chosen" --devices 1
is "nodes of $best and generic compute in its $chosen: the same bits" "$mixed_bits" "0 $(fingerprint "$out")"

test_end

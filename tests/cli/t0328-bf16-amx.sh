#!/bin/bash
# --precision bf16-amx: one set of bits of its own, with AMX and emulated, on any instruction set, threads and devices, after a resume;
# profiles and plans know it. --precision auto measures and chooses, and the run keeps its choice.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

unset LOCKSTEP_ISA LOCKSTEP_KERNELS
text=(train --model transformer --data babble --samples 96 --test-samples 16 --layers 2 --width 64 --seq-len 20 --batch 24
	--micro-batch 6 --dropout 0.1 --schedule constant)
run "$LOCKSTEP" "${text[@]}" --steps 4 --devices 1 --threads 1 --precision bf16-amx --run amx
amx=$(fingerprint "$out")
like "trains in bf16-amx" "$amx" '^[0-9a-f]{16}$'
like "and says which bits these are" "$out" 'bf16-amx sums products in the order of AMX: bit-identical on any processor, but not to bf16'
for other in fp32 bf16; do
	run "$LOCKSTEP" "${text[@]}" --steps 4 --devices 1 --threads 1 --precision $other
	ok "to other bits than $other" test "$amx" != "$(fingerprint "$out")"
done
ok "which the run records" json amx/run.json 'o["settings"]["precision"] == "bf16-amx"'
fails_with "another precision is refused" 1 'precision was bf16-amx, now bf16' "$LOCKSTEP" train --run amx --resume --steps 5 --precision bf16
run "$LOCKSTEP" eval amx
is "a run is evaluated" "$status" 0
run "$LOCKSTEP" "${text[@]}" --steps 4 --devices 2 --threads 2 --precision bf16-amx
is "the same bits on two devices of two threads" "$(fingerprint "$out")" "$amx"
for isa in generic avx2 avx512 neon; do
	LOCKSTEP_ISA=$isa "$LOCKSTEP" train --model mlp --data glyphs --samples 16 --steps 1 --plan-memory >/dev/null 2>&1 || continue
	LOCKSTEP_ISA=$isa run "$LOCKSTEP" "${text[@]}" --steps 4 --devices 1 --precision bf16-amx
	is "bf16-amx: the same bits on $isa" "$(fingerprint "$out")" "$amx"
	[ "$isa" = avx512 ] || like "$isa says that it emulates it" "$err" '^warning: bf16-amx is emulated'
done
for model in cnn resnet18; do
	images=(train --model "$model" --data glyphs --samples 20 --test-samples 4 --batch 10 --micro-batch 5 --schedule constant
		--eval-every 0 --precision bf16-amx)
	run "$LOCKSTEP" "${images[@]}" --steps 2 --devices 1 --threads 1
	one=$(fingerprint "$out")
	like "$model trains in bf16-amx" "$one" '^[0-9a-f]{16}$'
	for cut in "2 1" "1 3" "2 2"; do
		run "$LOCKSTEP" "${images[@]}" --steps 2 --devices "${cut% *}" --threads "${cut#* }"
		is "$model: the same bits on ${cut% *} devices of ${cut#* } threads" "$(fingerprint "$out")" "$one"
	done
	if LOCKSTEP_ISA=avx2 "$LOCKSTEP" train --model mlp --data glyphs --samples 16 --steps 1 --plan-memory >/dev/null 2>&1; then
		LOCKSTEP_ISA=avx2 run "$LOCKSTEP" "${images[@]}" --steps 2 --devices 1
		is "$model: the same bits on avx2" "$(fingerprint "$out")" "$one"
	fi
	run "$LOCKSTEP" "${images[@]}" --steps 1 --devices 1 --run "amx-$model"
	run "$LOCKSTEP" train --run "amx-$model" --resume --steps 2
	is "$model: and after a resume" "$status $(fingerprint "$out")" "0 $one"
done

# other optimizers
for optimizer in lamb sgd; do
	more=(--steps 2 --precision bf16-amx --optimizer "$optimizer" --clip-norm 1)
	run "$LOCKSTEP" "${text[@]}" "${more[@]}" --devices 1 --threads 1
	one=$(fingerprint "$out")
	ok "$optimizer: to bits of its own" test "$one" != "$amx"
	run "$LOCKSTEP" "${text[@]}" "${more[@]}" --devices 3
	is "$optimizer: the same bits on three devices" "$status $(fingerprint "$out")" "0 $one"
done

# between nodes
mpirun=$(command -v mpirun.openmpi || command -v mpirun)
if [ -z "$mpirun" ] || PATH=/nowhere "$LOCKSTEP" train --hosts localhost,localhost 2>&1 | grep -q 'has no MPI'; then
	skip "nodes in bf16-amx" "there is no mpirun, or this build has no MPI"
else
	export LSAN_OPTIONS=detect_leaks=0 # of MPI
	nodes=(timeout 60 "$mpirun" --oversubscribe --bind-to none)
	[ "$(id -u)" != 0 ] || nodes+=(--allow-run-as-root)
	train=("$LOCKSTEP" "${text[@]}" --steps 4 --devices 1 --precision bf16-amx)
	for strategy in "allreduce" "ps" "mpi"; do
		run "${nodes[@]}" -np 2 "${train[@]}" --strategy $strategy
		is "two nodes with $strategy: the same bits" "$status $(fingerprint "$out")" "0 $amx"
	done
	run "${nodes[@]}" -np 1 env LOCKSTEP_ISA=generic "${train[@]}" : -np 1 "${train[@]}"
	is "one with AMX, where there is one, beside one without: the same bits" "$status $(fingerprint "$out")" "0 $amx"
	run "${nodes[@]}" -np 2 "${train[@]}" --wire bf16
	wired=$(fingerprint "$out")
	like "with --wire bf16 others" "$status $wired" '^0 [0-9a-f]{16}$'
	ok "than without" test "$wired" != "$amx"
	run "${nodes[@]}" -np 2 env LOCKSTEP_ISA=generic "${train[@]}" --wire bf16
	is "which are the same without AMX" "$status $(fingerprint "$out")" "0 $wired"
	unset LSAN_OPTIONS
fi

# a profile is of one precision
small=(--model mlp --batch-per-device 4 --steps 1 --warmup 0 --repeat 1)
run "$LOCKSTEP" bench "${small[@]}" --precision bf16-amx --profile-out pamx.json
ok "a profile of bf16-amx, too" json pamx.json 'o["precision"] == "bf16-amx"'
fails_with "which is not one of bf16" 1 'pamx.json was recorded in bf16-amx, and cannot be replayed as bf16' \
	"$LOCKSTEP" bench --replay pamx.json --precision bf16 --steps 1 --warmup 0 --repeat 1
run "$LOCKSTEP" plan pamx.json --nodes 2 --rate 1gbit
like "a plan names that" "$out" '^mlp, batch 4, adam, products in bf16-amx: '

# auto
run "$LOCKSTEP" train --model cnn --data glyphs --samples 32 --test-samples 8 --steps 1 --schedule constant --precision auto --run auto
like "auto measures and says so" "$err" '^--precision auto is (fp32: this processor has no instructions for bf16|(fp32|bf16|bf16-amx): measured fp32 [0-9]+[a-z0-9, -]* GFLOP/s on one thread)$'
wanted=$(sed -nE 's/^--precision auto is ([a-z0-9-]+):.*/\1/p' <<<"$err")
ok "and the run keeps it ($wanted)" json auto/run.json "o['settings']['precision'] == '$wanted'"
ok "what is at least 1.2 times as fast as fp32" python3 - "$wanted" "$err" <<-'END'
	import re, sys
	rates = {name: float(rate) for name, rate in re.findall(r"(fp32|bf16|bf16-amx) ([0-9]+)", sys.argv[2].partition("measured")[2])} or {"fp32": 1}
	best = max(rates, key=rates.get)
	sys.exit(rates[sys.argv[1]] < 0.98 * rates[best] if sys.argv[1] != "fp32" else rates[best] > 1.21 * rates["fp32"] + 1)
END
LOCKSTEP_ISA=generic run "$LOCKSTEP" train --run auto --resume --steps 2 --precision auto
is "a resumed run keeps it on another processor" "$status" 0
unlike "without a measurement" "$err" 'measured'
ok "in the same precision" json auto/run.json "o['settings']['precision'] == '$wanted'"

test_end

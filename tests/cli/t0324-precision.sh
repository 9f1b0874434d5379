#!/bin/bash
# --precision bf16: one set of bits on any instruction set, threads and devices, with every optimizer, after a resume,
# of linear layers and of convolutions; as good as fp32; evaluation and prediction in the run's precision; replays and
# plans know it.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

unset LOCKSTEP_ISA LOCKSTEP_KERNELS
text=(train --model transformer --data babble --samples 96 --test-samples 16 --layers 2 --width 64 --seq-len 20 --batch 24
	--micro-batch 6 --dropout 0.1 --schedule constant)
run "$LOCKSTEP" "${text[@]}" --steps 4 --devices 1 --threads 1
plain=$(fingerprint "$out")
run "$LOCKSTEP" "${text[@]}" --steps 4 --devices 1 --threads 1 --precision bf16 --run whole
bf16=$(fingerprint "$out")
like "trains in bf16" "$bf16" '^[0-9a-f]{16}$'
ok "to other bits than fp32" test "$bf16" != "$plain"
ok "which the run records" json whole/run.json 'o["settings"]["precision"] == "bf16"'
like "and says" "$out$err" 'in bf16|bf16 is emulated'
run "$LOCKSTEP" "${text[@]}" --steps 4 --devices 2 --threads 2 --precision bf16
is "the same bits on two devices of two threads" "$(fingerprint "$out")" "$bf16"
for isa in generic avx2 avx512 neon; do
	LOCKSTEP_ISA=$isa "$LOCKSTEP" train --model mlp --data glyphs --samples 16 --steps 1 --plan-memory >/dev/null 2>&1 || continue
	export LOCKSTEP_ISA=$isa
	run "$LOCKSTEP" "${text[@]}" --steps 4 --devices 1 --precision bf16
	is "the same bits on $isa" "$(fingerprint "$out")" "$bf16"
	[ "$isa" = avx512 ] || like "$isa says that it emulates bf16, and how slow that is" "$err" '^warning: bf16 is emulated, .*training takes some [0-9.]+ to [0-9.]+ times as long'
	unset LOCKSTEP_ISA
done

# What bf16 was before attention was in it: earlier versions' runs go on so (tests/unit/settings/test_settings_json.c).
run "$LOCKSTEP" "${text[@]}" --steps 4 --devices 1 --threads 1 --precision bf16-layers
layers=$(fingerprint "$out")
like "trains in bf16-layers" "$layers" '^[0-9a-f]{16}$'
ok "to bits of its own" test "$layers" != "$bf16" -a "$layers" != "$plain"
run "$LOCKSTEP" "${text[@]}" --steps 2 --devices 1 --precision bf16-layers --run layers
run "$LOCKSTEP" train --run layers --resume --steps 4
is "which a resumed run keeps" "$status $(fingerprint "$out")" "0 $layers"
fails_with "and which is not changed" 1 'precision was bf16-layers, now fp32' \
	"$LOCKSTEP" train --run layers --resume --steps 5 --precision fp32
# Such a run, and the line that began it, as in a Slurm script that is requeued, again and again.
run "$LOCKSTEP" "${text[@]}" --steps 2 --devices 1 --precision bf16-layers --run before
sed -i 's/"version": 3/"version": 2/; s/"bf16-layers"/"bf16"/' before/run.json
grep -q '"precision": "bf16"' before/run.json || test_note "$(cat before/run.json)"
for steps in 3 4; do
	run "$LOCKSTEP" "${text[@]}" --steps $steps --devices 1 --precision bf16 --run before --resume
	like "an earlier version's run goes on with the line that began it, to step $steps" "$status $err" \
		'^0 the run goes on in bf16-layers, which is what --precision bf16 was when it began'
done
is "to its bits" "$(fingerprint "$out")" "$layers"
no_attention=(train --model cnn --data glyphs --samples 12 --test-samples 4 --batch 6 --steps 2 --eval-every 0 --precision)
run "$LOCKSTEP" "${no_attention[@]}" bf16
one=$(fingerprint "$out")
run "$LOCKSTEP" "${no_attention[@]}" bf16-layers
is "those of bf16 without attention" "$(fingerprint "$out")" "$one"

# resume, checkpoints, evaluation
run "$LOCKSTEP" "${text[@]}" --steps 2 --devices 2 --precision bf16 --run parts
run "$LOCKSTEP" train --run parts --resume --steps 4
is "a resumed run goes on in bf16" "$status $(fingerprint "$out")" "0 $bf16"
fails_with "another precision is refused" 1 'precision was bf16, now fp32' "$LOCKSTEP" train --run parts --resume --steps 5 --precision fp32
run python3 -c 'import json, struct, sys
f = open("whole/ckpt/step-000000004/model.safetensors", "rb")
head = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
print(*{t["dtype"] for n, t in head.items() if n != "__metadata__"})'
is "weights are saved in fp32" "$out" F32
run "$LOCKSTEP" eval whole
is "a run is evaluated" "$status" 0
cp whole/ckpt/step-000000004/model.safetensors alone.safetensors
run python3 -c 'import json, struct
f = open("alone.safetensors", "rb")
print(json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))["__metadata__"]["precision"])'
is "its file says in which precision it multiplies" "$out" bf16
run python3 - <<'END'
import json, struct
f = open("alone.safetensors", "rb").read()
size = struct.unpack("<Q", f[:8])[0]
head = json.loads(f[8:8 + size])
print(head["__metadata__"].pop("attention"))
text = json.dumps(head).encode()
open("before.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + f[8 + size:])
END
is "also of attention" "$out" bf16
logits() { "$LOCKSTEP" eval "$1" --logits "$2" >/dev/null 2>&1 && md5sum <"$2"; }
ok "a file of an earlier version, which does not, is evaluated with attention in fp32" \
	test "$(logits alone.safetensors now.out)" != "$(logits before.safetensors then.out)"
for optimizer in sgd adamw lamb lion; do
	run "$LOCKSTEP" "${text[@]}" --steps 2 --devices 1 --precision bf16 --optimizer $optimizer --clip-norm 1
	one=$(fingerprint "$out")
	run "$LOCKSTEP" "${text[@]}" --steps 2 --devices 3 --precision bf16 --optimizer $optimizer --clip-norm 1
	is "$optimizer: the same bits on three devices" "$(fingerprint "$out")" "$one"
done

# convolutions
for model in cnn resnet18 resnet18-cifar; do
	images=(train --model "$model" --data glyphs --samples 12 --test-samples 4 --batch 6 --micro-batch 3 --schedule constant
		--eval-every 0 --precision bf16)
	run "$LOCKSTEP" "${images[@]}" --steps 2 --devices 1 --threads 1
	one=$(fingerprint "$out")
	like "$model trains in bf16" "$one" '^[0-9a-f]{16}$'
	run "$LOCKSTEP" "${images[@]}" --steps 2 --devices 2 --threads 2
	is "$model: the same bits on two devices of two threads" "$(fingerprint "$out")" "$one"
	[ $model != resnet18-cifar ] || continue # slow where bf16 is emulated
	for isa in avx2 neon; do
		LOCKSTEP_ISA=$isa "$LOCKSTEP" train --model mlp --data glyphs --samples 16 --steps 1 --plan-memory >/dev/null 2>&1 || continue
		LOCKSTEP_ISA=$isa run "$LOCKSTEP" "${images[@]}" --steps 2 --devices 1
		is "$model: the same bits on $isa" "$(fingerprint "$out")" "$one"
	done
	run "$LOCKSTEP" "${images[@]}" --steps 1 --devices 1 --run "stopped-$model"
	run "$LOCKSTEP" train --run "stopped-$model" --resume --steps 2
	is "$model: and after a resume" "$status $(fingerprint "$out")" "0 $one"
done

# as good as fp32
accuracy() {
	"$LOCKSTEP" train --model cnn --data glyphs --samples 1500 --test-samples 500 --batch 64 --epochs 2 --seed 5 --precision "$1" |
		sed -nE 's/.*test accuracy: ([0-9.]+).*/\1/p' | tail -n 1
}
reached=$(accuracy bf16)
asked=$(accuracy fp32)
ok "bf16 learns as well as fp32 ($reached, $asked)" awk "BEGIN { exit !($reached > 0.8 && $reached > $asked - 0.04) }"

# between nodes: the precision of products is not that of messages
mpirun=$(command -v mpirun.openmpi || command -v mpirun)
if [ -z "$mpirun" ] || PATH=/nowhere "$LOCKSTEP" train --hosts localhost,localhost 2>&1 | grep -q 'has no MPI'; then
	skip "nodes in bf16" "there is no mpirun, or this build has no MPI"
else
	export LSAN_OPTIONS=detect_leaks=0 # of MPI
	nodes=(timeout 60 "$mpirun" --oversubscribe --bind-to none -np 3)
	[ "$(id -u)" != 0 ] || nodes+=(--allow-run-as-root)
	for strategy in "allreduce" "ps" "ps --servers 2"; do
		# shellcheck disable=SC2086 # options
		run "${nodes[@]}" "$LOCKSTEP" "${text[@]}" --steps 4 --devices 1 --precision bf16 --strategy $strategy
		is "three nodes with $strategy: the same bits" "$status $(fingerprint "$out")" "0 $bf16"
	done
	# The library sums gradients of two nodes to the bits of any order; of three in its own.
	run "${nodes[@]/%3/2}" "$LOCKSTEP" "${text[@]}" --steps 4 --devices 1 --precision bf16 --strategy mpi
	is "two nodes with mpi: the same bits" "$status $(fingerprint "$out")" "0 $bf16"
	run "${nodes[@]}" "$LOCKSTEP" "${text[@]}" --steps 4 --devices 1 --precision bf16 --strategy mpi
	like "three with mpi train" "$status $(fingerprint "$out")" '^0 [0-9a-f]{16}$'
	like "in bf16" "$out$err" 'products in bf16|bf16 is emulated'
	like "and are said to have bits of their own" "$out$err" "strategy mpi sums in the MPI library's order"
	run "${nodes[@]}" "$LOCKSTEP" "${text[@]}" --steps 4 --devices 1 --precision bf16 --wire bf16
	like "with --wire bf16 others" "$status $(fingerprint "$out")" '^0 [0-9a-f]{16}$'
	ok "than without" test "$(fingerprint "$out")" != "$bf16"
	run "${nodes[@]}" "$LOCKSTEP" "${text[@]}" --steps 4 --devices 1 --precision bf16 --strategy ps-async
	like "ps-async trains" "$status $(fingerprint "$out")" '^0 [0-9a-f]{16}$'
	unset LSAN_OPTIONS
fi

fails_with "an unknown precision" 2 "precision 'bf17'.*did you mean 'bf16'" \
	"$LOCKSTEP" train --model mlp --data glyphs --samples 32 --steps 1 --precision bf17
run "$LOCKSTEP" bench --model transformer --layers 1 --width 64 --batch-per-device 2 --steps 1 --warmup 0 --repeat 1 --precision bf16 --json
ok "bench reports the precision" json .out 'o["precision"] == "bf16"'

# a profile is of one precision
small=(--model mlp --batch-per-device 4 --steps 1 --warmup 0 --repeat 1)
run "$LOCKSTEP" bench "${small[@]}" --precision bf16 --profile-out p16.json
ok "a profile has its precision" json p16.json 'o["precision"] == "bf16"'
run "$LOCKSTEP" bench "${small[@]}" --profile-out p32.json
fails_with "a profile of fp32 is not replayed as bf16" 1 'p32.json was recorded in fp32, and cannot be replayed as bf16' \
	"$LOCKSTEP" bench --replay p32.json --precision bf16 --steps 1 --warmup 0 --repeat 1
fails_with "nor one of bf16 as fp32" 1 'p16.json was recorded in bf16' \
	"$LOCKSTEP" bench --replay p16.json --precision fp32 --steps 1 --warmup 0 --repeat 1
run "$LOCKSTEP" bench --replay p16.json --steps 1 --warmup 0 --repeat 1 --json
ok "a replay has the precision of its profile" json .out 'o["precision"] == "bf16"'
run "$LOCKSTEP" plan p16.json --nodes 2 --rate 1gbit
like "a plan names it" "$out" '^mlp, batch 4, adam, products in bf16: '
run "$LOCKSTEP" plan p16.json --nodes 2 --rate 1gbit --json
ok "also as JSON" json .out 'o["precision"] == "bf16"'

# sweeps
run "$LOCKSTEP" bench --model mlp --batch-per-device 4 --precision fp32,bf16,bf16-amx --quick --steps 1 --warmup 0 --repeat 1 --out sweep
is "a sweep measures all" "$status" 0
like "in a column" "$out" 'model +precision'
like "bf16 and bf16-amx beside fp32" "$(grep -c -E '^mlp +(fp32|bf16|bf16-amx) ' <<<"$out")" '^3$'
ok "results.json keeps it" json sweep/results.json '[p["job"]["precision"] for p in o["points"]] == ["fp32", "bf16", "bf16-amx"]'
ok "each is its own baseline" test "$(grep -c -E '^mlp .* 1\.00$' <<<"$out")" = 3
fails_with "an unknown precision in a sweep" 2 "precision 'bf17'" "$LOCKSTEP" bench --model mlp --precision fp32,bf17 --out sweep2

test_end

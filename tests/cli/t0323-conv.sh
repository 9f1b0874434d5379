#!/bin/bash
# --conv: Winograd's algorithm trains to one set of bits on any instruction set, kernels, threads and devices, after a resume; auto
# chooses by the shape of each layer.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

unset LOCKSTEP_ISA LOCKSTEP_KERNELS
images=(train --model cnn --data glyphs --samples 96 --test-samples 16 --batch 24 --micro-batch 6 --dropout 0.1 --schedule constant)
for conv in direct winograd auto; do
	run "$LOCKSTEP" "${images[@]}" --steps 3 --devices 1 --threads 1 --conv $conv --run $conv
	declare "$conv=$(fingerprint "$out")"
	like "trains with --conv $conv" "$(fingerprint "$out")" '^[0-9a-f]{16}$'
	ok "which the run records" json $conv/run.json "o['settings']['conv'] == '$conv'"
done
# shellcheck disable=SC2154 # declared above
ok "winograd gives other bits than direct" test "$winograd" != "$direct"
# shellcheck disable=SC2154
is "auto is winograd for the second layer of the cnn" "$auto" "$winograd"
run "$LOCKSTEP" "${images[@]}" --steps 3 --devices 1
is "and the default" "$(fingerprint "$out")" "$auto"
for layout in "2 1" "1 2" "2 3" "4 1"; do
	read -r devices threads <<<"$layout"
	run "$LOCKSTEP" "${images[@]}" --steps 3 --devices "$devices" --threads "$threads"
	is "the same bits on $devices devices of $threads threads" "$(fingerprint "$out")" "$auto"
done
for isa in generic avx2 avx512 neon; do
	for kernels in portable xsmm; do
		export LOCKSTEP_ISA=$isa LOCKSTEP_KERNELS=$kernels
		"$LOCKSTEP" train --model mlp --data glyphs --samples 16 --steps 1 --plan-memory >/dev/null 2>&1 || continue
		run "$LOCKSTEP" "${images[@]}" --steps 3 --devices 1
		is "the same bits on $isa with $kernels kernels" "$(fingerprint "$out")" "$auto"
	done
done
unset LOCKSTEP_ISA LOCKSTEP_KERNELS

# a layer of maps that Winograd's does not pay for: auto is direct there
small=(train --model resnet18 --data glyphs --samples 16 --test-samples 8 --batch 4 --steps 2 --devices 1)
run "$LOCKSTEP" "${small[@]}"
by_shape=$(fingerprint "$out")
run "$LOCKSTEP" "${small[@]}" --conv winograd
all=$(fingerprint "$out")
run "$LOCKSTEP" "${small[@]}" --conv direct
ok "auto differs from direct and from winograd where maps are large and small" \
	test "$by_shape" != "$(fingerprint "$out")" -a "$by_shape" != "$all"

# resume
run "$LOCKSTEP" "${images[@]}" --steps 2 --devices 2 --conv winograd --run parts
run "$LOCKSTEP" train --run parts --resume --steps 3
# shellcheck disable=SC2154
is "a resumed run goes on with its algorithm" "$status $(fingerprint "$out")" "0 $winograd"
fails_with "another one is refused" 1 'conv was winograd, now direct' "$LOCKSTEP" train --run parts --resume --steps 4 --conv direct

# evaluation and files
cp direct/ckpt/step-000000003/model.safetensors alone.safetensors
run python3 -c 'import json, struct
f = open("alone.safetensors", "rb")
print(json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))["__metadata__"]["conv"])'
is "a file of weights says how its convolutions are computed" "$out" direct
run "$LOCKSTEP" eval winograd
is "a run is evaluated" "$status" 0
fails_with "an unknown algorithm" 2 "conv.*'winograde'.*did you mean 'winograd'" "$LOCKSTEP" "${images[@]}" --steps 1 --conv winograde
run "$LOCKSTEP" bench --model cnn --batch-per-device 4 --steps 1 --warmup 0 --repeat 1 --conv direct
is "bench takes it" "$status" 0

test_end

#!/bin/bash
# Layouts that cannot be: refused before training, saying why. And two nodes under plain mpirun, one without any MPI.
# shellcheck disable=SC2317 # functions are called by ok and wait_for
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

job=("$LOCKSTEP" train --model mlp --data glyphs --samples 200 --test-samples 50 --schedule constant --steps 3)
export LSAN_OPTIONS=detect_leaks=0 # of MPI

fails_with "an unknown strategy" 2 "unknown strategy 'allreduse'; did you mean 'allreduce'" "${job[@]}" --strategy allreduse
fails_with "an unknown wire" 2 "unknown wire 'bf61'; did you mean 'bf16'" "${job[@]}" --wire bf61
fails_with "an unknown share" 2 "--share eqal: give auto, equal" "${job[@]}" --share eqal
fails_with "a share of nothing" 2 "--share 1:0: .*positive" "${job[@]}" --share 1:0
fails_with "staleness without servers" 2 "--staleness needs --strategy ps-async: allreduce waits for all nodes" "${job[@]}" --staleness 2
fails_with "servers without their strategy" 2 "--servers needs --strategy ps or ps-async: allreduce has no parameter servers" "${job[@]}" --servers 1
fails_with "a micro-batch that does not divide" 2 "--batch 64 is not a multiple of --micro-batch 7; use batch 63 or 70" "${job[@]}" --batch 64 --micro-batch 7
fails_with "mpi's sum with servers" 2 "--servers needs --strategy ps or ps-async: mpi has no parameter servers" "${job[@]}" \
	--strategy mpi --servers 1
fails_with "clipping without a common step" 2 "--clip-norm does not work with --strategy ps-async" "${job[@]}" --strategy ps-async --clip-norm 1
fails_with "mpi's sum in bf16" 2 "--strategy mpi sums fp32; leave out --wire bf16" "${job[@]}" --strategy mpi --wire bf16

# One node never starts MPI: none of its plug-ins is in memory while it trains.
"${job[@]}" --steps 1000000 --devices 1 --log-every 1 >alone.out 2>&1 &
alone=$!
ok "one node trains" wait_for 20 grep -q '^Step3:' alone.out
ok "its memory can be seen" grep -q lockstep /proc/$alone/maps
unlike "without MPI" "$(cat /proc/$alone/maps)" 'mca_|libpmix'
kill -9 $alone
wait $alone 2>/dev/null

mpirun=$(command -v mpirun.openmpi || command -v mpirun)
if [ -z "$mpirun" ] || PATH=/nowhere "$LOCKSTEP" train --hosts localhost,localhost 2>&1 | grep -q 'has no MPI'; then
	skip "two nodes" "there is no mpirun, or this build has no MPI"
	test_end
fi
two=(timeout 60 "$mpirun" --oversubscribe --bind-to none -np 2)
[ "$(id -u)" != 0 ] || two=("${two[@]}" --allow-run-as-root)

batch=(--batch 64 --micro-batch 16)
run "${job[@]}" "${batch[@]}" --devices 1
expected=$(fingerprint "$out")
run "${two[@]}" "${job[@]}" "${batch[@]}" --devices 2
is "two nodes under mpirun: the same bits" "$status $(fingerprint "$out")" "0 $expected"
is "what it will do is said once" "$(grep -c '^model mlp: ' <<<"$out") $(grep '^2 nodes, ' <<<"$out" | cut -d'(' -f1)" \
	"1 2 nodes, 4 devices x 1 thread "
run "${two[@]}" "${job[@]}" "${batch[@]}" --devices 2 --momentum 0.5
is "and so is what has no effect" "$(grep -c 'warning: --momentum has no effect with --optimizer adam' <<<"$err")" 1
like "a table of them" "$out" '^1 +.* 2 x 1 '
run "${two[@]}" "${job[@]}" --batch 200 --micro-batch 2 --devices 40
many=$(fingerprint "$out")
is "more devices than cores" "$status" 0
like "with a warning" "$err" "40 threads on [0-9]+ cores?: oversubscribed"
run "${job[@]}" --batch 200 --micro-batch 2 --devices 1
is "and the bits of one device" "$(fingerprint "$out")" "$many"

here=(timeout 60 "${job[@]}" --hosts "localhost:1,localhost:1")
fails_with "nobody to compute" 2 "2 parameter servers on 2 nodes: no node would be left to compute" "${here[@]}" --strategy ps --servers 2
fails_with "a share for other workers" 2 "--share 1:2:3 has 3 numbers for 2 workers" "${here[@]}" --share 1:2:3
fails_with "a micro-batch that does not divide, on nodes" 2 "--batch 64 is not a multiple of --micro-batch 7" "${here[@]}" --batch 64 --micro-batch 7
is "is told once" "$(grep -c ^lockstep <<<"$err")" 1
"$LOCKSTEP" train --model cnn --data glyphs --samples 200 --test-samples 50 --schedule constant --steps 2 --run other >/dev/null
fails_with "a checkpoint of another model" 1 "--model was cnn, now mlp" "${here[@]}" --run other --resume
unlike "before training" "$out" '^(Epoch|Step|parameters)'
fails_with "weights of another model" 1 "does not fit this model" "${here[@]}" --init other/ckpt/step-000000002/model.safetensors
fails_with "a host that there is not" 1 "hosts: cannot reach host.invalid: " timeout 60 "${job[@]}" --hosts localhost:1,host.invalid:1
is "is one message" "$(wc -l <<<"$err")" 1

test_end

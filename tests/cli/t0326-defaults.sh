#!/bin/bash
# Without any batch or device option the trained bits are the same on every machine: for any number of devices, and on
# one core.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

plain=("$LOCKSTEP" train --model cnn --data glyphs --samples 1000 --test-samples 100)
run taskset -c "$(taskset -cp $$ | sed -E 's/.*: ([0-9]+).*/\1/')" "${plain[@]}"
expected=$(fingerprint "$out")
like "a job without batch options trains on one core" "$expected" '^[0-9a-f]{16}$'
like "on one device of one thread" "$out" '^1 device x 1 thread '
like "in batches of 128 and micro-batches of 32" "$out" '^8 steps \(1 epoch\) of 128 samples in micro-batches of 32;'
run "${plain[@]}"
is "the same bits on all cores" "$(fingerprint "$out")" "$expected"
for devices in 1 2 3 7; do
	run "${plain[@]}" --devices $devices
	is "the same bits on $devices devices" "$(fingerprint "$out")" "$expected"
done
like "devices without a micro-batch are not started" "$out" '^4 devices x '
like "which is said" "$err" '^warning: 3 of 7 devices have no micro-batch to compute: a step of 128 samples is 4 micro-batches of 32; use --micro-batch 16, which changes the trained bits$'

# threads fill the cores that devices leave
cores=$(nproc)
run "${plain[@]}" --micro-batch 128 --steps 1
like "one micro-batch: one device, all cores" "$out" "^1 device x $cores threads? "
run "${plain[@]}" --micro-batch 128 --steps 1 --threads 1
like "threads as given" "$out" "^1 device x 1 thread "

# a batch that is not a multiple of the micro-batch
run "${plain[@]}" --batch 97 --steps 3 --devices 1
like "without --micro-batch, parts as equal as can be" "$out" 'of 97 samples in micro-batches of 25;'
odd=$(fingerprint "$out")
run "${plain[@]}" --batch 97 --steps 3 --devices 3
is "the same on three devices" "$(fingerprint "$out")" "$odd"
run "${plain[@]}" --batch 97 --steps 6 --run odd --schedule constant
whole=$(fingerprint "$out")
run "${plain[@]}" --batch 97 --steps 3 --run halves --schedule constant
run "$LOCKSTEP" train --run halves --resume --steps 6
is "and such a run is resumed" "$(fingerprint "$out")" "$whole"
fails_with "a given micro-batch must divide the batch" 2 \
	"--batch 97 is not a multiple of --micro-batch 32; use batch 96 or 128, or leave out --micro-batch" "${plain[@]}" --batch 97 --micro-batch 32

# the form of published tables
run "${plain[@]}" --batch-per-device 32 --devices 4
is "32 per device on 4 devices are 128 in micro-batches of 32" "$(fingerprint "$out")" "$expected"
run "${plain[@]}" --batch-per-device 64 --devices 2 --steps 1
like "64 on 2 are 128 in micro-batches of 64" "$out" 'of 128 samples in micro-batches of 64;'

# the schedule's earlier name
run "${plain[@]}" --schedule settle
is "settle is the earlier name of wsd" "$(fingerprint "$out")" "$expected"

test_end

#!/bin/bash
# --hosts: what is refused before anything starts, and the host one is on, which needs no launcher.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

fails_with "an empty list" 2 'needs a value' small_train --steps 2 --hosts ''
fails_with "an entry without a name" 2 'entry 2 names no host' small_train --steps 2 --hosts a:1,
fails_with "no devices" 2 "host 'a': '0' is not a number of devices \(1 to 4096\)" small_train --steps 2 --hosts a:0
fails_with "a number that is none" 2 "host 'b': 'x' is not a number" small_train --steps 2 --hosts a:1,b:x
fails_with "an option in the place of a name" 2 "'-q' is not a host name" small_train --steps 2 --hosts=-q:1
fails_with "some with devices, some without" 2 "'a' says how many devices it has, 'b' does not" small_train --steps 2 --hosts a:1,b

# As mpirun and srun tell their processes.
fails_with "hosts under mpirun" 2 'leave it out under mpirun or srun' \
	env OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 "$LOCKSTEP" train --hosts a:1,b:1
fails_with "hosts under srun" 2 'leave it out under mpirun or srun' \
	env SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1 "$LOCKSTEP" train --hosts a:1,b:1

small=(--model mlp --data glyphs --samples 500 --test-samples 100 --schedule constant --steps 5 --batch 64 --micro-batch 16)
run "$LOCKSTEP" train "${small[@]}" --devices 1
expected=$(fingerprint "$out")
for hosts in localhost localhost:2 "$(hostname):2"; do
	run env PATH=/nowhere "$LOCKSTEP" train "${small[@]}" --hosts "$hosts"
	is "--hosts $hosts needs no mpirun" "$status$err" 0
	is "--hosts $hosts trains the same bits" "$(fingerprint "$out")" "$expected"
done

run env PATH=/nowhere "$LOCKSTEP" train "${small[@]}" --hosts localhost:1,localhost:1
like "without mpirun, or without MPI, it is said what to install" "$status $err" '^1 lockstep train: hosts: .*(openmpi-bin|libopenmpi-dev)'

test_end

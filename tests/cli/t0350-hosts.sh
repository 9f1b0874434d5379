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

# A job that ends before the node that is to report the reason has done so: what another one has heard is printed.
mkdir fake
cat >fake/mpirun.openmpi <<'END'
#!/bin/bash
[ "$1" != --version ] || exec echo "mpirun (Open MPI) 4.1.4"
dashes=$(printf -- '-%.0s' {1..74})
exec >&2
printf 'lockstep: node is up\nlockstep: node is up\n'
[ -z "$HEARD" ] || echo "lockstep: node heard: $HEARD"
[ -z "$REASON" ] || echo "lockstep: node fails: lockstep train: $REASON"
printf '%s\n' "$dashes" 'Primary job  terminated normally, but 1 process returned' 'a non-zero exit code.' "$dashes"
exit 1
END
chmod +x fake/mpirun.openmpi
if ! grep -q 'has no MPI' <<<"$err"; then
	heard="node 1 (b) has not responded for 8.1 s"
	launched() { # VARIABLE=VALUE...
		run env PATH="$PWD/fake:$PATH" "$@" "$LOCKSTEP" train "${small[@]}" --hosts localhost:1,localhost:1
	}
	launched HEARD="$heard"
	is "a reason that a node has heard" "$status $err" "1 lockstep train: $heard"
	launched HEARD="$heard" REASON="a reason"
	is "is not printed beside the report" "$status $err" "1 lockstep train: a reason"
	launched LC_ALL=C
	is "a job never ends in silence" "$status $err" "1 lockstep train: mpirun ended with status 1, and neither it nor a node said why"
fi

test_end

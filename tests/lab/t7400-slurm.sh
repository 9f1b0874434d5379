#!/bin/bash
# What `lockstep slurm` writes, under a real Slurm: its jobs train the same bits, stop in time, go on when they are requeued,
# and survive a node. Debian's Slurm and munge, on the hosts of a lab.
# shellcheck disable=SC2317 # functions are called by ok and wait_for
# shellcheck source=tests/lab/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/lab/lib-slurm.sh
. "$SOURCE_DIR/tests/lab/lib-slurm.sh"

options=(--model mlp --data glyphs --samples 330 --test-samples 100 --batch 16 --micro-batch 4 --schedule constant --eval-every 0
	--ckpt-every 25 --log-every 1 --timeout 5)
# The rate makes a step take 10 ms or more: what happens to a job finds it training.
lab_up 4 --rate 1gbit
slurm_up a b c d

declare -A whole # by steps
for steps in 60 300 2000; do
	run "$LOCKSTEP" train "${options[@]}" --devices 1 --steps $steps
	whole[$steps]=$(fingerprint "$out")
	like "a run of $steps steps on one host" "$status ${whole[$steps]}" '^0 [0-9a-f]{16}$'
done

begin_job() { # NAME STEPS OPTION-OF-SLURM... [-- OPTION-OF-TRAIN...]: until it has a checkpoint
	local own=()
	name=$1 steps=$2
	shift 2
	while [ $# -gt 0 ] && [ "$1" != -- ]; do own+=("$1") && shift; done
	run "$LOCKSTEP" slurm --job-name "$name" --program "$LOCKSTEP" "${own[@]}" -o "$name.sh" -- "${options[@]}" --steps "$steps" \
		--run "run-$name" "${@:2}"
	is "$name: a script" "$status$err" 0
	submit "$name.sh"
	log=$name-$job.out
}
trains() { # until it has a checkpoint
	ok "$name: a checkpoint is written" wait_for "$train_limit" has_checkpoint "run-$name" || test_note "$(cat "$log")"
}
goes_on_with() { # NODES: the last start of an elastic run
	[ "$(sed -nE 's/^Elastic: continuing on [0-9]+ nodes?: //p' "$log" | tail -n 1)" = "$1" ]
}
ends_right() {
	job_ends "$job"
	is "$name: ends with the same bits" "$(job_state "$job") $(fingerprint "$(cat "$log")" | tail -n 1)" "COMPLETED ${whole[$steps]}"
	[ "$(fingerprint "$(cat "$log")" | tail -n 1)" = "${whole[$steps]}" ] || test_note "$(tail -n 30 "$log")"
	ok "$name: nothing is left on any host" wait_for 30 nothing_is_left || test_note "$(slurm_leftovers)"
}

# ---- nodes ---------------------------------------------------------------------------------------------------------
begin_job four 60 --nodes 4 --devices 2 --mpi pmix
ends_right
like "four: on four nodes" "$(cat "$log")" '4 nodes'

# ---- the time limit --------------------------------------------------------------------------------------------------
# By scancel, as Slurm itself sends it: a time limit is in minutes.
begin_job limit 300 --nodes 2
trains
on_login scancel --batch --signal=USR1 "$job"
ok "limit: the job goes back into the queue" wait_for 30 is_in_state "$job" PENDING
at=$(find run-limit/ckpt -maxdepth 1 -name 'step-*' | sort | tail -n 1)
ok "limit: with a checkpoint before its end" test "${at#*/step-}" -lt 300
ends_right
like "limit: which it goes on from" "$(cat "$log")" "resuming $at"

# ---- a job that is cancelled ---------------------------------------------------------------------------------------
begin_job cancelled 100000 --nodes 2
trains
on_login scancel "$job"
job_ends "$job"
is "cancelled: not requeued" "$(job_state "$job")" CANCELLED
ok "cancelled: nothing is left on any host" wait_for 30 nothing_is_left || test_note "$(slurm_leftovers)"
step=$(sed -nE 's/.*stopped after step ([0-9]+) of 100000;.*/\1/p' "$log")
ok "cancelled: with a checkpoint of its last step ($step)" test -d "run-cancelled/ckpt/step-$(printf '%09d' "$step")"

# ---- a node that fails, and one that is added ------------------------------------------------------------------------
# While Slurm still counts the step of the first start as running, because its node does not answer, the next must start.
begin_job elastic 2000 --nodes 4 -- --elastic
trains
# shellcheck disable=SC2046 # ids
kill -9 $("$lab" ps d)
on_login scontrol update NodeName=d State=DOWN Reason=test
ok "elastic: the run goes on without the node" wait_for 30 goes_on_with a,b,c
start_slurmd d
on_login scontrol update NodeName=d State=RESUME
ok "elastic: the node is back" wait_for 30 slurm_is_up 1
# A job that gives its node to the first one.
on_login salloc --nodes=1 --nodelist=d --ntasks=1 --dependency="expand:$job" --immediate=20 sh -c "scontrol update JobId=\$SLURM_JOB_ID NumNodes=0 && scontrol update JobId=$job NumNodes=ALL" >grow.out 2>&1
is "elastic: Slurm adds it to the job" "$(on_login squeue -h -j "$job" -o %D)" 4 || test_note "$(cat grow.out)"
ok "elastic: and the run goes on with it" wait_for 30 goes_on_with a,b,c,d
ends_right

# ---- kinds of MPI ----------------------------------------------------------------------------------------------------
# Debian's Open MPI is built for PMIx alone. Under pmi2 each process would be a world of its own: it must not train.
begin_job pmi2 60 --nodes 2 --mpi pmi2
job_ends "$job"
is "pmi2: an Open MPI without it fails" "$(job_state "$job") $(fingerprint "$(cat "$log")")" "FAILED "
like "pmi2: and says why" "$(cat "$log")" "not built with SLURM's PMI support"

test_end

#!/bin/bash
# The all-reduce of lockstep/exchange.h in MPI programs: the example's bits on 1 to 5 ranks, communicators of a program's own,
# a rank without memory, ranks that do not come.
# shellcheck disable=SC2317 # functions are called by run
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"

program=$BUILD_DIR/tests/ranks/ranks_allreduce
example=$BUILD_DIR/examples/allreduce
if ! command -v mpirun >/dev/null; then
	echo "1..0 # SKIP there is no mpirun (tools/install-deps build gets it)"
	exit 0
fi
run "$program" many
if grep -q 'has no MPI' <<<"$err"; then
	echo "1..0 # SKIP this build has no MPI"
	exit 0
fi
is "without a launcher there is one rank" "$status $out$err" "0 ok"
export LSAN_OPTIONS=detect_leaks=0 # of MPI
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
ranks() { timeout -k 5 100 mpirun -q --oversubscribe --bind-to none -np "$@" </dev/null; }

ours=() theirs=()
for count in 1 2 3 5; do
	run ranks $count "$example"
	like "the example on $count" "$status $out$err" "^0 $count ranks?: MPI_Allreduce [0-9a-f]{16}, lockstep [0-9a-f]{16}\$"
	ours+=("${out##* }")
	theirs+=("$(sed -E 's/.*MPI_Allreduce ([0-9a-f]+),.*/\1/' <<<"$out")")
done
is "the same bits on 1, 2, 3 and 5 ranks" "$(printf '%s\n' "${ours[@]}" | sort -u | wc -l)" 1
ok "MPI's own sum has others on 2 and 3" test "${theirs[1]}" != "${theirs[2]}"

for count in 2 3 4; do
	run ranks $count "$program" many
	is "many sums on $count" "$status $out$err" "0 ok"
	run ranks $count "$program" split
	is "communicators of one's own on $count" "$status $out$err" "0 ok"
done
run ranks 3 --mca btl tcp,self "$program" many
is "over TCP" "$status $out$err" "0 ok"

run env ASAN_OPTIONS=allocator_may_return_null=1 timeout 100 mpirun -q --oversubscribe --bind-to none -np 3 "$program" memory
like "a rank that runs out of memory" "$out" '^ok$'
like "says so" "$err" 'rank 1: not enough memory for the all-reduce: own partial sums: 268\.4 MB wanted'
like "and is known to others at once" "$err" 'rank 0: all-reduce: rank 1 has not enough memory'

run ranks 3 "$program" absent
like "a rank that does not make the object" "$out" '^ok$'
like "is missed" "$err" 'another rank did not duplicate the communicator within 1 s'
run ranks 3 "$program" silent
like "one that does not take part" "$out" '^ok$'
like "is named" "$err" 'rank 2 did not take part in the first exchange within 1 s'
run ranks 2 "$program" before
like "before MPI_Init" "$status $err" 'MPI is not initialised; call MPI_Init\(\) first'
run "$program" null
like "no communicator" "$status $err" '^5 .*is no communicator; give MPI_Comm_c2f\(comm\)'

test_end

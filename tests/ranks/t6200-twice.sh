#!/bin/bash
# Several jobs in one process under mpirun: MPI is initialised once and finalised once, by the library or by the program.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"

program=$BUILD_DIR/tests/ranks/ranks_twice
if ! command -v mpirun >/dev/null; then
	echo "1..0 # SKIP there is no mpirun (tools/install-deps build gets it)"
	exit 0
fi
if PATH=/nowhere "$LOCKSTEP" train --hosts localhost,localhost 2>&1 | grep -q 'has no MPI'; then
	echo "1..0 # SKIP this build has no MPI"
	exit 0
fi
export LSAN_OPTIONS=detect_leaks=0 # Open MPI has its own, and its threads at the end make the search itself crash
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
nodes() { timeout -k 5 100 mpirun -q --oversubscribe --bind-to none "$@" </dev/null; }

run "$program" lockstep
alone=${out%% *}
like "alone: twice the same" "$status $out$err" "^0 ([0-9a-f]{16}) \\1 measured\$"
for how in lockstep own; do
	for count in 2 3; do
		run nodes -np "$count" "$program" "$how"
		is "$count nodes, MPI by $how: the same twice, and as alone; a clean end" "$status $out $err" "0 $alone $alone measured "
	done
done
run nodes -np 2 --mca btl tcp,self "$program" lockstep
is "over TCP, too" "$status $out $err" "0 $alone $alone measured "
run nodes -np 2 "$program" over
like "after MPI_Finalize it is refused" "$status $err" '^3 the first run: MPI: this program has called MPI_Finalize'
begin=$SECONDS
run nodes -np 2 "$program" fail
is "a node that fails between two jobs" "$status $out" "7 "
ok "ends the other, which waits for it, in seconds" test $((SECONDS - begin)) -lt 30

test_end

#!/bin/bash
# The MPI transport between processes: messages whole and in order, sums right, naps that end, and failures that do not
# hang.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"

program=$BUILD_DIR/tests/ranks/ranks_transport
if ! command -v mpirun >/dev/null; then
	echo "1..0 # SKIP there is no mpirun (tools/install-deps build gets it)"
	exit 0
fi
run "$program" traffic
if grep -q 'has no MPI' <<<"$err"; then
	is "a build without MPI says so" "$status" 4
	test_end
fi
export LSAN_OPTIONS=detect_leaks=0 # Open MPI has its own, and its threads at the end make the search itself crash

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
nodes() { # NODES OPTIONS... -- PART SEED
	local count=$1 options=()
	shift
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	timeout -k 5 100 mpirun -q --oversubscribe --bind-to none -np "$count" "${options[@]}" "$program" "$@" </dev/null
}

run "$program" traffic
is "without a launcher there is one node" "$status $out$err" "0 1 nodes"
seed=$((RANDOM * 32768 + RANDOM))
echo "# seed $seed"
for count in 1 2 4; do
	for part in traffic sum nap; do
		run nodes "$count" -- "$part" "$seed"
		is "$part, $count nodes" "$status $out$err" "0 $count nodes"
	done
	run nodes "$count" --mca btl tcp,self -- traffic "$seed"
	is "traffic over TCP, $count nodes" "$status $out$err" "0 $count nodes"
done
run nodes 3 --mca btl tcp,self -- sum
is "sum over TCP, 3 nodes" "$status $out$err" "0 3 nodes"

if [ -z "${SANITIZER:-}" ]; then
	run nodes 2 -- large
	is "a message of more than 2 GiB" "$status $out$err" "0 2 nodes"
else
	skip "a message of more than 2 GiB" "takes too long under a sanitizer"
fi

run nodes 3 -- farewell
is "a last word does not keep nodes from ending well" "$status $out$err" "0 3 nodes"
run nodes 2 -- short
like "a message too short fails" "$status $err" '^5 short: MPI: a message from node 1 has 999 bytes where 1000 were expected \(tag 1\)'
run nodes 2 -- long
like "one too long, too" "$status $err" '^5 long: MPI: receiving from node 1 \(1000 bytes, tag 1\) failed: .*MPI_ERR_TRUNCATE'
run nodes 3 -- linger
like "a node that does not come to the end is not waited for ($status)" "$status $(grep -cx goes <<<"$out")" '^[1-9][0-9]* 2$'
is "as the others say, in whole lines" "$(grep -c '^another node did not reach the final barrier within 2 s; exiting without it$' <<<"$err")" 2
begin=$SECONDS
run nodes 3 -- vanish
ok "a node that vanishes ends the others ($status)" test "$status" != 0
ok "in seconds" test $((SECONDS - begin)) -lt 60

run env OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_RANK=1 "$program" sum
like "a launcher of another MPI is noticed" "$status $err" '^4 no transport: this process was started as one of 3, but MPI sees 1'

test_end

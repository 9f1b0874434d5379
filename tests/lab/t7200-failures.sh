#!/bin/bash
# A node that is killed, stopped or cut off: the others end in time with one message, and nothing is left anywhere.
# CUTS=20 LS_TEST_TIMEOUT=3600 make test TESTS=lab/t7200 cuts hosts off 40 times and does nothing else.
# shellcheck disable=SC2317 # functions are called by ok and wait_for
# shellcheck source=tests/lab/lib.sh
. "$(dirname "$0")/lib.sh"

timeout_s=12 late_s=11 # for a busy machine; together less than twice the timeout
job=(--model cnn --data glyphs --samples 500 --test-samples 100 --batch 64 --micro-batch 8 --epochs 10000 --timeout "$timeout_s")
lab_up 3 --rate 1gbit

begin_job() { # [OPTION]...: in the background, until it has trained for an epoch; sets $launcher_id and $nodes
	: >bg.out # now: the shell in the background may come to it later than the search below
	"$lab" run "$LOCKSTEP" train --hosts a:1,b:1,c:1 "${job[@]}" "$@" >bg.out 2>bg.err &
	launcher_id=$!
	ok "nodes train" wait_for 60 grep -q '^Epoch 1' bg.out
	begin_errors
	nodes=("$(node_on a)" "$(node_on b)" "$(node_on c)")
	if [ -z "${nodes[0]}" ] || [ -z "${nodes[1]}" ] || [ -z "${nodes[2]}" ]; then
		test_note "nodes ${nodes[*]} of three" "$(cat bg.out bg.err)" "$("$lab" status --name "$LOCKSTEP_LAB")"
		exit 1
	fi
}
gone() { # PID...
	local pid
	for pid; do
		! kill -0 "$pid" 2>/dev/null || return 1
	done
}
milliseconds() { echo $(($(date +%s%N) / 1000000)); }

ends_well() { # NAME SURVIVORS... -- PATTERN: since $begin, on the clock of milliseconds
	local name=$1 survivors=() code
	shift
	while [ "$1" != -- ]; do
		survivors+=("$1")
		shift
	done
	ok "$name: the other nodes end" wait_for $((timeout_s + 30)) gone "${survivors[@]}"
	took=$(($(milliseconds) - begin))
	# the clock goes on while the nodes exit, one after the other where the machine is busy
	ok "$name: soon after the timeout ($took ms)" test $took -le $((1000 * (timeout_s + late_s)))
	ok "$name: nothing is left on any host" wait_for 30 lab_is_empty
	wait_bounded $launcher_id
	code=$?
	ok "$name: the status is not zero ($code)" test $code != 0
	like "$name: says who and what" "$(errors)" "$2"
	is "$name: and no more" "$(errors | sed 1d)" ""
	[ "$(errors | wc -l)" -le 1 ] || test_note "all of it:" "$(errors)"
}
operation='(this node|node [0-9] \([ac]\)) was (waiting for|sending) .+'

cut_off() { # [ROUND]: a host that is cut off, and one whose node dies as well
	begin_job
	begin=$(milliseconds)
	"$lab" cut b
	ends_well "cut${1:-}" "${nodes[0]}" "${nodes[2]}" -- \
		"^lockstep train: node 1 \(b\) has not responded for [0-9.]+ s; $operation\$"
	"$lab" mend b

	# Nobody on that host can report anything over the network, nor start what would end mpirun's daemon there. But what the daemon prints
	# comes through a pipe here, which a cut does not reach, so that it may be what is known first.
	begin_job
	begin=$(milliseconds)
	"$lab" cut b
	kill -9 "${nodes[1]}"
	ends_well "cut and kill -9${1:-}" "${nodes[0]}" "${nodes[2]}" -- \
		"^lockstep train: node 1 \(b\) (has not responded for [0-9.]+ s; $operation|was ended by signal 9 \(Killed\))\$"
	"$lab" mend b
}
# Only that, again and again: what is left on such a host now and then is found in many rounds.
if [ -n "${CUTS:-}" ]; then
	for ((round = 1; round <= CUTS; round++)); do
		cut_off ", round $round of $CUTS"
	done
	test_end
fi

for strategy in allreduce ps; do
	begin_job --strategy $strategy
	begin=$(milliseconds)
	kill -9 "${nodes[1]}"
	ends_well "kill -9, $strategy" "${nodes[0]}" "${nodes[2]}" -- \
		"^lockstep train: node 1 \(b\) (was ended by signal 9 \(Killed\)|.*; $operation)\$"
done

begin_job
begin=$(milliseconds)
kill -STOP "${nodes[1]}"
ends_well "kill -STOP" "${nodes[0]}" "${nodes[2]}" -- \
	"^lockstep train: node 1 \(b\) has not responded for [0-9.]+ s; $operation\$"

cut_off

# ---- the first node, where the run is kept ---------------------------------------------------------------------------
begin_job
begin=$(milliseconds)
kill -9 "${nodes[0]}"
ends_well "kill -9 of the first" "${nodes[1]}" "${nodes[2]}" -- \
	"^lockstep train: node 0 \(a\) (was ended by signal 9 \(Killed\)|.*; (this node|node [0-9] \([bc]\)) was .+)\$"

test_end

#!/bin/bash
# Starting nodes on other hosts, in the lab: in the order given, and when a host or a node goes, all ends with a reason.
# shellcheck disable=SC2317 # functions are called by ok and wait_for
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"

lab=$SOURCE_DIR/tools/lab
program=$BUILD_DIR/tests/ranks/ranks_launch
if ! reason=$("$lab" check 2>&1); then
	echo "1..0 # SKIP $reason"
	exit 0
fi
if "$program" tell localhost | grep -q 'no MPI'; then
	echo "1..0 # SKIP this build has no MPI"
	exit 0
fi
export LOCKSTEP_LAB=t7100-$$
export LSAN_OPTIONS=detect_leaks=0 # nodes are ended in the middle
trap '"$lab" down 2>/dev/null; test_clean' EXIT
"$lab" up 2 >/dev/null || exit 1

last_line() { tail -n 1 <<<"$out"; }
in_seconds() { # MOST: since $begin
	[ $((SECONDS - begin)) -le "$1" ]
}
empty() { # HOST...: no process is left there
	local host
	for host; do
		[ -z "$("$lab" ps "$host")" ] || return 1
	done
}
pair="a:1,b:1"

run env LOCKSTEP_WORD=hi "$lab" run "$program" tell b:2,a:1,b:3 30 end
is "three nodes on two hosts" "$status $(last_line)$err" "0 ok 0"
for node in 0:b 1:a 2:b; do
	like "node ${node%:*} is on host ${node#*:}" "$out" "^node ${node%:*} of 3 on ${node#*:} devices 2,1,3 word hi in $PWD last 'end'\$"
done
run "$lab" run "$program" tell b:2 30 end
like "one node, elsewhere" "$out" "^node 0 of 1 on b devices 2"

begin=$SECONDS
run "$lab" run "$program" kill "$pair" 30
like "a node that is killed elsewhere" "$(last_line)" '^io 137: (node 1 \(b\)|a node) was ended by signal 9 \(Killed\)'
ok "ends the others in seconds" in_seconds 25
run "$lab" run "$program" exit "$pair" 30
is "a node that fails elsewhere: its status, its words" "$(last_line) $err" "ok 7 lockstep: I failed"
ok "nothing is left" wait_for 15 empty a b

# It goes to the first node, wherever that is, which asks the other (see ranks_launch.c).
launcher() { pgrep -f "^$program wait $1 30" | grep -Fx -f <("$lab" ps a) | head -n 1; }
both_up() { [ -e node-0-is-up ] && [ -e node-1-is-up ]; }
for hosts in a:1,b:1 b:1,a:1; do
	rm -f asked-to-stop node-*-is-up
	"$lab" run "$program" wait $hosts 30 >bg.out 2>bg.err &
	job=$!
	ok "nodes come up" wait_for 30 both_up
	kill -TERM "$(launcher $hosts)"
	wait $job
	is "a request to stop reaches both hosts of $hosts" "$(sort bg.out | paste -sd ' ') $(cat bg.err)" \
		"interrupted 0: stopped on request node 0 stopped node 1 stopped "
done
rm -f asked-to-stop node-*-is-up

"$lab" run "$program" wait "$pair" 6 >bg.out 2>bg.err &
job=$!
ok "nodes come up once more" wait_for 30 both_up
begin=$SECONDS
"$lab" cut b
wait $job
like "a host that is cut off is named" "$(tail -n 1 bg.out)" '^io [0-9]+: lost contact with host b'
ok "in seconds" in_seconds 40
ok "and nothing is left on either side" wait_for 20 empty a b
begin=$SECONDS
run "$lab" run "$program" tell "$pair" 3
like "a host that is cut off at the start is named" "$(last_line)" '^io [0-9]+: hosts: cannot reach b: (no answer|No route to host)'
ok "in seconds" in_seconds 40
"$lab" mend b
wait_for 60 empty a b # a daemon that could not connect prints so, to the file of the next run, too
run "$lab" run "$program" tell a:1,zz:1
like "a host that there is not" "$(last_line)" '^io [0-9]+: hosts: cannot reach zz: '
is "is one message" "$(wc -l <<<"$out")$err" 1

test_end

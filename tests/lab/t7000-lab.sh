#!/bin/bash
# The rehearsal cluster itself: hosts are apart, links have their rate, MPI goes over them, and nothing is left behind.
# shellcheck disable=SC2317,SC2016 # functions are called by ok and wait_for; some words are for shells on the hosts
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"

lab=$SOURCE_DIR/tools/lab
if ! reason=$("$lab" check 2>&1); then
	echo "1..0 # SKIP $reason"
	exit 0
fi
export LOCKSTEP_LAB=t7000-$$
other=t7000-other-$$
trap '"$lab" down 2>/dev/null; "$lab" down --name $other 2>/dev/null; test_clean' EXIT

left_behind() { # whatever carries the names of this test's labs; links are gone with their namespaces
	ip netns list | grep -F -- "-$$"
	find /sys/fs/cgroup /etc/netns -name "*-$$*" 2>/dev/null
	find "${XDG_RUNTIME_DIR:-/tmp}" -maxdepth 1 -name "lockstep-lab-*-$$" 2>/dev/null
	grep -F -- "-$$" /proc/self/mounts
	pgrep -f "sleep 7000$$"
}
nothing_left() { [ -z "$(left_behind)" ] || { left_behind && false; }; }

# The part of a core a busy loop gets on a host, in percent.
cat >busy.py <<'PYTHON'
import time
start, cpu = time.perf_counter(), time.process_time()
while time.perf_counter() - start < 1:
    pass
print(round(100 * (time.process_time() - cpu) / (time.perf_counter() - start)))
PYTHON
core_share() { "$lab" run --on "$1" python3 busy.py; }
# How often the kernel has held a host's processes back: 0 where nothing limits its speed. A rate would not do, for other
# tests want the cores too.
throttled() { # HOST
	find /sys/fs/cgroup -maxdepth 8 -type d -name "lockstep-lab.$LOCKSTEP_LAB.$1" -exec cat {}/cpu.stat \; 2>/dev/null |
		awk '$1 == "nr_throttled" { n += $2 } END { print n + 0 }'
}

mbits() { # PATTERN: of the line of $out that matches
	sed -nE "s/^$1  ([0-9]+).*/\\1/p" <<<"$out"
}
between() { # LOW VALUE HIGH
	[ "$1" -le "${2:-0}" ] && [ "$2" -le "$3" ]
}

# ---- words -----------------------------------------------------------------------------------------------------------
run "$lab" --help
is "help: status" "$status" 0
ok "help fits a screen" test "$(wc -l <<<"$out")" -le 40
for line in "up" "up 0" "up x" "up 2 3" "up 2 --rate fast" "up 2 --rate 1" "up 2 --rate b=fast" "up 2 --rate c=1gbit" "up 2 --slow b" "up 2 --slow b=2" "up 2 --slow c=0.5" \
	"up 2 --memory b" "up 2 --memory b=lots" "up 2 --memory c=1g" "up 2 --slow b=0" "up 2 --frobnicate" "up 2 --prefix A_b" "up 2 --name ../x" "run" "run --on" "nonsense" ""; do
	# shellcheck disable=SC2086 # words
	run "$lab" $line
	is "'lab $line' is refused: status" "$status" 2
	like "'lab $line' is refused: message" "$err" '^lab: .*tools/lab --help$'
done
run setpriv --reuid 65534 --clear-groups --inh-caps=-all --bounding-set=-all "$lab" check
like "check without rights says why" "$status $err" '^1 lab: not root'
run "$lab" run true
is "no lab: status" "$status" 1
like "no lab: says what to do" "$err" 'there is no lab .*tools/lab up'
ok "refusals leave nothing behind" nothing_left

# ---- hosts -----------------------------------------------------------------------------------------------------------
run "$lab" up 2 --rate 100mbit --slow b=0.5
is "up" "$status$err" 0
like "up shows host b" "$out" '^b +10\.83\.0\.2 +.* 0\.5 +up +0$'
for link in a b bridge; do
	ok "no link '$link' outside the lab" sh -c "! ip link show dev $link"
done
run "$lab" up 2
like "a second lab of the name is refused" "$status $err" '^1 lab: .* exists already'
is "a host has its name" "$("$lab" run hostname)$("$lab" run --on b hostname)" ab
is "hosts know each other's address" "$("$lab" run getent hosts b | awk '{ print $1 }')" 10.83.0.2
is "a host sees its own interfaces only" "$("$lab" run ls /sys/class/net | sort | paste -sd ' ')" "eth0 lo"
is "run keeps directory, environment and arguments" "$(A=1 "$lab" run sh -c 'echo "$PWD $A $1"' sh 'x  y')" "$PWD 1 x  y"
run "$lab" run sh -c 'exit 7'
is "run hands on the exit status" "$status" 7
run "$lab" run --on z true
like "an unknown host is refused" "$status $err" "^1 lab: .*no host 'z'; its hosts are: a b"
if [ "$(nproc)" -ge 2 ]; then
	is "hosts have cores of their own" "$(for host in a b; do
		"$lab" run --on $host grep Cpus_allowed_list /proc/self/status
	done | sort -u | wc -l)" 2
	share=$(core_share b)
	ok "a slow host gets no more than its part of a core ($share %)" between 10 "$share" 57
	for _ in 1 2 3 4 5; do
		[ "$(throttled b)" = 0 ] || break
		core_share b >/dev/null # it got less than its part, for the core was busy
	done
	ok "it was held back" test "$(throttled b)" -gt 0
	core_share a >/dev/null
	is "the other is not slowed" "$(throttled a)" 0
else
	skip "cores and speeds" "there is one core only"
fi

if ! "$lab" check | grep -q 'no memory cgroup'; then
	"$lab" up 2 --name "$LOCKSTEP_LAB-small" --memory b=100m >/dev/null
	grab='x = bytearray(200 << 20)'
	run "$lab" run --name "$LOCKSTEP_LAB-small" --on b python3 -c "$grab"
	is "what exceeds a host's memory is killed" "$status" 137
	"$lab" run --name "$LOCKSTEP_LAB-small" python3 -c "$grab"
	is "the other host has no limit" $? 0
	"$lab" down --name "$LOCKSTEP_LAB-small"
else
	skip "a limit of memory" "no memory cgroup can be made here"
fi

"$lab" run --on b sleep "7000$$" &
sleeps_on_b() { [ "$("$lab" ps b | xargs -r ps -o comm= -p)" = sleep ]; } # and what entered the host before it is gone
ok "ps shows a process" wait_for 20 sleeps_on_b
like "status counts it" "$("$lab" status --name "$LOCKSTEP_LAB")" '^b .* 1$'
is "ps of the other host" "$("$lab" ps a)" ""

# ---- /dev/shm --------------------------------------------------------------------------------------------------------
"$lab" run --on b sh -c 'echo of b >/dev/shm/'"shared-$$"
is "a host's /dev/shm outlasts the process" "$("$lab" run --on b cat "/dev/shm/shared-$$")" "of b"
ok "another host does not have it" "$lab" run test ! -e "/dev/shm/shared-$$"
ok "nor has this machine" test ! -e "/dev/shm/shared-$$"
is "shm shows where it is here" "$(cat "$("$lab" shm b)/shared-$$")" "of b"
like "on all hosts anybody may write there" "$("$lab" run stat -c %a /dev/shm) $("$lab" run --on b stat -fc %T /dev/shm)" '^1777 tmpfs$'
run "$lab" shm z
like "shm of an unknown host is refused" "$status $err" "^1 lab: .*no host 'z'"

# ---- links -----------------------------------------------------------------------------------------------------------
# Other tests may take the cores from iperf3 for a while: the best of three tries is what the link carries.
for _ in 1 2 3; do
	run "$lab" rate a b
	if between 70 "$(mbits 'a -> b')" 100 && between 70 "$(mbits 'b -> a')" 100; then
		break
	fi
done
ok "100 Mbit/s from a to b ($(mbits 'a -> b'))" between 70 "$(mbits 'a -> b')" 100
ok "100 Mbit/s from b to a ($(mbits 'b -> a'))" between 70 "$(mbits 'b -> a')" 100

# A connection that echoes lines: it outlives a short cut.
cat >echo.py <<'PYTHON'
import socket, sys
if sys.argv[1] == "serve":
    connection = socket.create_server(("", 7007)).accept()[0]
    while data := connection.recv(100):
        connection.sendall(data)
else:
    connection = socket.create_connection(("b", 7007), 5)
    for line in sys.stdin:
        connection.sendall(line.encode())
        connection.settimeout(20)
        print(connection.recv(100).decode().strip(), flush=True)
PYTHON
"$lab" run --on b python3 echo.py serve &
ok "b listens" wait_for 20 sh -c "'$lab' run --on b ss -Hltn | grep -q 7007"
mkfifo words
"$lab" run python3 echo.py ask <words >echoed 2>echo.err &
exec 9>words
echo one >&9
ok "a word goes to b and back" wait_for 20 grep -q one echoed
"$lab" cut b
like "status shows the cut" "$("$lab" status --name "$LOCKSTEP_LAB")" '^b .* cut '
is "the host's interface does not notice" "$("$lab" run --on b cat /sys/class/net/eth0/carrier)" 1
echo two >&9
sleep 0.5
ok "no word passes a cut link" sh -c '! grep -q two echoed'
"$lab" mend b
ok "the connection goes on after the mend" wait_for 20 grep -q two echoed
exec 9>&-

# ---- MPI -------------------------------------------------------------------------------------------------------------
run "$lab" run mpirun -host a,b hostname
is "mpirun starts on both hosts" "$status $(sort <<<"$out" | paste -sd ' ')" "0 a b"

# With ssh, too, only what mpirun is asked to pass on arrives on another host.
run env FORGOTTEN=1 "$lab" run mpirun -host b sh -c 'echo "[$FORGOTTEN]"'
is "a variable that is not passed on does not arrive" "$out" "[]"
run env TOLD=1 "$lab" run mpirun -x TOLD -host b sh -c 'echo "[$TOLD]"'
is "one that is passed on does" "$out" "[1]"

cat >hello.c <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	int rank, size, length, count = 1 << 20;
	char host[MPI_MAX_PROCESSOR_NAME];
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Get_processor_name(host, &length);
	float *data = malloc(sizeof *data * count);
	for (int i = 0; i < count; i++)
		data[i] = (float)(rank + 1);
	MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	printf("%s %g\n", host, (double)data[count - 1]);
	free(data);
	return MPI_Finalize();
}
C
sent() { "$lab" run --on "$1" cat /sys/class/net/eth0/statistics/tx_bytes; }
if mpicc hello.c -o hello >hello.log 2>&1; then
	before=$(sent b)
	run "$lab" run mpirun -host a,b ./hello
	is "MPI adds up over two hosts" "$status $(sort <<<"$out" | paste -sd ' ')" "0 a 3 b 3"
	ok "its 4 MB went over the link" test $(($(sent b) - before)) -gt 4000000
	run "$lab" run mpirun --oversubscribe -host a:2,b:2 ./hello
	is "two processes a host" "$status $(sort <<<"$out" | paste -sd ' ')" "0 a 10 a 10 b 10 b 10"
	run "$lab" run env OMPI_MCA_btl=vader,self OMPI_MCA_btl_vader_backing_directory=/dev/shm mpirun --oversubscribe -host b:2 ./hello
	is "two processes on a host, by its shared memory" "$status $(sort <<<"$out" | paste -sd ' ')" "0 b 3 b 3"
else
	skip "MPI programs" "mpicc makes no program: $(tail -n 1 hello.log)"
fi

# ---- a second lab, three hosts with other names -----------------------------------------------------------------------
run "$lab" up 3 --name "$other" --prefix lm --rate 200mbit --rate lm3=20mbit
is "a second lab beside the first" "$status$err" 0
if [ "$(nproc)" -lt 3 ]; then
	like "up says that hosts share cores" "$out" '3 hosts on [12] cores: they share all cores'
fi
like "status shows both labs" "$("$lab" status | paste -sd ' ')" "lab $LOCKSTEP_LAB,.* lab $other,|lab $other,.* lab $LOCKSTEP_LAB,"
if [ -x hello ]; then
	run "$lab" run --name "$other" mpirun -host lm1,lm2,lm3 ./hello
	is "MPI over three hosts" "$status $(sort <<<"$out" | paste -sd ' ')" "0 lm1 6 lm2 6 lm3 6"
fi
run "$lab" run --name "$other" --on lm3 "$lab" down
like "a lab is not taken down from inside" "$status $err" '^1 lab: .*leave the lab'
for _ in 1 2 3; do
	run "$lab" rate --name "$other" lm3 lm1
	if between 14 "$(mbits 'lm3 -> lm1')" 20 && between 14 "$(mbits 'lm1 -> lm3')" 20; then
		break
	fi
done
ok "a link with a rate of its own, out ($(mbits 'lm3 -> lm1'))" between 14 "$(mbits 'lm3 -> lm1')" 20
ok "and in ($(mbits 'lm1 -> lm3'))" between 14 "$(mbits 'lm1 -> lm3')" 20
run "$lab" rate --name "$other" lm1 lm2
ok "the others have the common rate ($(mbits 'lm1 -> lm2'))" between 40 "$(mbits 'lm1 -> lm2')" 200
like "status shows both rates" "$("$lab" status --name "$other")" '^lab .*, 3 hosts, link rate: 200mbit, lm3 20mbit$'
ok "down of the second" "$lab" down --name "$other"
is "the first is still there" "$("$lab" run hostname)" a

# ---- nothing left ----------------------------------------------------------------------------------------------------
sleep "7000$$" & # not in the lab
mine=$!
ok "down, with a process running in it" "$lab" down
ok "a process outside the lab lives" kill -0 $mine
kill $mine
wait $mine 2>/dev/null
ok "nothing is left behind" nothing_left
run "$lab" down
is "down of no lab: status" "$status" 1

half_made() { # as many hosts as given are there
	[ "$(ip netns list | grep -cF "lockstep-lab.$LOCKSTEP_LAB.")" -ge "$1" ]
}
for pair in INT:130 TERM:143 KILL:137; do
	signal=${pair%:*}
	env --default-signal=INT "$lab" up 30 --rate 1gbit >up.log 2>&1 &
	pid=$!
	ok "up is on its way" wait_for 10 half_made 3
	kill -"$signal" $pid
	wait $pid 2>/dev/null
	is "SIG$signal stops it" $? "${pair#*:}"
	if [ "$signal" = KILL ]; then
		ok "killed: status shows that it is half made" grep -q 'half made' <("$lab" status)
		ok "killed: down removes what there is" "$lab" down
	fi
	ok "SIG$signal leaves nothing behind" nothing_left
done

test_end

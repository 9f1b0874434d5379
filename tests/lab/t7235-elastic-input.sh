#!/bin/bash
# What --elastic is given may be wrong, and change while the run goes on: lists that name nobody, hosts that cannot be reached,
# commands that hang, memory that is full or taken. The run goes on, or says what to mend.
# shellcheck disable=SC2317 # functions are called by ok and wait_for
# shellcheck source=tests/lab/lib.sh
. "$(dirname "$0")/lib.sh"

job=(--model mlp --data glyphs --samples 330 --batch 64 --micro-batch 8 --schedule constant --eval-every 0 --ckpt-every 25 --timeout 4)
lab_up 3 --rate 1gbit
run "$LOCKSTEP" train "${job[@]}" --devices 1 --steps 300
whole=$(fingerprint "$out")

elastic() { "$lab" run "$LOCKSTEP" train --elastic "${job[@]}" "$@"; }
begin() { # RUN OPTION...: in the background, until it has a checkpoint
	name=$1
	shift
	: >bg.out
	elastic --steps 300 --run "$name" "$@" >bg.out 2>bg.err &
	job_id=$!
	ok "$name: a checkpoint is written" wait_for 40 has_checkpoint "$name"
}
warned() { grep -qF "$1" bg.err; }
said() { grep -qE "^Elastic: $1" bg.out; }
ends_right() {
	wait_bounded $job_id
	is "$name: ends with the same bits" "$? $(fingerprint "$(cat bg.out)" | tail -n 1)" "0 $whole"
}
fails() { # NAME STATUS PATTERN OPTION...
	local name=$1 code=$2 pattern=$3
	shift 3
	fails_with "$name" "$code" "$pattern" timeout 60 "$lab" run "$LOCKSTEP" train --elastic "${job[@]}" --steps 5 --run r "$@"
}

# ---- lists -----------------------------------------------------------------------------------------------------------
printf 'a:1\n\0b:1\n' >binary
fails "a file with bytes that are no text" 1 'binary has bytes that are no text' --hosts @binary
fails "a file that is not there" 1 'cannot open missing' --hosts @missing
fails "a command that prints rubbish" 1 'prints bytes that are no text' --discover 'head -c 100 /dev/zero'
fails "a command that names a host twice" 2 "'a' is named twice" --discover 'echo a:1; echo a:1'
fails "a command that hangs" 1 "'sleep 1000' has not ended within 10 s" --discover 'sleep 1000'
ok "none of them leaves a run" test ! -e r

# ---- a directory that holds another run ------------------------------------------------------------------------------
run "$LOCKSTEP" train "${job[@]}" --devices 1 --steps 5 --run theirs
cp theirs/metrics.jsonl before.jsonl
fails_with "a directory with a run" 2 'theirs already holds a run' timeout 60 "$lab" run "$LOCKSTEP" train --elastic "${job[@]}" --steps 5 \
	--run theirs --hosts a:1,b:1
ok "which is not written to" cmp theirs/metrics.jsonl before.jsonl

# ---- lists that change for the worse ---------------------------------------------------------------------------------
printf 'a:1\nb:1\n' >hosts
begin worse --hosts @hosts
: >hosts
ok "a file that names nobody any more: the hosts stay" wait_for 20 warned 'hosts names no host'
printf 'a:1\na:1\n' >hosts
ok "a host twice: they stay, too" wait_for 20 warned "'a' is named twice"
ends_right
is "worse: there was one start" "$(grep -c '"kind": "start"' worse/metrics.jsonl)" 1

cat >discover.sh <<'END'
#!/bin/sh
echo a:1; echo b:1
if test -e hang; then sleep 1000; fi
END
chmod +x discover.sh
begin hangs --discover ./discover.sh
touch hang
kill -9 "$(node_on b)"
ok "a command that hangs when a node is lost: the run goes on with the hosts that it named" wait_for 60 said 'continuing on 2 nodes: a:1,b:1$'
rm hang
ends_right

# ---- hosts that cannot be reached ------------------------------------------------------------------------------------
"$lab" cut c
run timeout 90 "$lab" run "$LOCKSTEP" train --elastic "${job[@]}" --steps 30 --hosts a:1,c:1,b:1 --min-nodes 2 --run reached
is "the run starts with the others" "$status $(grep -cE '^Elastic: continuing on 2 nodes: a:1,b:1$' <<<"$out")" "0 1"
"$lab" mend c
printf 'a:1\nb:1\n' >hosts
elastic --steps 300 --run few --hosts @hosts --min-nodes 3 >bg.out 2>bg.err &
job_id=$! name=few
ok "fewer hosts than --min-nodes: the run waits" wait_for 20 said 'waiting for hosts: 2 of 3 available$'
echo c:1 >>hosts
ends_right

# ---- a clock of day that jumps ---------------------------------------------------------------------------------------
# That of the supervisor and of the node on its host: a day back while the run goes on, and years ahead while it is started again.
if [ -z "${SANITIZER:-}" ] && command -v cc >/dev/null; then
	cat >jump.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long jump(void)
{
	long seconds = 0;
	FILE *file = fopen(getenv("JUMP"), "r");
	if (file) {
		if (fscanf(file, "%ld", &seconds) != 1)
			seconds = 0;
		fclose(file);
	}
	return seconds;
}
int clock_gettime(clockid_t clock, struct timespec *out)
{
	long code = syscall(SYS_clock_gettime, clock, out);
	if (clock == CLOCK_REALTIME)
		out->tv_sec += jump();
	return (int)code;
}
time_t time(time_t *out)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (out)
		*out = now.tv_sec;
	return now.tv_sec;
}
int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	out->tv_sec = now.tv_sec;
	out->tv_usec = now.tv_nsec / 1000;
	(void)zone;
	return 0;
}
END
	ok "a clock that jumps" cc -shared -fPIC -o jump.so jump.c
	name=jumps
	: >bg.out
	"$lab" run env JUMP="$PWD/jump" LD_PRELOAD="$PWD/jump.so" "$LOCKSTEP" train --elastic "${job[@]}" --steps 300 --log-every 1 --run $name \
		--hosts a:1,b:1 >bg.out 2>bg.err &
	job_id=$!
	ok "$name: a checkpoint is written" wait_for 40 has_checkpoint $name
	echo -86400 >jump
	sleep 0.3
	kill -9 "$(node_on b)"
	echo 100000000 >jump
	ok "$name: the run goes on" wait_for 60 said 'continuing on 2 nodes: a:1,b:1$'
	ends_right
	ok "$name: the clock did jump" json $name/metrics.jsonl 'min(l["time"] for l in o) < o[0]["time"] - 80000 and o[-1]["time"] > o[0]["time"] + 9e7'
	ok "$name: and seconds of the run did not" json $name/metrics.jsonl 'all(0 <= l["seconds"] < 300 for l in o if "seconds" in l)'
	ok "$name: the report draws it" "$LOCKSTEP" report $name --out $name.html
else
	skip "a clock that jumps" "a sanitizer, or no compiler"
fi

# ---- memory for snapshots --------------------------------------------------------------------------------------------
snapshots=("$LOCKSTEP" train "${job[@]}" --devices 1 --snapshot-every 5)
full() { unshare -m bash -c 'mount -t tmpfs -o size=64k none /dev/shm && exec "$@"' bash "${snapshots[@]}" --run full --steps 300; }
run full
is "memory that is full: the run ends right" "$status $(fingerprint "$out")" "0 $whole"
like "and says so once" "$(grep -c 'no snapshots in memory on .*No space left on device' <<<"$err")" '^1$'

"${snapshots[@]}" --run taken --steps 300000 >/dev/null 2>&1 &
pid=$!
ok "a checkpoint is written" wait_for 30 has_checkpoint taken
kill -9 $pid
wait $pid 2>/dev/null
number=$(cut -d ' ' -f 1 taken/.snapshots)
chown nobody /dev/shm/lockstep-0-"$number"-*
theirs=/dev/shm/lockstep-0-$number-2-0-$(hostname)
echo theirs >"$theirs"
chown nobody "$theirs"
step=$(find taken/ckpt -maxdepth 1 -name 'step-*' | sort | tail -n 1 | sed 's/.*step-0*//')
run "${snapshots[@]}" --run taken --resume --steps $((step + 20))
is "another user's files: the run goes on from disk" "$status $(grep -c "resuming taken/ckpt/step-0*$step at step $step" <<<"$err")" "0 1"
like "does not read them" "$err" 'is not a private file of this user: not used as a snapshot'
like "and makes none in their place" "$err" 'no snapshots in memory on .* belongs to another user'
is "nor removes them" "$(cat "$theirs")" "theirs"
rm -f /dev/shm/lockstep-0-"$number"-*

test_end

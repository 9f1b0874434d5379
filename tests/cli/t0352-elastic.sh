#!/bin/bash
# The supervisor of --elastic, with a stand-in for mpirun that acts out what hosts and nodes do: which hosts it blames,
# tries again and leaves out, and how often.
# shellcheck disable=SC2016,SC2317 # plays are for another shell; functions are called by ok and wait_for
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

if PATH=/nowhere "$LOCKSTEP" train --hosts localhost,localhost 2>&1 | grep -q 'has no MPI'; then
	echo "1..0 # SKIP this build has no MPI"
	exit 0
fi

# A play has the number of the start in $start, hosts in "$@", and these words:
mkdir bin
cat >bin/mpirun.openmpi <<'END'
#!/bin/bash
if [ "$1" = --version ]; then
	echo call >>versions
	echo "mpirun (Open MPI) 4.1.4"
	exit
fi
dashes=$(printf -- '-%.0s' {1..74})
say() { printf '%s\n' "$@" >&2; }
banner() { say "$dashes" "$@" "$dashes"; }
trains() { for host in "${hosts[@]}"; do say "lockstep: node is up"; done && say "lockstep: nodes train"; }
has() { [[ " ${hosts[*]} " = *" $1 "* ]]; }
rank() { for i in "${!hosts[@]}"; do [ "${hosts[i]}" != "$1" ] || echo "$i"; done; }
until_asked() { read -r -t 60 && exit 0; exit 1; } # a stop with a checkpoint
killed() { say "[x:1] [[7,0],0] ACTIVATE PROC [[7,1],$(rank "$1")] STATE ABORTED BY SIGNAL AT x.c:1" && exit 137; }
exits() { say "[x:1] [[7,0],0] ACTIVATE PROC [[7,1],$(rank "$1")] STATE EXITED WITH NON-ZERO STATUS AT x.c:1" && exit "$2"; }
silent() { say "lockstep: node lost: lockstep train: node $(rank "$1") ($1) has not responded for 4 s" && exit 1; }
fails() { say "lockstep: node fails: lockstep train: $1" && exit 1; }
cannot_run() { banner "mpirun could not access" "or execute an executable:" "" "Executable: /opt/lockstep" "Node: $1" && exit 1; }
unreached() { say "$1" && banner "ORTE was unable to reliably start one or more daemons." && exit 1; }
hosts=()
while [ $# -gt 0 ]; do
	[ "$1" != -host ] || hosts+=("$2")
	shift
done
echo "${hosts[*]}" >>starts
start=$(wc -l <starts)
. ./play
END
chmod +x bin/mpirun.openmpi
export PATH=$PWD/bin:$PATH
A=127.0.0.1 B=127.0.0.2 C=127.0.0.3 D=127.0.0.4 # all of them answer

job=("$LOCKSTEP" train --elastic --model mlp --data glyphs --samples 64 --run run --timeout 4)
begins() { # PLAY
	rm -f starts versions
	echo "$1" >play
}
act() { # PLAY OPTION...: $status, $out, $err and $starts, the hosts of each start
	begins "$1"
	shift
	run timeout 100 "${job[@]}" "$@"
	starts=$(paste -sd ';' starts 2>/dev/null)
}
hosts_are() { printf '%s:1\n' "$@" >hosts; }

# ---- hosts that are unfit --------------------------------------------------------------------------------------------
joins='if [ $start = 1 ]; then trains; printf "%s:1\n" 127.0.0.3 >>hosts; until_asked; fi'
bad_hosts=(
	'cannot_run 127.0.0.3' 'host 127.0.0.3 cannot run /opt/lockstep'
	'exits 127.0.0.3 127' 'node 2 \(127.0.0.3\) ended with status 127 before it could say why'
	'fails "the training sets of node 0 (127.0.0.1) and node 2 (127.0.0.3) have different samples"' 'the training sets of .* different samples'
	'fails "nobody can say whose fault it is"' 'nobody can say whose fault it is'
	'unreached "Permission denied"' 'nodes could not be started: Permission denied'
	'silent 127.0.0.3' 'node 2 \(127.0.0.3\) has not responded'
)
for ((i = 0; i < ${#bad_hosts[@]}; i += 2)); do
	hosts_are $A $B
	act "$joins; if has 127.0.0.3; then ${bad_hosts[i]}; fi; trains; exit 0" --hosts @hosts --max-restarts 1
	is "a new host, ${bad_hosts[i]%% *}: those that trained before go on" "$status $starts" "0 $A $B;$A $B $C;$A $B"
	like "with the reason" "$out" "^Elastic: ${bad_hosts[i + 1]}"
	like "and for a while without it" "$out" "^Elastic: host $C could not train with the others; excluded for 60 s$"
	unlike "which is no error of the run" "$err" '^lockstep'
done
hosts_are $A $B
act "${joins/>>hosts/127.0.0.4 >>hosts}"'; if has 127.0.0.4; then unreached "Host key verification failed."; fi; trains; exit 0' --hosts @hosts
is "two new hosts, and nobody knows which is bad: the first is tried alone" "$status $starts" "0 $A $B;$A $B $C $D;$A $B $C"

act 'if has 127.0.0.2; then cannot_run 127.0.0.2; fi; trains; exit 0' --hosts $A:1,$B:1
is "at the first start: the others train" "$status $starts" "0 $A $B;$A"
act 'if has 127.0.0.2; then cannot_run 127.0.0.2; fi; cannot_run 127.0.0.1' --hosts $A:1,$B:1 --max-restarts 9
is "when nobody is left the run ends" "$status $starts" "1 $A $B;$A"
like "and says why" "$err" "^lockstep train: host $A cannot run /opt/lockstep: Lockstep must be installed"
act 'fails "the training sets of node 0 (127.0.0.1) and node 1 (127.0.0.2) have different samples"' --hosts $A:1,$B:1
is "other data at the first start are an error" "$status $starts $err" \
	"1 $A $B lockstep train: the training sets of node 0 ($A) and node 1 ($B) have different samples"
act 'cannot_run elsewhere.example' --hosts $A:1,$B:1
is "at the first start: where no host of the list is named, nobody is left out" "$status $starts" "1 $A $B"
like "and the report ends the run" "$err" '^lockstep train: host elsewhere.example cannot run /opt/lockstep: '
hosts_are $A $B
act "$joins; say 'lockstep: node fails: lockstep train: the disk is full'; trains; exit 1" --hosts @hosts
is "such a report may overtake the line of the step" "$status $starts $err" "1 $A $B;$A $B $C lockstep train: the disk is full"
hosts_are $A $B
act "$joins; trains; fails 'the disk is full'" --hosts @hosts
is "what fails after a step has been trained ends the run, whoever has joined" "$status $starts $err" "1 $A $B;$A $B $C lockstep train: the disk is full"

# ---- hosts whose silence means nothing -------------------------------------------------------------------------------
# Names that only ssh can resolve.
act 'trains; sleep 1.5; [ $start -gt 3 ] || killed alias-c; exit 0' --hosts $A:1,alias-b:1,alias-c:1
is "hosts that never answered are not missed after a loss" "$status $starts" \
	"0 $A alias-b alias-c;$A alias-b alias-c;$A alias-b alias-c;$A alias-b"
act 'trains; sleep 1.5; if has alias-c; then silent alias-c; fi; exit 0' --hosts $A:1,alias-b:1,alias-c:1
is "one of them that is silent may be off" "$status $starts" "0 $A alias-b alias-c;$A alias-b"
like "and is left out for a while" "$out" '^Elastic: host alias-c stopped responding; excluded for 60 s$'
act 'if has nowhere; then unreached "ssh: Could not resolve hostname nowhere"; fi; trains; exit 0' --hosts $A:1,nowhere:1
is "at the first start, such a host is left out" "$status $starts" "0 $A nowhere;$A"

# ---- how often -------------------------------------------------------------------------------------------------------
act 'trains; [ $start -lt 9 ] || exit 0; if [ $((start % 2)) = 0 ]; then killed 127.0.0.1; else killed 127.0.0.2; fi' \
	--hosts $A:1,$B:1 --max-restarts 3
is "--max-restarts" "$status $starts" "1 $A $B;$A $B;$A $B;$A $B"
like "says what to do" "$err" '^lockstep train: node 0 \(.*\) was ended by a signal, and the run was started again 3 times already \(--max-restarts\) without 5 minutes of training in between; continue with --run run --resume'
is "mpirun is asked for its version once" "$(wc -l <versions)" 1

begins 'trains; until_asked'
cat >discover.sh <<'END'
#!/bin/sh
echo call >>calls
echo 127.0.0.1:1
[ $(($(wc -l <calls) % 2)) = 0 ] || echo 127.0.0.2:1
END
chmod +x discover.sh
"${job[@]}" --discover ./discover.sh >bg.out 2>bg.err &
supervisor=$!
has_starts() { [ "$(wc -l <starts)" -ge "$1" ]; }
ok "a list that changes all the time: hosts are changed" wait_for 60 has_starts 3
begin=$(wc -l <starts)
sleep 7
changes=$(($(wc -l <starts) - begin))
ok "but less and less often ($changes times in 7 s)" test $changes -le 2
kill -TERM $supervisor
wait $supervisor

# ---- a command that hangs --------------------------------------------------------------------------------------------
hangs() { # until the command has begun
	rm -f calls
	"${job[@]}" --discover 'echo call >>calls; echo 127.0.0.1:1; [ ! -e hang ] || sleep 1000' >bg.out 2>bg.err &
	supervisor=$!
}
touch hang
begins 'trains; until_asked'
hangs
ok "a command hangs before the first start" wait_for 30 test -s calls
sleep 0.5
began=$(date +%s%N)
kill -TERM $supervisor
wait $supervisor
took=$((($(date +%s%N) - began) / 1000000))
ok "a stop on request does not wait for it ($took ms)" test $took -lt 5000
rm hang
begins 'trains; if [ $start -gt 2 ]; then until_asked; fi; if [ $start = 1 ]; then sleep 2; touch hang; sleep 2; fi; killed 127.0.0.1'
hangs
ok "one that hangs when nodes are lost" wait_for 60 has_starts 2
second=$(date +%s%N)
ok "delays the first restart" wait_for 60 has_starts 3
took=$((($(date +%s%N) - second) / 1000000))
ok "and the next one no more ($took ms)" test $took -lt 8000
kill -TERM $supervisor
began=$(date +%s%N)
wait $supervisor
took=$((($(date +%s%N) - began) / 1000000))
ok "nor by a stop ($took ms)" test $took -lt 5000

test_end

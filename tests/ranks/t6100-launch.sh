#!/bin/bash
# Starting nodes: in order, with their devices, and whatever happens to them it ends soon, with one message.
# shellcheck disable=SC2317,SC2016 # functions are called by ok and wait_for; some words are for other shells
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"

program=$BUILD_DIR/tests/ranks/ranks_launch
run "$program" tell localhost
if grep -q 'no MPI' <<<"$out"; then
	like "a build without MPI says so" "$out" '^unsupported'
	test_end
fi
if ! command -v mpirun >/dev/null; then
	like "without mpirun the package is named" "$out" 'not-found .*no mpirun in PATH.*openmpi-bin'
	test_end
fi
export LSAN_OPTIONS=detect_leaks=0 # nodes are ended in the middle
unset HWLOC_COMPONENTS              # what is set stays

here=$(hostname)
last_line() { tail -n 1 <<<"$out"; }
in_seconds() { # MOST: since $begin
	[ $((SECONDS - begin)) -le "$1" ]
}
left_behind() { pgrep -f "^$program .*$marker"; }
none_left() { ! left_behind; }
marker=marker-$$

# ---- all well --------------------------------------------------------------------------------------------------------
export LOCKSTEP_WORD="two  words;"
run "$program" tell "localhost:3,$here:2,localhost:1" 30 "a  b"
is "three nodes: all well, nothing on stderr" "$status $(last_line)$err" "0 ok 0"
for pair in 0 1 2; do
	like "node $pair" "$out" "^node $pair of 3 on $here devices 3,2,1 word two  words; in $PWD last 'a  b'\$"
done
run "$program" tell "localhost,localhost"
like "without numbers of devices they have none" "$(sort <<<"$out" | head -n 1)" "^node 0 of 2 on $here devices none"
run env OMPI_MCA_orte_tag_output=1 "$program" tell "localhost,localhost"
like "Open MPI's own settings stay in force" "$out" '^\[[0-9]+,0\]<stdout>:node 0 of 2'
run env PATH=/nowhere "$program" tell "localhost,localhost"
like "no mpirun" "$out" '^not-found .*no mpirun in PATH.*openmpi-bin'
mkdir other
printf '#!/bin/sh\necho HYDRA build details:\n' >other/mpirun
chmod +x other/mpirun
run env PATH="$PWD/other" "$program" tell "localhost,localhost"
like "another mpirun" "$out" "^unsupported .*$PWD/other/mpirun is not Open MPI's \(it says 'HYDRA build details:'\)"

# More seconds than mpirun is given after a node has failed.
run "$program" chatty "localhost:1,localhost:1" 30 "$marker"
is "lines that only look like errors end nothing" "$(last_line) $(sort <<<"$err" | uniq -c | xargs)" \
	"ok 0 2 lockstep-foo: hello 2 lockstep: all is well"
run env OMPI_MCA_orte_tag_output=1 "$program" exit "localhost:1,localhost:1" 30 "$marker"
is "a failure is known behind Open MPI's tags, too" "$(last_line) $err" "ok 7 lockstep: I failed"

# ---- failures --------------------------------------------------------------------------------------------------------
begin=$SECONDS
run "$program" exit "localhost:1,localhost:1" 30 "$marker"
is "a node that fails: its status, and its words alone" "$(last_line) $err" "ok 7 lockstep: I failed"
ok "ends all of them soon" in_seconds 20
run "$program" alike "localhost:1,localhost:1" 30 "$marker"
is "an error of all nodes is printed once" "$(last_line) $(grep -c '^lockstep: what all say$' <<<"$err")" "ok 3 1"
begin=$SECONDS
run "$program" kill "localhost:1,localhost:1" 30 "$marker"
is "a node that is killed is named" "$(last_line)" "io 137: node 1 ($here) was ended by signal 9 (Killed)"
ok "ends all of them soon" in_seconds 20
unlike "mpirun's own banner is not seen" "$err" 'mpirun|----'
begin=$SECONDS
run "$program" silent "localhost:1,localhost:1" 2 "$marker"
like "nodes that do not come up" "$(last_line)" '^io [0-9]+: hosts: no answer of nodes on this host within 2 s'
ok "are not waited for" in_seconds 25
ok "no node is left behind" wait_for 15 none_left

run "$program" tell "localhost:1,no-such-host.invalid:1"
like "a host without an address" "$(last_line)" '^io [0-9]+: hosts: cannot reach no-such-host\.invalid: .*(known|resolution|address)'
is "is one message" "$(wc -l <<<"$out") $err" "1 "

# What mpirun reaches other hosts with fails in silence, or is not there. Nobody has waited.
export OMPI_MCA_plm_rsh_agent=false
run "$program" tell "localhost:1,127.0.0.2:1"
like "an agent that fails is named" "$(last_line)" "^io [0-9]+: hosts: cannot start nodes on .*'false' failed and did not say why"
unlike "and nobody has waited for an answer" "$out$err" 'within'
export OMPI_MCA_plm_rsh_agent=/no/such/agent
run "$program" tell "localhost:1,127.0.0.2:1"
is "an agent that is not there is named" "$(last_line)" \
	"io 1: hosts: there is no '/no/such/agent' to reach other hosts with: correct or unset OMPI_MCA_plm_rsh_agent"
is "in one message" "$(wc -l <<<"$out") $err" "1 "
unset OMPI_MCA_plm_rsh_agent

# ---- an mpirun that leaves things unsaid -----------------------------------------------------------------------------
mkdir fake
fake() { # SHELL-COMMANDS...: what stands for mpirun does these
	printf '#!/bin/sh\n[ "$1" != --version ] || { echo "mpirun (Open MPI) 4"; exit 0; }\n' >fake/mpirun.openmpi
	printf '%s\n' "$@" >>fake/mpirun.openmpi
	chmod +x fake/mpirun.openmpi
	begin=$SECONDS
	run env PATH="$PWD/fake:$PATH" "$program" tell "b:1,c:1" 30
}
up="echo 'lockstep: node is up' >&2"
words='lockstep train: node 1 (c) has not responded for 30 s'
note='[b:1] [[24986,0],0] ACTIVATE PROC [[24986,1],1] STATE'
mark='lockstep: node fails: ' # src/cluster/output.h
fake "$up" "$up" "echo '$mark$words' >&2" 'exit 1'
is "a node has said why: mpirun need not" "$(last_line) $err" "ok 1 $words"
fake "$up" "$up" 'exit 137'
is "a status that a signal leaves" "$(last_line)$err" "io 137: a node was ended by signal 9 (Killed)"
fake "$up" "$up" "echo '$note ABORTED BY SIGNAL AT x.c:1' >&2" 'exit 137'
is "and which node it was" "$(last_line)$err" "io 137: node 1 (c) was ended by signal 9 (Killed)"
fake "$up" "$up" "echo '$note CALLED ABORT AT x.c:1' >&2" 'exit 1'
is "a node that aborts in silence" "$(last_line)$err" \
	"io 1: node 1 (c) ended with status 1 and did not say why (mpirun reports: CALLED ABORT)"
fake "$up" "$up" "kill -9 \$\$"
is "mpirun itself is killed" "$(last_line)$err" "io 137: mpirun was ended by signal 9 (Killed)"
fake "$up" "$up" 'exit 3'
is "nobody says anything" "$(last_line)$err" "io 3: mpirun ended with status 3, and neither it nor a node said why"
fake "$up" "$up" "echo '$mark$words' >&2" "trap 'echo noise >&2' TERM" 'while :; do sleep 1; done'
is "mpirun waits for ever for a host that is cut off: the node's words alone" "$(last_line) $err" "ok 1 $words"
ok "and it is ended in seconds" in_seconds 25

# ---- stopping --------------------------------------------------------------------------------------------------------
start() { # PART: in the background, until the nodes are there
	rm -f asked-to-stop node-*-is-up # by nodes, see ranks_launch.c
	"$program" "$1" "localhost:1,localhost:1" 30 "$marker" >bg.out 2>bg.err &
	pid=$!
	wait_for 30 both_up && wait_for 10 both_there
}
both_up() { [ -e node-0-is-up ] && [ -e node-1-is-up ]; }
both_there() { [ "$(left_behind | wc -l)" = 3 ]; } # and the launcher
is_over() { ! kill -0 "$pid" 2>/dev/null; }

ok "nodes that wait" start wait
kill -TERM "$pid"
ok "end when asked to" wait_for 20 is_over
wait "$pid"
is "all of them, in their own time" "$(sort bg.out | paste -sd ' ') $(cat bg.err)" \
	"interrupted 0: stopped on request node 0 stopped node 1 stopped "

# An mpirun that a request by signal would not get through to: libraries may replace its handlers, as LLVM does where
# hwloc loads it for OpenCL. Nor do they get loaded: hwloc is asked to do without.
mkdir numb
real=$(command -v mpirun.openmpi || command -v mpirun)
cat >numb/mpirun.openmpi <<EOF
#!/bin/sh
[ "\$1" != --version ] || exec "$real" --version
echo "\$HWLOC_COMPONENTS \$*" >"$PWD/numb/started"
trap '' USR1 USR2 HUP INT
exec 3<&0 # what follows & would get none
"$real" "\$@" <&3 3<&- &
trap 'kill -TERM \$!' TERM
wait \$! || wait \$!
EOF
chmod +x numb/mpirun.openmpi
whole_path=$PATH
PATH=$PWD/numb:$PATH
ok "nodes of an mpirun that hears no signal" start wait
like "which is started without hwloc's OpenCL, its daemons, too" "$(cat numb/started)" \
	'^-opencl,-gl .*--mca orte_launch_agent env HWLOC_COMPONENTS=-opencl,-gl orted '
kill -TERM "$pid"
ok "end when asked to" wait_for 20 is_over
wait "$pid"
is "all of these, too" "$(sort bg.out | paste -sd ' ') $(cat bg.err)" \
	"interrupted 0: stopped on request node 0 stopped node 1 stopped "
"$LOCKSTEP" train --hosts localhost:1,localhost:1 --model mlp --data glyphs --samples 330 --test-samples 50 --batch 64 \
	--micro-batch 8 --epochs 100000 --run run >bg.out 2>bg.err &
pid=$!
ok "training under it" wait_for 60 grep -q '^Epoch ' bg.out
kill -TERM "$pid"
ok "stops when asked to" wait_for 30 is_over
wait "$pid"
is "with the status of the signal" $? 143
like "and a checkpoint" "$(grep lockstep bg.err)" \
	'^lockstep train: stopped after step [0-9]+ of [0-9]+; continue with --run run --resume$'
PATH=$whole_path

ok "nodes that are deaf" start deaf
kill -TERM "$pid"
sleep 1
ok "do not end when asked to" both_there
kill -TERM "$pid"
ok "end when asked twice" wait_for 30 is_over
wait "$pid"
like "and it is told" "$(tail -n 1 bg.out)" '^interrupted [0-9]+: stopped on request'
ok "none is left behind" wait_for 15 none_left

ok "nodes whose launcher is killed" start wait
kill -9 "$pid"
wait "$pid" 2>/dev/null
ok "are not left behind" wait_for 20 none_left

test_end

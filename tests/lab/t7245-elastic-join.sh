#!/bin/bash
# --elastic with hosts that join and are not fit to: the run goes on without them. And with a disk that is full: it
# ends, at once.
# shellcheck disable=SC2317 # functions are called by ok and wait_for
# shellcheck source=tests/lab/lib.sh
. "$(dirname "$0")/lib.sh"

lab_up 3 --rate 1gbit
mkdir here there
"$LOCKSTEP" data make glyphs --samples 330 --out here/set --quiet
"$LOCKSTEP" data make glyphs --samples 330 --seed 5 --out there/set --quiet
job=(--model mlp --data here/set --batch 64 --micro-batch 8 --schedule constant --eval-every 0 --ckpt-every 50 --log-every 1 --timeout 4
	--threads 1)
run "$LOCKSTEP" train "${job[@]}" --devices 1 --steps 1500
whole=$(fingerprint "$out")
like "a run that nothing happens to" "$status $whole" '^0 [0-9a-f]{16}$'

# mpirun starts its daemons through this: on host c, $HIDDEN is covered by $COVER.
cat >agent <<'END'
#!/bin/bash
daemon=(env HWLOC_COMPONENTS=-opencl,-gl orted "$@")
read -r hidden cover <"${0%/*}/covers"
[ "$(hostname)" = c ] || exec "${daemon[@]}"
exec unshare -m sh -c 'mount --bind "$1" "$2" && shift 2 && exec "$@"' sh "$cover" "$hidden" "${daemon[@]}"
END
chmod +x agent

begin() { # RUN OPTION...: in the background, until it has a checkpoint
	name=$1
	shift
	printf 'a:1\nb:1\n' >hosts
	: >bg.out
	OMPI_MCA_orte_launch_agent=$PWD/agent "$lab" run "$LOCKSTEP" train --elastic --hosts @hosts "${job[@]}" --steps 1500 --run "$name" "$@" \
		>bg.out 2>bg.err &
	job_id=$!
	ok "$name: a checkpoint is written" wait_for 40 has_checkpoint "$name"
}
said() { grep -qE "^Elastic: $1" bg.out; }
goes_on_without_c() { # REASON
	echo c:1 >>hosts
	ok "$name: the new host is tried" wait_for 40 said 'continuing on 3 nodes: a:1,b:1,c:1$'
	ok "$name: the others go on without it" wait_for 40 said 'continuing on 2 nodes: a:1,b:1$'
	like "$name: with the reason" "$(cat bg.out)" "^Elastic: $1"
	like "$name: and for a while" "$(cat bg.out)" '^Elastic: host c could not train with the others; excluded for 60 s$'
	wait_bounded $job_id
	is "$name: ends with the same bits" "$? $(fingerprint "$(cat bg.out)" | tail -n 1)" "0 $whole"
	is "$name: no error was printed" "$(grep ^lockstep bg.err)" ""
	ok "$name: nothing is left on any host" wait_for 30 lab_is_empty
}

echo "$LOCKSTEP /dev/null" >covers
begin program
goes_on_without_c 'host c cannot run .*: Lockstep must be installed'
echo "$PWD/here/set $PWD/there/set" >covers
begin data
goes_on_without_c 'the training sets of node 0 \(a\) and node 2 \(c\) have different samples'

# ---- the disk --------------------------------------------------------------------------------------------------------
# A limit on the size of files stands for a full disk. MPI has files of its own, so it comes once nodes train.
echo "/dev/null /dev/null" >covers
begin full
begin_errors
prlimit --pid "$(node_on a)" --fsize=8192
wait_bounded $job_id
is "full: a full disk ends the run" "$?" 1
like "full: with the first node's reason" "$(errors)" '^lockstep train: node 0 \(a\): .*full.*File too large'
is "full: there was one start" "$(grep -cE '^Elastic: (starting|continuing)' bg.out)" 1
ok "full: nothing is left on any host" wait_for 30 lab_is_empty
run timeout 90 "$lab" run "$LOCKSTEP" train --elastic --hosts a:1,b:1 --run full --resume --steps 1500
is "full: --resume goes on to the same bits when there is room" "$status $(fingerprint "$out" | tail -n 1)" "0 $whole"

test_end

#!/bin/bash
# Nodes that are not about to do the same job are refused at the start; a node that goes wrong on the way is named.
# shellcheck disable=SC2317,SC2016 # functions are called by ok and wait_for; some words are for shells on the hosts
# shellcheck source=tests/lab/lib.sh
. "$(dirname "$0")/lib.sh"

lab_up 3 --rate 1gbit
job=(--devices 1 --model mlp --steps 4 --batch 32 --micro-batch 8)
glyphs=(--data glyphs --samples 200 --test-samples 50)

# Parts of a command for mpirun, each with words of its own: "on HOST WORD..." separated by "--".
mpirun_on() { # PART... [-- PART...]...: $status, $out, $err; $message is what Lockstep says
	local words=(mpirun) word
	[ "$(id -u)" != 0 ] || words+=(--allow-run-as-root)
	words+=(--oversubscribe --bind-to none --mca odls_base_sigkill_timeout 0 -np 1 -host "$1")
	shift
	while [ $# -gt 0 ]; do
		word=$1
		shift
		if [ "$word" = -- ]; then
			words+=(: -np 1 -host "$1")
			shift
		else
			words+=("$word")
		fi
	done
	run timeout 40 "$lab" run "${words[@]}"
	message=$(grep ^lockstep <<<"$err")
}
refused() { # NAME PATTERN: by the last mpirun_on; one message, before anything is trained
	is "$1: refused" "$((status != 0)) $(grep -c ^lockstep <<<"$err")" "1 1"
	like "$1: says what and who" "$message" "^lockstep train: $2"
	unlike "$1: before training" "$out" '^(Epoch|Step|parameters)'
}
A='node 0 \(a\)' B='node 1 \(b\)'

# ---- differences -----------------------------------------------------------------------------------------------------
mkdir here there
"$LOCKSTEP" data make glyphs --samples 200 --out here/set --quiet
"$LOCKSTEP" data make glyphs --samples 200 --seed 5 --out there/set --quiet
mpirun_on a -wdir "$PWD/here" "$LOCKSTEP" train "${job[@]}" --data set -- b -wdir "$PWD/there" "$LOCKSTEP" train "${job[@]}" --data set
refused "other samples" "the training sets of $A and $B have different samples"

train_here=("$LOCKSTEP" train "${job[@]}" "${glyphs[@]}")
mpirun_on a "${train_here[@]}" -- b "${train_here[@]}" --lr 0.5
refused "another learning rate" "nodes were started with different settings: --lr is .* on $A and 0\.5 on $B"
mpirun_on a "${train_here[@]}" -- b "${train_here[@]}" -- c "${train_here[@]}" --wire bf16
refused "another wire, on the third node" "nodes were started with different settings: --wire is fp32 on $A and bf16 on node 2 \(c\)"

# Another version, made from this one: the library with another number in it.
version=$("$LOCKSTEP" --version | awk '{ print $2 }')
library=$(ldd "$LOCKSTEP" | awk '/liblockstep\.so/ { print $3 }')
if [ -f "$library" ]; then
	mkdir other
	VERSION=$version perl -pe 's/\b\Q$ENV{VERSION}\E\b/$& =~ tr,0-9,9,r/eg' "$library" >"other/$(basename "$library")"
	mpirun_on a "${train_here[@]}" -- b env LD_LIBRARY_PATH="$PWD/other" "${train_here[@]}"
	refused "another version" "$A runs Lockstep $version and $B runs [9.]+: install the same on all nodes"
else
	skip "another version" "the library is not a shared one here"
fi
mpirun_on a "${train_here[@]}" -- b "${train_here[@]}"
is "without a difference they train" "$status" 0

# ---- the disk --------------------------------------------------------------------------------------------------------
echo "a file" >file
train_on a:1,b:1,c:1 "${job[@]:2}" "${glyphs[@]}" --run file/run # the hosts say how many devices
is "a run directory that cannot be made" "$status $err" "1 lockstep train: node 0 (a): cannot make directory file/run: file is not a directory"
# A limit on the size of files stands for a full disk. MPI has files of its own, so it comes once nodes train.
"$lab" run "$LOCKSTEP" train --hosts a:1,b:1,c:1 "${glyphs[@]}" --model mlp --batch 32 --micro-batch 8 --epochs 100000 \
	--ckpt-every 200 --run full --timeout 20 >bg.out 2>bg.err &
job_id=$!
ok "a run begins" wait_for 60 grep -q '^Epoch 1' bg.out
begin_errors
prlimit --pid "$(node_on a)" --fsize=8192
begin=$SECONDS
wait_bounded $job_id
is "a full disk ends it" "$?" 1
like "with the first node's reason" "$(errors)" '^lockstep train: node 0 \(a\): .*full.*File too large'
is "and no other" "$(errors | sed 1d)" ""
ok "in seconds" test $((SECONDS - begin)) -le 20
ok "nothing is left" wait_for 15 lab_is_empty

test_end

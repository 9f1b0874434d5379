#!/bin/bash
# A run directory in bad shape: nothing in it is lost, and what can go on does.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

listing() { # RUN: every file with its contents
	(cd "$1" && find . -type f ! -name .lock -exec sha256sum {} + | sort -k 2)
}
run small_train --steps 20
whole=$(fingerprint "$out")
run small_train --steps 10 --run runs/good --ckpt-every 5
is "a run with two checkpoints" "$(cd runs/good/ckpt && echo *)" "step-000000005 step-000000010"

# Checkpoints that cannot be read: refused, and nothing changes.
unreadable() { # NAME COMMAND: applied to every checkpoint directory
	local name=$1 why=$2 directory before
	shift 2
	rm -rf runs/bad
	cp -r runs/good runs/bad
	for directory in runs/bad/ckpt/step-*; do
		"$@" "$directory"
	done
	before=$(listing runs/bad)
	fails_with "$name: refused" 1 "$why.*nothing was changed" \
		small_train --steps 20 --run runs/bad --resume
	is "$name: nothing was changed" "$(listing runs/bad)" "$before"
}
damage() { printf 'x' | dd of="$1/model.safetensors" bs=1 seek=5000 conv=notrunc 2>/dev/null; }
newer() { sed -i 's/"format": 1/"format": 2/' "$1/state.json"; }
lose_state() { rm "$1/state.json"; }
lose_all() { rm "$1"/*; }
none="no checkpoint in runs/bad/ckpt can be used \(2 found\)"
unreadable "damaged checkpoints" "$none" damage
unreadable "checkpoints of a later format" "step-000000010 cannot be read.*format 2 is of a later version" newer
unreadable "checkpoints without state" "$none" lose_state
unreadable "empty checkpoint directories" "$none" lose_all

# A newest checkpoint that may be whole, could it be read, is neither gone back behind nor deleted.
newest_only() { # NAME REASON COMMAND: applied to the newest checkpoint
	local name=$1 why=$2 before
	shift 2
	rm -rf runs/puzzle
	cp -r runs/good runs/puzzle
	"$@" runs/puzzle/ckpt/step-000000010
	before=$(listing runs/puzzle)
	fails_with "$name: refused" 1 "step-000000010 cannot be read: .*$why.*move the checkpoint" \
		small_train --steps 20 --run runs/puzzle --resume
	fails_with "$name: not evaluated either" 1 "step-000000010 cannot be read" "$LOCKSTEP" eval runs/puzzle
	is "$name: nothing was changed" "$(listing runs/puzzle)" "$before"
}
cannot_open() { ln -sf model.safetensors "$1/model.safetensors"; } # a link to itself: not even for root
newest_only "a newest checkpoint of a later format" "later version.*use the version that wrote it" newer
newest_only "a newest checkpoint that cannot be read" "model.safetensors.*make it readable" cannot_open
run "$LOCKSTEP" eval runs/puzzle/ckpt/step-000000005
is "the one before can be named" "$status" 0
rm -rf runs/puzzle
cp -r runs/good runs/puzzle
damage runs/puzzle/ckpt/step-000000010
before=$(cd runs/puzzle/ckpt/step-000000010 && sha256sum ./*)
run small_train --steps 20 --run runs/puzzle --resume --ckpt-every 5
is "damage is gone back behind" "$(fingerprint "$out")" "$whole"
is "and what was damaged is kept" "$(cd runs/puzzle/ckpt/step-000000010.aside && sha256sum ./*)" "$before"
like "which is said" "$err" "step-000000010 is kept as .*step-000000010.aside"
cp -r runs/good runs/ahead
sed -i 's/"format": 1/"format": 2/' runs/ahead/run.json
before=$(listing runs/ahead)
fails_with "a run.json of a later version" 1 "run.json: format 2 is of a later version" \
	small_train --steps 20 --run runs/ahead --resume
is "is left as it was" "$(listing runs/ahead)" "$before"

# A run whose run.json is gone or damaged.
cp -r runs/good runs/nameless
rm runs/nameless/run.json
before=$(listing runs/nameless)
fails_with "a fresh run does not write over checkpoints" 2 "already holds a run" small_train --steps 3 --run runs/nameless
like "and says how to go on" "$err" "continue it with --resume, or choose another directory"
is "and changes nothing" "$(listing runs/nameless)" "$before"
run small_train --steps 20 --run runs/nameless --resume
is "without run.json a run goes on" "$(fingerprint "$out")" "$whole"
ok "and run.json is there again" json runs/nameless/run.json 'o["settings"]["model"] == "mlp"'
cp -r runs/good runs/garbled
echo '{"lockstep": ' >runs/garbled/run.json
run small_train --steps 20 --run runs/garbled --resume
is "with a damaged run.json, too" "$(fingerprint "$out")" "$whole"
like "with a warning" "$err" "warning: .*run.json is damaged"
ok "and run.json is whole again" json runs/garbled/run.json 'o["settings"]["model"] == "mlp"'
rm -r runs/garbled/ckpt
echo '{"lockstep": ' >runs/garbled/run.json
fails_with "but with no checkpoint either it cannot" 1 "run.json is damaged.*no checkpoint" \
	small_train --steps 20 --run runs/garbled --resume
mkdir runs/nothing
fails_with "nothing to resume" 1 "holds no run" small_train --steps 20 --run runs/nothing --resume

# A run that was killed before its first checkpoint: the same start, the same end.
init=runs/good/ckpt/step-000000010/model.safetensors
run small_train --steps 8 --init $init
from_weights=$(fingerprint "$out")
run small_train --steps 8 --init $init --run runs/early
rm -r runs/early/ckpt
fails_with "other settings are refused before the first checkpoint, too" 1 "--lr was 0.001, now 0.5" \
	small_train --steps 8 --run runs/early --resume --lr 0.5
run small_train --steps 8 --run runs/early --resume
is "a resume starts from the weights of --init again" "$(fingerprint "$out")" "$from_weights"
rm -r runs/early/ckpt
run small_train --steps 8 --run runs/early --resume
is "and once more" "$(fingerprint "$out")" "$from_weights"

# Two trainers in one directory.
"$LOCKSTEP" train --model mlp --data glyphs --samples 1000 --batch 64 --micro-batch 64 --devices 1 --schedule constant --steps 10000000 --run runs/held \
	--eval-every 0 >held.out 2>held.err &
pid=$!
ok "a trainer holds a directory" wait_for 60 test -e runs/held/run.json
fails_with "a second trainer that resumes is refused" 1 "runs/held is in use by another lockstep \(process $pid\)" \
	small_train --steps 10000000 --run runs/held --resume
kill -KILL "$pid"
wait "$pid" 2>/dev/null
run small_train --steps 1 --run runs/held --resume
is "after a kill the directory is free" "$status" 0
mkdir runs/starting
exec 9>runs/starting/.lock
flock 9
fails_with "a second fresh trainer is refused" 1 "runs/starting is in use" small_train --steps 1 --run runs/starting
exec 9>&-
run small_train --steps 1 --run runs/starting
is "and welcome when the first is gone" "$status" 0

# A run that is refused leaves nothing.
fails_with "weights that are not there" 1 "nowhere.safetensors" \
	small_train --steps 1 --init nowhere.safetensors --run runs/refused
ok "leave no directory behind" test ! -e runs/refused
mkdir runs/refused
echo "mine" >runs/refused/note
fails_with "nor" 1 "nowhere.safetensors" small_train --steps 1 --init nowhere.safetensors --run runs/refused
is "a lock in one that was there" "$(ls -A runs/refused)" note

# What computed it is recorded, and may change (t0322-instruction-sets.sh).
export LOCKSTEP_ISA=generic LOCKSTEP_KERNELS=portable
run small_train --steps 5 --run runs/portable
ok "a checkpoint says what computed it" json runs/portable/ckpt/step-000000005/state.json \
	'(o["isa"], o["kernels"]) == ("generic", "portable")'
unset LOCKSTEP_ISA LOCKSTEP_KERNELS
run "$LOCKSTEP" eval runs/portable --samples 100
is "an evaluation takes either" "$status" 0

# A place for checkpoints that cannot be used is found before the first step.
mkdir runs/blocked
echo "a file" >runs/blocked/ckpt
fails_with "a file in the place of checkpoints" 1 "runs/blocked/ckpt" small_train --log-every 1 --run runs/blocked
is "no step was done" "$out" ""
mkdir -p runs/closed/ckpt
chmod 555 runs/closed/ckpt
bound=() # root may write anywhere, unless that is taken from it
[ "$(id -u)" != 0 ] || bound=(setpriv "--bounding-set=-dac_override,-dac_read_search")
if "${bound[@]}" true 2>/dev/null && ! "${bound[@]}" touch runs/closed/ckpt/probe 2>/dev/null; then
	fails_with "checkpoints that cannot be written" 1 "runs/closed/ckpt" "${bound[@]}" "$LOCKSTEP" train --model mlp \
		--data glyphs --samples 1000 --test-samples 200 --batch 64 --micro-batch 64 --devices 1 --log-every 1 --run runs/closed
	is "no step was done there either" "$out" ""
else
	skip "checkpoints that cannot be written" "root may write anywhere, and setpriv does not change that here"
fi
chmod 755 runs/closed/ckpt

test_end

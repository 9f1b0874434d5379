#!/bin/bash
# Checkpoints are written beside training: none is left out, a slow disk stops nobody, a full one ends the run, and
# kill -9 at any moment leaves a whole one.
# shellcheck disable=SC2317 # functions are called by ok and wait_for
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

job=(--model mlp --data glyphs --samples 1000 --test-samples 100 --batch 64 --micro-batch 64 --devices 1 --schedule constant --eval-every 0)
train() { "$LOCKSTEP" train "${job[@]}" "$@"; }

# ---- every one that was asked for ------------------------------------------------------------------------------------
run train --steps 20
whole=$(fingerprint "$out")
run train --steps 20 --run every --ckpt-every 1 --keep 100
is "a run with a checkpoint after every step: the same bits" "$status $(fingerprint "$out")" "0 $whole"
is "all of them are there" "$(find every/ckpt -name 'step-?????????' | wc -l) $(ls -A every/ckpt | wc -l)" "20 20"
ok "each with the fingerprint that was recorded" python3 - <<'END'
import json
records = [json.loads(line) for line in open("every/metrics.jsonl")]
saved = {r["step"]: r["fingerprint"] for r in records if r["kind"] == "checkpoint"}
assert sorted(saved) == list(range(1, 21)), saved
for step, fingerprint in saved.items():
    state = json.load(open(f"every/ckpt/step-{step:09d}/state.json"))
    assert state["fingerprint"] == fingerprint and state["progress"]["step"] == step, step
assert len(set(saved.values())) == 20
assert all(r["stall_s"] >= 0 for r in records if r["kind"] == "checkpoint")
END
run train --steps 12 --run half --ckpt-every 5
run train --steps 20 --run half --resume --ckpt-every 5
is "stopped between two and resumed: the same bits" "$status $(fingerprint "$out")" "0 $whole"

# ---- a slow disk -----------------------------------------------------------------------------------------------------
if [ -z "${SANITIZER:-}" ] && command -v cc >/dev/null; then
	cat >slow.c <<'END'
#include <sys/syscall.h>
#include <unistd.h>
int fsync(int fd)
{
	usleep(150000);
	return (int)syscall(SYS_fsync, fd);
}
END
	ok "a slow disk" cc -shared -fPIC -o slow.so slow.c
	run env LD_PRELOAD="$PWD/slow.so" "$LOCKSTEP" train "${job[@]}" --steps 60 --run slow --ckpt-every 20 --keep 9 --log-every 1
	is "slow disk: all checkpoints" "$status $(cd slow/ckpt && echo *)" "0 step-000000020 step-000000040 step-000000060"
	ok "slow disk: steps go on while the first is written" python3 - <<'END'
import json
records = [json.loads(line) for line in open("slow/metrics.jsonl")]
first = next(i for i, r in enumerate(records) if r["kind"] == "checkpoint")
assert records[first]["step"] == 20, records[first]
assert records[first]["stall_s"] < 1, records[first]
assert max(r["step"] for r in records[:first]) > 20, records[first - 1]
END
else
	skip "a slow disk" "a sanitizer, or no compiler"
fi

# ---- a full disk: a limit on the size of files stands for it ---------------------------------------------------------
run train --steps 5 --run full
run bash -c 'ulimit -f 8; "$@"' - "$LOCKSTEP" train "${job[@]}" --steps 1000000 --run full --resume --ckpt-every 10
is "a checkpoint that cannot be written ends the run" "$status" 1
like "and the message says which, what is left, the file and why" "$err" \
	'the checkpoint of step 10 was not saved \(earlier ones are untouched\): .*/ckpt/\.step-000000010\.tmp/.*: File too large'
is "the one before is the newest, and nothing else is left" "$(ls -A full/ckpt)" "step-000000005"
run train --steps 20 --run full --resume
is "with room again the run goes on to the same bits" "$status $(fingerprint "$out")" "0 $whole"

# ---- kill -9 at random moments ---------------------------------------------------------------------------------------
seed=${TEST_SEED:-$RANDOM} rounds=6 every=3
echo "# TEST_SEED=$seed"
RANDOM=$seed
newest() { find "$1/ckpt" -maxdepth 1 -name 'step-?????????' 2>/dev/null | sort | tail -n 1 | sed -E 's/.*step-0*//'; }
records() { # KIND: the last step of that kind that was recorded
	sed -nE 's/^\{"kind": "'"$1"'", "step": ([0-9]+),.*/\1/p' killed/metrics.jsonl | tail -n 1
}
before=0 last=0
for ((i = 1; i <= rounds; i++)); do
	resume=()
	[ "$i" = 1 ] || resume=(--resume)
	"$LOCKSTEP" train "${job[@]}" --steps 1000000 --run killed "${resume[@]}" --ckpt-every $every --log-every 1 >bg.out 2>bg.err &
	pid=$!
	wait_for 60 grep -q '^Step' bg.out
	sleep "0.$(printf %03d $((RANDOM % 300)))"
	kill -9 "$pid"
	wait "$pid" 2>/dev/null
	at=$(newest killed) at=${at:-0} did=$(records step)
	# the one before the last that was due is on disk when the last is begun
	ok "kill $i: a checkpoint of step $at, $did were done" test $((at >= before && at % every == 0 && at > did - 2 * every - 1)) = 1
	before=$at last=$((at + 7))
	run "$LOCKSTEP" eval killed --samples 10
	[ "$at" = 0 ] || is "kill $i: it is whole" "$status" 0
done
run train --steps "$last" --run killed --resume
resumed=$(fingerprint "$out")
run train --steps "$last"
like "after $rounds kills" "$resumed" '^[0-9a-f]{16}$'
is "the bits of a run never killed" "$resumed" "$(fingerprint "$out")"
is "and nothing half written is left" "$(find killed/ckpt -mindepth 1 -maxdepth 1 ! -name 'step-*')" ""

test_end

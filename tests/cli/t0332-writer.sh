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
run timeout 200 "$SOURCE_DIR/tools/kill-all" --one-process --kills 12 --chain 4 --seed "${TEST_SEED:-$RANDOM}" --lockstep "$LOCKSTEP"
is "kills with and without snapshots in memory: whole checkpoints, none too old, the bits of a run never killed" \
	"$status $(grep -cE '^12 of 12 kills, 3 runs, [1-9][0-9]* checkpoints compared, 0 failures, seed [0-9]+$' <<<"$out")" "0 1"
[ "$status" = 0 ] || test_note "$out" "$err"
run python3 - "$SOURCE_DIR/tools/kill-all" <<'END'
import importlib.machinery, importlib.util, sys
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("kill_all", sys.argv[1])
tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("kill_all", loader))
loader.exec_module(tool)
def due(at, before, reached):
    chain = tool.Chain.__new__(tool.Chain)
    chain.every, chain.at, chain.before, chain.reached = 10, at, before, reached
    return chain.due()
# that of step 30 is begun when step 31 is done, and then that of step 20 is on disk
print(due(0, 0, 5), due(0, 0, 11), due(0, 0, 30), due(0, 0, 31), due(20, 20, 45))
# from memory at 33 with 20 on disk: 34 makes up for 30
print(due(33, 20, 40), due(33, 20, 41), due(33, 30, 41), due(33, 30, 51))
END
is "what must be on disk at least" "$status $out" "0 0 0 10 20 30
20 34 30 40"

test_end

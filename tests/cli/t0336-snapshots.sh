#!/bin/bash
# Snapshots in memory: a run that is killed goes on from them to the same bits; where there is no memory for them, or something
# else is in their place, checkpoints on disk are used, and a line says so. Nothing is left in /dev/shm.
# shellcheck disable=SC2317 # functions are called by ok and wait_for
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

if [ ! -w /dev/shm ]; then
	echo "1..0 # SKIP there is no /dev/shm"
	exit 0
fi
job=(--model mlp --data glyphs --samples 1000 --batch 64 --micro-batch 64 --devices 1 --schedule constant --eval-every 0)
train() { "$LOCKSTEP" train "${job[@]}" "$@"; }
number() { cut -d ' ' -f 1 "$1/.snapshots"; }
files() { find /dev/shm -maxdepth 1 -name "lockstep-$(id -u)-$1-*"; } # NUMBER
recorded() { # RUN: the last step in its metrics
	sed -nE 's/^\{"kind": "step", "step": ([0-9]+),.*/\1/p' "$1/metrics.jsonl" | tail -n 1
}
has_done() { [ "$(recorded "$1")" -ge "$2" ]; } # RUN STEP
kill_after() { # RUN STEP OPTION...: kill -9 of a run that has done so many steps
	local name=$1 step=$2 pid
	shift 2
	"$LOCKSTEP" train "${job[@]}" --steps 1000000 --run "$name" --log-every 1 "$@" >bg.out 2>bg.err &
	pid=$!
	ok "$name: trains" wait_for 60 has_done "$name" "$step"
	kill -9 "$pid"
	wait "$pid" 2>/dev/null
}

# ---- kill -9, and on -------------------------------------------------------------------------------------------------
kill_after run 20 --snapshot-every 3 --ckpt-every 1000000
id=$(number run)
is "a snapshot is left, which nobody else can read" "$(files "$id" | xargs stat -c %a)" 600
done=$(recorded run)
run train --steps $((done + 20)) --run run --resume --ckpt-every 1000000
like "--resume goes on from it" "$err" '^resuming run at step [0-9]+, from snapshots in memory$'
from=$(sed -nE 's/^resuming run at step ([0-9]+),.*/\1/p' <<<"$err")
ok "at most 3 steps are computed again (from $from, $done done)" test $((from % 3 == 0 && from >= done - 3)) = 1
resumed=$(fingerprint "$out")
is "nothing is left in memory" "$(files "$id")" ""
ok "nor in the run directory" test ! -e run/.snapshots
ok "every step is recorded once" json run/metrics.jsonl \
	"[l['step'] for l in o if l['kind'] == 'step'] == list(range(1, $done + 21))"
run train --steps $((done + 20))
is "and the bits are those of a run never killed" "$resumed" "$(fingerprint "$out")"

# ---- which is newer --------------------------------------------------------------------------------------------------
kill_after disk 30 --snapshot-every 1000000 --ckpt-every 5
run train --steps 60 --run disk --resume
unlike "without a snapshot, from the checkpoint" "$err" 'in memory'
kill_after both 30 --snapshot-every 20 --ckpt-every 1000000
id=$(number both)
run train --steps $(($(recorded both) + 1)) --run both --resume --ckpt-every 1
like "a snapshot that is newer" "$err" 'at step [0-9]+, from snapshots in memory'
# Killed before a checkpoint was on disk that was due, a run that goes on from memory makes up for it behind its next step.
missed() { # RUN EVERY STEPS OPTION...: the checkpoints that a start writes behind a kill that one was lost in
	local name=$1 every=$2 steps=$3
	shift 3
	kill_after "$name" "$steps" --snapshot-every 1 "$@"
	rm -r "$(find "$name/ckpt" -mindepth 1 -maxdepth 1 ! -name '.*' | sort | tail -n 1)"
	local last
	last=$(recorded "$name")
	run train --steps $((last + 2 * every)) --run "$name" --resume --keep 100 "$@"
	from=$(sed -nE 's/^resuming .* at step ([0-9]+), from snapshots in memory$/\1/p' <<<"$err")
	first=$(python3 - "$name" "${from:-0}" <<'END'
import json, sys
print(min(l["step"] for l in map(json.loads, open(sys.argv[1] + "/metrics.jsonl")) if l["kind"] == "checkpoint" and l["step"] > int(sys.argv[2])))
END
	)
}
missed overdue 50 120 --ckpt-every 50
is "a checkpoint that was missed comes behind the first step" "$first" $((from + 1))
is "and the next when it is due" "$(find overdue/ckpt -name "step-*$(((from / 50 + 1) * 50))" | wc -l)" 1
missed epochs 16 40
is "that of an epoch, too" "$first" $((from + 1))

kill_after damaged 30 --snapshot-every 20 --ckpt-every 25
id=$(number damaged)
for file in $(files "$id"); do
	python3 - "$file" <<'END'
import sys
with open(sys.argv[1], "r+b") as f:
    data = bytearray(f.read())
    for i in range(4096 + 4096, len(data), 512):
        data[i] ^= 1
    f.seek(0)
    f.write(data)
END
done
run train --steps 60 --run damaged --resume
unlike "one that is damaged is not used" "$err" 'in memory'
damaged=$(fingerprint "$out")
run train --steps 60
is "damaged: the same bits" "$damaged" "$(fingerprint "$out")"
is "damaged: nothing is left in memory" "$(files "$id")" ""

# ---- ends that leave nothing -----------------------------------------------------------------------------------------
"$LOCKSTEP" train "${job[@]}" --steps 1000000 --run stopped --log-every 1 --snapshot-every 2 >bg.out 2>bg.err &
pid=$!
ok "stopped: trains" wait_for 60 has_done stopped 10
id=$(number stopped)
kill -TERM "$pid"
wait "$pid"
is "stopped on request: nothing is left in memory" "$(files "$id")" ""
kill_after gone 10 --snapshot-every 2
id=$(number gone)
rm -r gone
run train --steps 5 --run next --snapshot-every 2
is "the next start removes what a run has left whose directory is gone" "$status $(files "$id")" "0 "

# ---- memory that is not there ----------------------------------------------------------------------------------------
fails_with "a number that is none" 2 "--snapshot-every" "$LOCKSTEP" train "${job[@]}" --steps 5 --run bad --snapshot-every x
run train --steps 5 --snapshot-every 2
like "without a run directory there is nothing to keep" "$err" '--snapshot-every has no effect'
run train --steps 5 --run planned --snapshot-every 2 --plan-memory
like "the memory is in the plan" "$out" 'snapshots in memory +[0-9.]+ MB'
run train --steps 5 --run planned --plan-memory
unlike "and only then" "$out" 'snapshots in memory'
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
	small() { # OPTION...: with 1 MB of shared memory
		# shellcheck disable=SC2016 # the inner shell's
		unshare -m sh -c 'mount -t tmpfs -o size=1m none /dev/shm && exec "$@"' - "$LOCKSTEP" train "${job[@]}" "$@"
	}
	run small --steps 20 --run full --snapshot-every 2
	is "full: the run goes on" "$status $(fingerprint "$out")" "0 $(fingerprint "$(train --steps 20 2>/dev/null)")"
	like "full: and says what it does without" "$err" \
		'no snapshots in memory on .*: cannot take [0-9.]+ MB for /dev/shm/lockstep-.*: No space left on device; .*checkpoints on disk'
	is "full: said once" "$(grep -c 'no snapshots in memory' <<<"$err")" 1
else
	skip "full" "needs root and mount namespaces"
fi

test_end

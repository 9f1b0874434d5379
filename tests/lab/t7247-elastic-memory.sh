#!/bin/bash
# Memory under --elastic: a node that the kernel ends because its host has none left is started again; and snapshots of
# the start before do not stand in the way of the next.
# shellcheck disable=SC2317 # functions are called by ok and wait_for
# shellcheck source=tests/lab/lib.sh
. "$(dirname "$0")/lib.sh"

lab_needed
if "$lab" check | grep -q 'no memory cgroup' || [ -n "${SANITIZER:-}" ]; then
	echo "1..0 # SKIP no memory cgroup can be made here, or a sanitizer takes too much"
	exit 0
fi
job=(--model mlp --data glyphs --samples 330 --batch 64 --micro-batch 8 --schedule constant --eval-every 0 --ckpt-every 50 --timeout 10
	--threads 1)
tight=(--model resnet18 --data glyphs --samples 66 --batch 8 --micro-batch 4 --optimizer adam --schedule constant --eval-every 0 --log-every 1
	--devices 1 --threads 1 --ckpt-every 100000 --snapshot-every 2)

# Host c has what the run needs, and an eighth of its snapshots beside: the plan is in MB,
# in lines like "  total   368.10 MB".
run "$LOCKSTEP" train "${tight[@]}" --run planned --steps 1 --plan-memory
part() { awk -v name="  $1 " 'index($0, name) == 1 { for (i = 2; i <= NF; i++) if ($i == "MB") { print int($(i - 1)); exit } }' <<<"$out"; }
total=$(part total) snapshots=$(part "snapshots in memory")
ok "a plan with snapshots in memory ($snapshots of $total MB)" test "${snapshots:-0}" -gt 100
lab_up 3 --rate 1gbit --memory b=500m --memory c=$(((total + snapshots / 8) * 1000 / 1024))m

# ---- out of memory ---------------------------------------------------------------------------------------------------
run "$LOCKSTEP" train "${job[@]}" --devices 1 --steps 1500
whole=$(fingerprint "$out")
"$lab" run "$LOCKSTEP" train --elastic --hosts a:1,b:1 "${job[@]}" --steps 1500 --run hog >bg.out 2>bg.err &
job_id=$!
ok "a run begins" wait_for 40 has_checkpoint hog
node=$(node_on b)
# The kernel ends the node first, and who takes the memory stops then.
echo 1000 >"/proc/$node/oom_score_adj"
cat >hog.py <<'END'
import os, sys
taken = []
while os.path.exists(f"/proc/{sys.argv[1]}") and len(taken) < 600:
    taken.append(b"x" * (1 << 20))
END
run timeout 60 "$lab" run --on b python3 hog.py "$node"
ok "the kernel ends the node" wait_for 20 test ! -e "/proc/$node"
ok "the run goes on on both hosts" wait_for 40 grep -qE '^Elastic: continuing on 2 nodes: a:1,b:1$' bg.out
wait_bounded $job_id
is "to the same bits" "$? $(fingerprint "$(cat bg.out)" | tail -n 1)" "0 $whole"
like "and says what it was" "$(cat bg.out)" '^Elastic: node 1 \(b\) was ended by a signal$'

# ---- snapshots on a tight host ---------------------------------------------------------------------------------------
"$lab" run --on c "$LOCKSTEP" train "${tight[@]}" --run tight --steps 100000 >tight.out 2>tight.err &
job_id=$!
has_snapshot() { grep -q '"kind": "snapshot"' tight/metrics.jsonl; }
ok "a snapshot is taken where there is just room for it" wait_for 90 has_snapshot || test_note "$(cat tight.err)"
kill -9 "$(node_on c)"
wait $job_id 2>/dev/null
number=$(cut -d ' ' -f 1 tight/.snapshots)
like "a kill leaves them" "$(lab_memory "$number" c)" '^c lockstep-'
step=$(($(grep -c '"kind": "step"' tight/metrics.jsonl) + 10))
run timeout 120 "$lab" run --on c "$LOCKSTEP" train --resume --run tight --steps $step
like "the next start goes on from it" "$status $err" '^0 .*from snapshots in memory'
unlike "and has room for its own" "$err" 'no memory to spare|no snapshots in memory'
is "which it took" "$(grep -c '"kind": "snapshot"' tight/metrics.jsonl | awk '{ print ($1 > 4) }')" 1
is "none is left" "$(lab_memory "$number")" ""

test_end

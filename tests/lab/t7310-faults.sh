#!/bin/bash
# bench --fault-every: nodes are really killed, the figures add up, the bits are right, and nothing is left, however it ends.
# shellcheck source=tests/lab/lib.sh
. "$(dirname "$0")/lib.sh"

job=(--model mlp --samples 330 --batch 64 --micro-batch 8 --seed 7)
lab_up 3 --rate 1gbit
mkdir tmp
export TMPDIR=$PWD/tmp
# Other tests have such files, too: those of the runs here have their numbers.
: >numbers
note_numbers() { # of the runs that there are now
	sed -nE 's/^([0-9a-f]{16}) .*/\1/p' lockstep-faults-*/run/.snapshots >>numbers 2>/dev/null
}
shared() {
	local number
	sort -u numbers | while read -r number; do
		lab_memory "$number"
	done
}
bench_on_a() { # its process id: behind & a shell has SIGINT ignored
	"$lab" ps a | while read -r pid; do
		! tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -q "^$LOCKSTEP bench" || echo "$pid"
	done | head -n 1
}
is_clean() { [ -z "$(lab_processes)$(ls -d lockstep-faults-* 2>/dev/null)$(ls -A tmp)" ]; }

# ---- on hosts that are named -----------------------------------------------------------------------------------------
# The kernel counts: a watcher notes every process of `lockstep train` that appears on host b.
"$lab" run timeout 200 "$LOCKSTEP" bench "${job[@]}" --hosts a:1,b:1,c:1 --fault-every 2 --repeat 3 --json >hosts.json 2>bg.err &
id=$!
while kill -0 $id 2>/dev/null; do
	node_on b
	note_numbers
	sleep 0.1
done | sort -u >seen
wait_bounded $id
is "three faults are survived" "$?" 0
like "the seed is printed" "$(cat bg.err)" 'seed 7$'
ok "they were injected" json hosts.json 'o["measured"]["faults"] + o["measured"]["interruptions"] >= 3 and o["measured"]["faults"] >= 2'
ok "in starts of their own: host b had a process in each ($(wc -w <seen))" test "$(wc -w <seen)" -ge 3
cat >adds_up.py <<'PYTHON'
import json, sys
o = json.load(open(sys.argv[1]))
m, p = o["measured"], o["predicted"]
near = lambda a, b: abs(a - b) < 1e-6 * abs(b)
samples = lambda steps: steps // 6 * 330 + steps % 6 * 64
assert near(m["samples_per_s"], samples(m["steps"]) / m["seconds"]), "samples/s"
assert near(m["work_kept"], m["samples_per_s"] / m["undisturbed_samples_per_s"]), "work kept"
assert 0 < m["work_kept"] < 1.05 and 0 < p["work_kept"] < 1, "shares"
assert near(p["samples_per_s"], p["work_kept"] * m["undisturbed_samples_per_s"]), "predicted"
assert 0.05 < m["recovery_median_s"] <= m["recovery_worst_s"] < m["seconds"], "recovery"
assert 0 < p["restart_s"] < m["recovery_worst_s"], "restart"
assert m["fingerprint_step"] >= m["steps"] > 0, "steps"
assert m["faults"] > m["overtaken"] >= 0 and m["interruptions"] >= 0, "faults"
# whole cycles: training, then recovery, half of which take the median or longer
assert m["seconds"] > (m["faults"] - m["overtaken"] + 1) // 2 * m["recovery_median_s"], "seconds"
assert o["job"]["nodes"] == 3 and o["job"]["seed"] == 7 and o["job"]["batch"] == 64 and o["job"]["fault_every_s"] == 2
PYTHON
ok "the figures add up" python3 adds_up.py hosts.json
steps=$(python3 -c 'import json; print(json.load(open("hosts.json"))["measured"]["fingerprint_step"])')
run "$LOCKSTEP" train "${job[@]}" --data glyphs --test-samples 10 --schedule constant --eval-every 0 --devices 1 --steps "$steps"
is "the weights have the bits of a run that nothing happened to" \
	"$(python3 -c 'import json; print(json.load(open("hosts.json"))["measured"]["fingerprint"])')" "$(fingerprint "$out")"
ok "nothing is left on hosts or disk" wait_for 10 is_clean
ok "its snapshots had a number" test -s numbers
is "nor in memory" "$(shared)" ""

# ---- Ctrl-C ----------------------------------------------------------------------------------------------------------
"$lab" run "$LOCKSTEP" bench "${job[@]}" --hosts a:1,b:1 --fault-every 1 --repeat 1000 >stopped.out 2>bg.err &
id=$!
ok "a run that is to be stopped begins" wait_for 30 compgen -G 'lockstep-faults-*/run/.generation'
sleep 2.5 # some fault or other is under way
: >numbers
ok "it has snapshots in memory" wait_for 30 eval 'note_numbers; [ -n "$(shared)" ]'
kill -TERM "$(bench_on_a)"
wait_bounded $id
is "a stop on request ends it" "$?" 143
is "without figures" "$(cat stopped.out)" ""
ok "and leaves nothing" wait_for 10 is_clean
# Between two starts there is no node that could remove a host's snapshots: the next run there does.
run timeout 100 "$lab" run "$LOCKSTEP" train --elastic "${job[@]}" --data glyphs --test-samples 10 --steps 5 --hosts a:1,b:1 --run next
is "nor in memory, once the next run has begun there" "$status $(shared)" "0 "

# ---- what train refuses ----------------------------------------------------------------------------------------------
fails_with "a model that train does not know" 2 "the run with faults failed: .*unknown model 'mpl'; did you mean 'mlp'" \
	"$lab" run "$LOCKSTEP" bench --model mpl --hosts a:1,b:1 --fault-every 30
fails_with "a host twice" 2 "'a' is named twice" "$lab" run "$LOCKSTEP" bench --model mlp --hosts a:1,a:1 --fault-every 30
ok "nothing is left" wait_for 10 is_clean

# ---- emulated nodes, with a server -----------------------------------------------------------------------------------
export LOCKSTEP_LAB_TOOL=$lab
# The network has the number of the process in its name: other tests have such networks at the same time.
# shellcheck disable=SC2016
run timeout 200 sh -c 'echo $$ >pid; exec "$@"' sh "$LOCKSTEP" bench "${job[@]}" --nodes 2 --strategy ps --rate 1gbit --fault-every 1s --repeat 2
is "emulated nodes" "$status" 0
like "two, and a server" "$out" '^mlp on glyphs, batch 64, 3 emulated nodes with links of 1gbit, ps, fp32$'
like "says what is measured" "$out" 'every 1 s of training on average \(exponential\), seed 7; measured:$'
like "and what is predicted" "$out" '^predicted '
like "the rates" "$out" '^samples/s with faults +[0-9.]+, over [0-9.]+ s: [0-9]+ steps? that count$'
like "the faults" "$out" '^faults +[12], one every [0-9.]+ s'
like "the recovery" "$out" '^recovery +(median [0-9.]+ s, worst [0-9.]+ s, from the kill to the first new step|not known)$'
is "and no network is left" "$("$lab" status 2>/dev/null | grep -c "bench-$(cat pid)\b")" 0
ok "nor a file" is_clean

test_end

#!/bin/bash
# A short form of `make chaos`: an event of each kind, a few single faults, and a log of samples that is checked.
# shellcheck source=tests/lab/lib.sh
. "$(dirname "$0")/lib.sh"
lab_needed

chaos=$SOURCE_DIR/tools/chaos
# Times are for an idle machine, and this one runs other tests: here they only must not be absurd. Bits, samples and what is left
# behind are checked as in the long form.
busy=(--timeout 4 --median 30 --worst 60 --work 0 --lockstep "$LOCKSTEP")

# ---- the log of samples ----------------------------------------------------------------------------------------------
mkdir samples
job=(--model mlp --data glyphs --samples 330 --test-samples 10 --batch 64 --micro-batch 8 --schedule constant --steps 14)
LOCKSTEP_SAMPLE_LOG=$PWD/samples run "$LOCKSTEP" train "${job[@]}" --devices 2
is "a run with a log of samples has the bits of one without" "$(fingerprint "$out")" \
	"$(fingerprint "$("$LOCKSTEP" train "${job[@]}" --devices 2 2>/dev/null)")"
run "$chaos" --check-samples samples 14
is "every sample once per epoch" "$status $out" "0 every sample once per epoch"
log=$(echo samples/*)
cp "$log" whole
sed -i 5d "$log"
run "$chaos" --check-samples samples 14
like "a micro-batch that is missing is found" "$status $out" '^1 step 0 of start 0 used 56 samples, not 64'
cp whole "$log"
sed -n 5p whole >>"$log"
run "$chaos" --check-samples samples 14
like "one that is repeated is found" "$status $out" '^1 step 0 of start 0 used 72 samples, not 64'
awk 'NR == 5 { $4 = first } NR == 4 { first = $4 } { print }' whole >"$log"
run "$chaos" --check-samples samples 14
like "and a sample in place of another" "$status $out" '^1 epoch 0: samples lost \[[0-9]+\], repeated \[[0-9]+\]'
mkdir starts
LOCKSTEP_SAMPLE_LOG=$PWD/starts run "$LOCKSTEP" train "${job[@]}" --steps 7 --run run
LOCKSTEP_SAMPLE_LOG=$PWD/starts run "$LOCKSTEP" train --resume --run run --steps 14
is "a resumed run numbers its starts from 1" "$status $(cd starts && printf '%s\n' * | sed 's/-[0-9]*$//' | xargs)" \
	"0 start-1-node-0 start-2-node-0"
run "$chaos" --check-samples starts 14
is "and both together have every sample once per epoch" "$status $out" "0 every sample once per epoch"
LOCKSTEP_SAMPLE_LOG=$PWD/nowhere run "$LOCKSTEP" train "${job[@]}"
like "a log that cannot be written ends the run" "$status $err" '^1 .*LOCKSTEP_SAMPLE_LOG: cannot write .*/nowhere/start-0-node-0-'

# ---- what became of faults -------------------------------------------------------------------------------------------
run env PYTHONPATH="$SOURCE_DIR/tools" python3 -B - <<'EOF'
import argparse, re
import chaos_judge
class Job:
    lines = [(9.9, "Step1:"), (13.0, "Elastic: continuing on 3 nodes: a"), (14.0, "Step2:"), (29.0, "Step3:"), (30.1, "Step4:"),
             (35.0, "Elastic: continuing on 3 nodes: a"), (36.5, "Step5:"), (66.0, "Step6:"),
             (75.0, "Elastic: continuing on 3 nodes: a"), (77.0, "Step7:"), (101.0, "Elastic: continuing on 3 nodes: a")]
    def seen(self, pattern):
        return [line for line in self.lines if re.match(pattern, line[1])]
kill, stop, cut = "kill -9 of a node", "SIGSTOP for 3 s", "cut for good"
# without a step before the next event: at 30 that event comes soon, at 80 and 88 too late; after 100 none comes
events = [(10.0, kill, "b"), (20.0, "host back", "b"), (30.0, kill, "b"), (34.0, kill, "c"), (60.0, stop, "b"), (70.0, cut, "b"),
          (80.0, kill, "c"), (88.0, cut, "c"), (98.5, "host back", "c"), (100.0, kill, "c")]
limits = lambda median, worst: argparse.Namespace(timeout=4, median=median, worst=worst)
found = chaos_judge.outcomes(events, Job(), limits(3, 6))
print([(kind.split()[0], what, seconds) for kind, what, seconds in found])
chaos_judge.fault_table(events, found)
print(*chaos_judge.time_rows(found, 4), sep="\n")
print(*chaos_judge.judge_outcomes(found, limits(3, 6)), sep="\n")
print("limits", [[what for _, what, _ in chaos_judge.outcomes(events, Job(), limits(3, worst))][-3:-1] for worst in (7, 8.5)],
      chaos_judge.outcomes(events, Job(), limits(3, 1.5))[3])
for median, worst in (3.3, 4), (3.2, 4), (3.3, 3.9), (2.9, 2.9):
    print(median, worst, chaos_judge.judge_times(found, limits(median, worst)))
EOF
like "faults are recovered from, overtaken by another event, without effect, late, or never recovered from" "$status $out" \
	"^0 \[\('kill', 'recovered', 4.0\), \('kill', 'overtaken', 0.0\), \('kill', 'recovered', 2.5\), \('SIGSTOP', 'no restart', 6.0\), \('cut', 'recovered', 7.0\), \('kill', 'late', 8.0\), \('cut', 'late', 10.5\), \('kill', 'never', 0.0\)\]$"
like "a row has how many of each" "$out" '^kill -9 of a node +5 +2 +1 +0 +1 +1 +3.25 s +4.00 s$'
like "events that are no faults have their number" "$out" '^host back +2 *$'
like "a fault after which no step came is a failure" "$out" '^no step came after a kill -9 of a node, and nothing else happened$'
like "so is one after which none came in time, although another event ended the wait" "$out" \
	'^no step came in the 8.00 s after a kill -9 of a node, more than 6 s$'
like "which after silence is --timeout later" "$out" '^no step came in the 10.50 s after a cut for good, more than 10 s$'
like "a late one is overtaken where the limit is longer; training that goes on by itself has the limit, too" "$out" \
	"^limits \[\['late', 'overtaken'\], \['overtaken', 'overtaken'\]\] \('SIGSTOP for 3 s', 'late', 6.0\)$"
like "times after kills are shown" "$out" "^\('recovery from kills', 'median 3.25 s, worst 4.00 s, of 2'\)$"
like "and those after silence, without the timeout" "$out" "^\('recovery from silence', 'median 3.00 s, worst 3.00 s, of 1; without the first 4 s"
like "limits that hold for both" "$out" '^3.3 4 \[\]$'
like "a median of kills that is too long is not hidden by silence" "$out" "^3.2 4 \['recovery from kill: 3.25 s in the median, more than 3.2 s'\]$"
like "the worst" "$out" "^3.3 3.9 \['recovery: 4.00 s after kill -9 of a node, more than 3.9 s'\]$"
like "silence has a median and a worst of its own" "$out" \
	"^2.9 2.9 .*'recovery from silence: 3.00 s in the median, without the 4 s of --timeout, more than 2.9 s', 'recovery: 3.00 s after cut for good, without"

# ---- where the state of starts was from ------------------------------------------------------------------------------
run env PYTHONPATH="$SOURCE_DIR/tools" python3 -B - <<'EOF'
import chaos_judge
def start(generation, time, hosts, step, source):
    return {"kind": "start", "generation": generation, "time": time, "hosts": ",".join(h + ":1" for h in hosts), "step": step, "source": source}
def judge(*lines, steps=((11, 1), (12, 10), (13, 13))):
    counted, wrong = chaos_judge.starts_by_source(lines, steps, 5)
    print(*(f"{what}: {n}" for what, n in sorted(counted.items())), "|", *wrong)
new, lost, asked = start(1, 10, "bcde", 0, "new"), {"kind": "stop", "outcome": "lost"}, {"kind": "stop", "outcome": "regroup"}
judge(new, lost, start(2, 20, "bcde", 10, "snapshot"))
judge(new, lost, start(2, 20, "bcde", 5, "checkpoint"))     # all are there
judge(new, lost, start(2, 20, "bd", 5, "checkpoint"))       # no two neighbours are missing
judge(new, lost, start(2, 20, "cd", 5, "checkpoint"))       # b and e are neighbours
judge(new, lost, start(2, 20, "bcde", 10, "checkpoint"))    # the disk is as new
judge(new, asked, start(2, 20, "bcde", 5, "checkpoint"))    # removed on request
judge(new, lost, start(2, 20, "b", 5, "checkpoint"), lost, start(3, 30, "bcde", 5, "new")) # still there, as start 2 took none
judge(new, lost, start(2, 20, "bcde", 9, "new"), steps=((11, 1), (12, 10), (21, 11)))     # step 11 was not done: that of step 5 counts
EOF
is "starts are counted by source, and those from disk that had a snapshot are found" "$status $out$err" "0 new: 1 snapshot after a loss: 1 |
checkpoint after a loss: 1 new: 1 | start 2 on b,c,d,e went on from step 5 (checkpoint), and b,c,d,e had a snapshot of step 10 in memory
checkpoint after a loss: 1 new: 1 | start 2 on b,d went on from step 5 (checkpoint), and b,c,d,e had a snapshot of step 10 in memory
checkpoint after a loss: 1 new: 1 |
checkpoint after a loss: 1 new: 1 |
checkpoint: 1 new: 1 |
checkpoint after a loss: 1 new: 1 new after a loss: 1 | start 3 on b,c,d,e went on from step 5 (new), and b,c,d,e had a snapshot of step 10 in memory
new: 1 new after a loss: 1 |"

# ---- what a run was doing ---------------------------------------------------------------------------------------------
run env PYTHONPATH="$SOURCE_DIR/tools" python3 -B - <<'EOF'
from chaos_judge import phase_hit, phase_table
def line(kind, step=0, **more):
    return dict(more, kind=kind, step=step)
start, step, test, stop = line("start"), lambda n: line("step", n), lambda n: line("test", n), line("stop")
memory = lambda n, every: line("snapshot", n, every=every)
print(phase_hit([], []), phase_hit([start], []), phase_hit([start, step(1)], []), phase_hit([start, step(1)], [".draft"]),
      phase_hit([start, step(1), line("host"), stop], []), phase_hit([start, step(1), stop, start], []))
print("tests:", phase_hit([start, step(4)], [], eval_every=2), phase_hit([start, step(4), test(4)], [], eval_every=2),
      phase_hit([start, step(5)], [], eval_every=2))
print("memory:", phase_hit([start, step(2)], []), phase_hit([start, step(2), memory(2, 8)], []), phase_hit([start, memory(2, 8), step(10)], []),
      phase_hit([start, step(10)], [], snapshot_every=5), phase_hit([start, step(10), memory(10, 5)], [], snapshot_every=5),
      phase_hit([start, memory(10, 5), step(11)], [], snapshot_every=5))
phase_table([("snapshot", "snapshot"), ("snapshot", "training"), ("restart", "start-up")])
EOF
is "what a run was doing when a fault came follows from its metrics" "$status $(head -n 3 <<<"$out")$err" \
	"0 start-up training training checkpoint restart training
tests: evaluation training training
memory: snapshot training snapshot snapshot training training"
like "a table has what was meant and what was hit" "$out" '^snapshot +2 +0 +1 +1 +0 +0 +0$'

# ---- chaos -----------------------------------------------------------------------------------------------------------
# One event of each kind, each when the run has recovered from the one before: limits are on bits and samples, not on speed.
seed=${TEST_SEED:-$RANDOM}
run timeout 300 "$chaos" --each-kind --minutes 3 --seed "$seed" "${busy[@]}"
is "an event of each kind (seed $seed): the run survives" "$status $(grep -c '^verdict *survived$' <<<"$out")" "0 1"
[ "$status" = 0 ] || test_note "$out" "$err"
kinds=("kill -9 of a node" "SIGSTOP for 3 s" "SIGSTOP for good" "cut for 5 s" "cut for good" "kill of all on a host" "host back" "host added"
	"host removed")
for kind in "${kinds[@]}"; do
	like "one is $kind" "$out" "^$kind +1( |$)"
done
like "and the summary has what happened" "$out" '^steps computed again +[0-9]+$'
like "and where starts had their state from: memory, too" "$out" '^state of starts from .*new 1, .*snapshot after a loss [1-9]'

run timeout 200 "$chaos" --single 2 --seed 5 "${busy[@]}"
is "single faults: all are survived" "$status $(tail -n 1 <<<"$out")" "0 2 of 2 single faults survived, seed 5"
[ "$status" = 0 ] || test_note "$out" "$err"
like "and what they hit is shown" "$out" '^all +2( +[0-9]+){6}$'

test_end

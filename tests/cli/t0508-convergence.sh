#!/bin/bash
# bench/convergence with stand-ins for both sides: its statistics, its verdict, what it keeps, and that it leaves nothing
# behind. tests/golden/t9050-convergence.sh has the real ones.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# ---- the t-test, by values that are known exactly or from tables
cat >check.py <<'END_PYTHON'
import math, random, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
from convergence_stats import epochs_to, middle_mean, quantile, seconds_to, two_sided, welch

def near(a, b, error=1e-9):
    assert abs(a - b) <= error, (a, b)

for t in (0.01, 0.5, 1, 2, 7, 100):
    near(two_sided(t, 1), 1 - 2 * math.atan(t) / math.pi)           # Cauchy
    near(two_sided(t, 2), 1 - t / math.sqrt(2 + t * t))
    near(two_sided(t, 1e6), math.erfc(t / math.sqrt(2)), 1e-6)      # normal
near(two_sided(-2.228138852, 10), 0.05)
near(two_sided(3.5518, 30), 0.00129, 1e-5)
near(quantile(0.05, 10), 2.228138852, 1e-8)
near(quantile(0.001, 5), 6.868826626, 1e-8)
w = welch([1, 2, 3, 4, 5], [2, 3, 4, 5, 9])  # variances 2.5 and 7.3
near(w["t"], -1.6 / math.sqrt(0.5 + 1.46))
near(w["df"], 1.96 ** 2 / (0.5 ** 2 / 4 + 1.46 ** 2 / 4))
near(w["p"], two_sided(w["t"], w["df"]))
near(w["interval"][1] - w["interval"][0], 2 * 1.4 * quantile(0.05, w["df"]))
assert welch([1, 1], [1, 1])["p"] == 1 and welch([1, 1], [2, 2])["p"] == 0 and welch([1], [1, 2]) is None
rng = random.Random(1)  # of equal means and other spreads, one in twenty is found different
found = sum(welch([rng.gauss(0, 1) for _ in range(8)], [rng.gauss(0, 3) for _ in range(6)])["p"] < 0.05 for _ in range(4000))
assert 150 <= found <= 250, found
curve = [{"epochs": e, "accuracy": a, "train_s": 2, "test_s": 1} for e, a in ((1, 0.4), (2, 0.6), (3, 0.5), (4, 0.9))]
near(epochs_to(curve, 0.5, 0.1), 1.5)  # the first crossing counts
near(epochs_to(curve, 0.8, 0.1), 3.75)
near(epochs_to(curve, 0.25, 0.1), 0.5)  # from chance
assert epochs_to(curve, 0.95, 0.1) is None and seconds_to(curve, 0.95) is None
near(seconds_to(curve, 0.5), 6)  # to the end of the evaluation
near(middle_mean([9, 1, 2, 3]), 2.5)
near(middle_mean([9, None, 2, 3]), 6)  # the worst
assert middle_mean([1, 2]) is None and middle_mean([1, None, 3, None]) is None
END_PYTHON
ok "Welch's t-test, epochs and seconds to a target" python3 check.py "$SOURCE_DIR/bench"

# ---- stand-ins: accuracy grows in a straight line and is 0.85 after 2.2, 2.4, 2.1, 2.3, 2.0, ... epochs of 64 steps
cat >curve.py <<'END_PYTHON'
import os
def accuracy(side, step, seed, lr):
    needed = 2 + 0.1 * (7 * seed % 5) + float(os.environ.get(side + "_SHIFT", 0))
    return min(float(os.environ.get(side + "_MOST", 0.99)), 0.85 * step / 64 / needed * lr / 1e-3)
END_PYTHON
cat >torch <<'END_PYTHON'
#!/usr/bin/env python3
import json, os, sys, time
sys.dont_write_bytecode = True
sys.path.insert(0, os.environ["HERE"])
from curve import accuracy
if "--probe" in sys.argv:
    print(json.dumps({"torch": "9.9", "torchvision": "9.9", "onednn": "none", "capability": "none"}))
    sys.exit()
job = json.loads(sys.argv[2])
open(os.environ["HERE"] + "/pids", "a").write(f"{os.getpid()}\n")
print(json.dumps({"ready": True, "parameters": 7, "samples": int(os.environ.get("SAMPLES", 2048))}), flush=True)
for line in sys.stdin:
    order = json.loads(line)
    open(os.environ["HERE"] + "/trained", "a").write(f"torch {order['seed']}\n")
    if os.environ.get("DIES") == str(order["seed"]):
        sys.exit("out of memory")
    for step in order["steps"]:
        time.sleep(3600 if os.environ.get("SLOW") == str(order["seed"]) else 0)
        a = accuracy("TORCH", step, order["seed"], job["lr"])
        print(json.dumps({"step": step, "train_s": 3.0, "test_s": 1.0, "loss": 1 - a, "accuracy": a}), flush=True)
        if order["target"] is not None and a >= order["target"]:
            break
    print(json.dumps({"end": True}), flush=True)
END_PYTHON
# 1000 samples a second, half a second per test; 2048 samples, in the last step of an epoch as many as in the others.
cat >lockstep <<'END_PYTHON'
#!/usr/bin/env python3
import json, os, sys
sys.dont_write_bytecode = True
sys.path.insert(0, os.environ["HERE"])
from curve import accuracy
argv = sys.argv[1:]
value = lambda name: argv[argv.index(name) + 1]
if argv[:3] == ["data", "make", "glyphs"]:
    os.makedirs(value("--out"), exist_ok=True)
    open(value("--out") + "/train-images-idx3-ubyte", "wb").write(b"\0\0\x08\x03" + int(value("--samples")).to_bytes(4, "big"))
    sys.exit()
assert argv[0] == "train"
run, step = value("--run"), int(value("--steps"))
if "--resume" not in argv:
    assert value("--schedule") == "constant" and value("--batch") == "32"
    os.mkdir(run)
    json.dump({"seed": int(value("--seed")), "lr": float(value("--lr")), "step": 0}, open(run + "/run.json", "w"))
    open(os.environ["HERE"] + "/trained", "a").write(f"lockstep {value('--seed')}\n")
settings = json.load(open(run + "/run.json"))
with open(run + "/metrics.jsonl", "a") as f:
    for i in range(settings["step"], step):
        f.write(json.dumps({"kind": "step", "step": i + 1, "samples_per_s": 1000.0}) + "\n")
    a = accuracy("LOCKSTEP", step, settings["seed"], settings["lr"])
    f.write(json.dumps({"kind": "test", "step": step, "accuracy": a, "loss": 1 - a, "seconds": 0.5}) + "\n")
json.dump({**settings, "step": step}, open(run + "/run.json", "w"))
END_PYTHON
chmod +x torch lockstep
mkdir temporary
export HERE=$PWD TMPDIR=$PWD/temporary
convergence=("$SOURCE_DIR/bench/convergence" --torch "$PWD/torch" --lockstep "$PWD/lockstep" --quick --only cnn --threads 1
	--seeds 3 --out "$PWD/kept")

none_left() {
	local pid
	while read -r pid; do
		! kill -0 "$pid" 2>/dev/null || return 1
	done <pids
	[ -z "$(ls temporary)" ]
}

run "${convergence[@]}" --json all.json
is "the same curves do not differ" "$status" 0
like "and a message reports it" "$out" '^verdict: no difference found'
like "with every seed" "$out" '^2 +2\.400 +[0-9.]+ +0\.9900 .* 2\.400 +40\.0 '
like "and progress on stderr" "$err" 'cnn on glyphs, seed 3/3, PyTorch: 0\.85 after 2\.25 epochs'
ok "epochs are on the line between evaluations" json all.json \
	'all(abs(s["epochs"] - e) < 1e-9 for side in ("lockstep", "torch") for s, e in zip(o["jobs"][0][side]["seeds"], (2.2, 2.4, 2.1)))'
ok "time is training and evaluation to the end of the first good one" json all.json \
	'abs(o["jobs"][0]["lockstep"]["seeds"][0]["time_s"] - (144 * 0.032 + 9 * 0.5)) < 1e-9 and o["jobs"][0]["torch"]["seeds"][0]["time_s"] == 36'
ok "the file has the curves" json all.json 'all(len(s["curve"]) == 12 for s in o["jobs"][0]["torch"]["seeds"])'
ok "p is 1" json all.json 'o["jobs"][0]["epochs_test"]["p"] == 1'
is "one process of PyTorch trained all seeds" "$(wc -l <pids)" 1
is "every seed was trained once on each side" "$(sort trained | uniq -c | tr -s ' ' | tr '\n' ,)" \
	" 1 lockstep 1, 1 lockstep 2, 1 lockstep 3, 1 torch 1, 1 torch 2, 1 torch 3,"
ok "nothing is left of it" none_left

: >trained
run "${convergence[@]}" --markdown
is "again, from what was kept" "$status $(cat trained)" "0 "
like "as Markdown" "$out" '^\| cnn on glyphs: Adam, lr 0.001.* \| 0\.85 \| 3 \| 2\.233 ± 0\.153 \| 2\.233 ± 0\.153 \| 1 '

run "${convergence[@]}" --stop --json stopped.json
is "runs may end at the target" "$status $(wc -l <trained)" "0 6"
ok "with the same epochs" json stopped.json \
	'all(abs(s["epochs"] - e) < 1e-9 and s["curve"][-1]["accuracy"] >= 0.85 > s["curve"][-2]["accuracy"]
	 for side in ("lockstep", "torch") for s, e in zip(o["jobs"][0][side]["seeds"], (2.2, 2.4, 2.1)))'
like "at most so many epochs" "$out" 'at most 3 epochs'
unlike "and nothing about final accuracies" "$out" 'final'
: >trained
run "${convergence[@]}" --stop --markdown
is "they are kept too, beside the others" "$status $(cat trained)" "0 "
like "with a Markdown table of their own" "$out" '^\| seed \| Lockstep epochs \| Lockstep time s \| PyTorch epochs \| PyTorch time s \|$'

LOCKSTEP_SHIFT=0.5 run "${convergence[@]}" --break lr
is "a third of the learning rate differs" "$status" 1
like "and a message reports it" "$out" '^verdict: DIFFERS'
like "as is what was broken" "$out" '^broken +Lockstep trains with a third of the learning rate'
like "a seed that never arrives is shown" "$out" '^1 +>3\.000 +- '
like "and counted" "$out" 'never reached the target, counted as the limit: Lockstep 3 of 3\.$'
is "what was kept of PyTorch is taken, of Lockstep not" "$(cat trained | tr '\n' ,)" "lockstep 1,lockstep 2,lockstep 3,"
run "${convergence[@]}"
is "and the right rule is not affected" "$status" 0

: >trained
echo "# another build" >>lockstep
LOCKSTEP_SHIFT=0.01 run "${convergence[@]}"
is "another build is trained again" "$status $(cat trained | tr '\n' ,)" "0 lockstep 1,lockstep 2,lockstep 3,"
ok "but little later is no difference" grep -q 'difference +0.0100' .out
rm kept/*lockstep*
LOCKSTEP_SHIFT=0.6 run "${convergence[@]}"
is "much later is one" "$status" 1
run "${convergence[@]}" --alpha 1e-6
is "unless more was asked for" "$status" 0

rm -r kept
LOCKSTEP_MOST=0.5 TORCH_MOST=0.5 run "${convergence[@]}"
is "where nobody arrives, nothing is compared" "$status" 2
like "and a message reports it" "$out" '^verdict: NOT COMPARED'
rm -r kept
run "${convergence[@]}" --seeds 1
is "one seed is no comparison, and no failure" "$status" 0
like "and a message reports it" "$out" '^verdict: not compared: a t-test needs two seeds'

rm -r kept
: >pids
: >trained
SLOW=2 "${convergence[@]}" >.out 2>.err &
second() { grep -q 'torch 2' trained; }
ok "the second seed is at work" wait_for 30 second
kill -TERM $!
wait $!
is "a signal ends the comparison" "$?" 143
ok "and the other side" none_left
: >trained
run "${convergence[@]}"
is "which goes on with what is missing" "$status $(sort trained | tr '\n' ,)" "0 lockstep 2,lockstep 3,torch 2,torch 3,"

rm -r kept
DIES=2 run "${convergence[@]}"
is "a side that ends" "$status" 2
like "is named, with its reason" "$err" 'PyTorch at cnn on glyphs: ended: out of memory'
rm -r kept
SAMPLES=100 run "${convergence[@]}"
is "other data on one side is an error" "$status" 2
like "which says what" "$err" 'PyTorch has 100 samples of cnn on glyphs, Lockstep 2048'
run "${convergence[@]}" --only nothing
is "an unknown job" "$status" 2
run "$SOURCE_DIR/bench/convergence" --torch "$PWD/torch" --lockstep "$PWD/lockstep" --only mnist
is "missing data" "$status" 2
like "and how to get it" "$err" 'lockstep data get mnist'

# ---- bench/peers --to-accuracy: the same machinery, until the target
peers=("$SOURCE_DIR/bench/peers" --torch "$PWD/torch" --lockstep "$PWD/lockstep" --quick --models cnn --threads 1)
: >pids
run "${peers[@]}" --to-accuracy 0.85 --seeds 4
is "time to accuracy" "$status" 0
like "of every seed" "$out" '^2 +10\.1 +2\.50 +40\.0 +2\.50'
like "and the mean without best and worst" "$out" '^mean +9\.6 +2\.38 +38\.0 +2\.38'
like "with its name" "$out" 'MLPerf-style, unverified: means of 4 seeds without the fastest and the slowest; Lockstep is 3\.95x as fast'
run "${peers[@]}" --to-accuracy 0.85 --seeds 2
is "two seeds" "$status" 0
like "have no mean" "$out" '^mean +- +- +- +-$'
TORCH_MOST=0.5 run "${peers[@]}" --to-accuracy 0.85 --seeds 3 --json
is "a target that is not reached is a failure" "$status" 1
cp .out never.json
ok "and has no mean" json never.json 'o["accuracy"][0]["torch"]["seconds"] is None and o["accuracy"][0]["ratio"] is None'
ok "nothing is left of it" none_left
run "${peers[@]}" --to-accuracy 0.85 --models bert-base
like "a model that is not trained to accuracy" "$status $err" '^2 .*no time to accuracy of model bert-base'
ok "no file was left in the sources" [ ! -e "$SOURCE_DIR/bench/__pycache__" ]

test_end

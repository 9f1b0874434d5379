#!/bin/bash
# --trace: a timeline with every layer, device, node and bucket, on one clock.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

cat >check.py <<'END'
"""check.py RUN NODES DEVICES... STEPS SECONDS: what a timeline of that many nodes must have."""
import collections, glob, json, struct, sys

run, nodes = sys.argv[1], int(sys.argv[2])
devices = [int(n) for n in sys.argv[3:3 + nodes]]
steps, seconds = int(sys.argv[3 + nodes]), float(sys.argv[4 + nodes])
events = json.load(open(run + "/trace.json"))
events = events["traceEvents"] if isinstance(events, dict) else events
lanes = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
hosts = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
assert sorted(hosts) == list(range(nodes)), hosts
spans, begun = [], {}
for e in events:
    lane = lanes.get((e["pid"], e.get("tid")))
    if e["ph"] == "X":
        spans.append((e["pid"], lane, e["cat"], e["name"], e["ts"], e["ts"] + e["dur"], e["args"]))
    if e["ph"] == "b":
        begun[e["id"]] = e
    if e["ph"] == "e":
        b = begun.pop(e["id"])
        spans.append((b["pid"], lane, b["cat"], b["name"], b["ts"], e["ts"], b["args"]))
assert not begun
assert all(0 <= s[4] <= s[5] <= seconds * 1e6 for s in spans), "a span outside of the run"

checkpoint = sorted(glob.glob(run + "/ckpt/step-*/model.safetensors"))[-1]
with open(checkpoint, "rb") as file:
    header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
layers = {name.rsplit(".", 1)[0] for name in header if name != "__metadata__"}
assert layers
of_step = {}
for node in range(nodes):
    of_step[node] = {s[6]["step"]: s for s in spans if s[0] == node and s[2] == "step"}
    assert len(of_step[node]) == steps, (node, sorted(of_step[node]))
    for device in range(devices[node]):
        for direction in "forward", "backward":
            own = [s for s in spans if s[:3] == (node, "device %d" % device, direction)]
            assert layers <= {s[3] for s in own}, (node, device, direction, layers - {s[3] for s in own})
            for s in own:
                step = of_step[node][s[6]["step"]]
                assert step[4] <= s[4] and s[5] <= step[5], (s, step)

def buckets(category):
    return {s[6]["bucket"] for s in spans if s[2] == category}

every = set(range(max(buckets("update")) + 1))
assert len(every) > 3 and buckets("update") == every and buckets("combine") == every
if nodes > 1:
    assert buckets("reduce-scatter") == every and buckets("all-gather") == every
    for step in of_step[0]:  # one clock: the parameters of a step are needed everywhere before the next but one
        for node in range(1, nodes):
            assert of_step[node][step][4] < of_step[0].get(step + 2, (0, 0, 0, 0, 1e18))[4], step
            assert of_step[0][step][4] < of_step[node].get(step + 2, (0, 0, 0, 0, 1e18))[4], step
else:
    assert not buckets("reduce-scatter") and not buckets("all-gather")

rows = collections.defaultdict(list)
for s in spans:
    if s[2] not in ("reduce-scatter", "all-gather"):
        rows[s[:2]].append((s[4], -s[5]))
for row in rows.values():
    around = []
    for begin, end in sorted(row):
        while around and around[-1] <= begin + 0.0011:
            around.pop()
        assert not around or -end <= around[-1] + 0.0011, "spans of a lane overlap"
        around.append(-end)
END

small=(--model cnn --data glyphs --samples 400 --test-samples 64 --batch 64 --micro-batch 16 --steps 6 --bucket-bytes 65536 --log-every 1 --schedule constant)
timed() {
	local begin=$EPOCHREALTIME
	run "$@"
	seconds=$(python3 -c "print($EPOCHREALTIME - $begin)")
}

fails_with "--trace without --run" 2 '--trace needs --run' "$LOCKSTEP" train "${small[@]}" --trace
run "$LOCKSTEP" train "${small[@]}" --devices 2
expected=$(fingerprint "$out")
timed "$LOCKSTEP" train "${small[@]}" --devices 2 --trace --run alone
is "two devices are traced" "$status" 0
like "which is told" "$out$err" "timeline of 6 steps in alone/trace.json"
is "with the same bits" "$(fingerprint "$out")" "$expected"
ok "every layer on both devices, every bucket" python3 check.py alone 1 2 6 "$seconds"
run "$LOCKSTEP" train "${small[@]}" --steps 9 --devices 2 --trace --trace-steps 2 --run alone --resume
like "a resumed run traces its own first steps" "$out$err" "timeline of 2 steps in alone/trace.json"
ok "and these alone" json alone/trace.json \
	'sorted(e["args"]["step"] for e in (o["traceEvents"] if isinstance(o, dict) else o) if e.get("cat") == "step") == [6, 7]'
run "$LOCKSTEP" train "${small[@]}" --devices 1 --batch 16 --trace --run short
ok "one device alone updates as it goes back" json short/trace.json \
	'{"forward", "backward", "update"} <= {e.get("cat") for e in (o["traceEvents"] if isinstance(o, dict) else o)}'
run "$LOCKSTEP" train "${small[@]}" --devices 1 --run plain
ok "without --trace there is none" test ! -e plain/trace.json

if ! command -v mpirun >/dev/null; then
	skip "several nodes" "there is no mpirun (tools/install-deps build gets it)"
	test_end
fi
"$LOCKSTEP" probe --quick --json >probe.json
if json probe.json 'o["nodes"][0]["mpi"] == ""'; then
	skip "several nodes" "this build has no MPI"
	test_end
fi
# What Open MPI leaves behind by itself is no leak of ours.
printf 'leak:%s\n' libmpi libopen-pal libopen-rte libpmix libevent libhwloc mca_ >suppressions
export LSAN_OPTIONS=suppressions=$PWD/suppressions:print_suppressions=0
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:fast_unwind_on_malloc=0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
timed timeout -k 5 100 "$LOCKSTEP" train "${small[@]}" --hosts localhost:1,localhost:2 --share equal --trace --run both
is "two nodes are traced" "$status" 0
[ "$status" = 0 ] || test_note "$out" "$err"
is "with the same bits" "$(fingerprint "$out")" "$expected"
ok "every layer, device and bucket of both nodes, on one clock" python3 check.py both 2 1 2 6 "$seconds"
ok "what was waited for parameters is in the metrics of every step" json both/metrics.jsonl \
	'len([l for l in o if l["kind"] == "step" and l["exposed_s"] >= 0]) == 6'
ok "and in TensorBoard" grep -qa step/exposed_s both/events.out.tfevents.*

test_end

#!/bin/bash
# bench/elastic with stand-ins for lockstep and the lab: its figures, its verdict, and that it leaves nothing behind.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# Steps of 100 ms on its clock: longer by $SLOWER ms with --elastic; a snapshot adds $SNAPSHOT ms to the step behind it, a
# checkpoint $CHECKPOINT ms.
cat >lockstep <<'END'
#!/usr/bin/env python3
import json, os, sys
given = dict(zip(sys.argv, sys.argv[1:]))
cost = {name: float(os.environ.get(name, 0)) / 1e3 for name in ("SLOWER", "SNAPSHOT", "CHECKPOINT")}
if "FAILS" in os.environ and "--elastic" in sys.argv:
    sys.exit("out of luck")
os.makedirs(given["--run"])
now, extra, snapshots, checkpoints = 1000.0, 0, int(given.get("--snapshot-every", 0)), int(given["--ckpt-every"])
with open(given["--run"] + "/metrics.jsonl", "w") as file:
    def line(**what):
        print(json.dumps(what), file=file)
    for step in range(1, int(given["--steps"]) + 1):
        now, extra = now + 0.1 + extra + cost["SLOWER"] * ("--elastic" in sys.argv), 0
        line(kind="step", step=step, time=now)
        if snapshots and step % snapshots == 0:
            extra += cost["SNAPSHOT"]
            line(kind="snapshot", step=step, time=now, cost_s=extra)
        if step % checkpoints == 0:
            extra += cost["CHECKPOINT"]
            line(kind="checkpoint", step=step, time=now, stall_s=0.002)
END
cat >lab <<'END'
#!/bin/bash
echo "$*" >>"$PWD/calls"
case $1 in
check) [ -z "$NOLAB" ] || { echo "no lab here" >&2 && exit 1; } ;;
run) shift 3 && exec "$@" ;;
esac
END
chmod +x lockstep lab
mkdir tmp
export LOCKSTEP_LAB_TOOL=$PWD/lab TMPDIR=$PWD/tmp
measure() { "$SOURCE_DIR/bench/elastic" --lockstep ./lockstep --rounds 2 --models resnet18 "$@"; }

# A snapshot of 200 ms every 200 / (0.5 % of 100 ms) = 400 steps is 0.5 % of their time.
SLOWER=0.3 SNAPSHOT=200 CHECKPOINT=20 run measure --json
is "what is cheap enough meets the requirements" "$status" 0
echo "$out" >rows.json
ok "--elastic: steps between snapshots, and snapshots as often as a run takes them" json rows.json 'len(o["elastic"]) == 1 and all(
	abs(r["step_ms"] - 100) < 1e-3 and abs(r["between"] - 0.3) < 1e-3 and abs(r["snapshot_ms"] - 200) < 1e-3 and r["every"] in (400, 401) and
	abs(r["snapshots"] - 0.5) < 2e-3 and abs(r["cost"] - 0.8) < 2e-3 for r in o["elastic"])'
ok "checkpoints: all steps count, with as many devices as cores and one fewer" json rows.json '1 <= len(o["checkpoints"]) <= 2 and all(
	abs(r["step_ms"] - 100) < 1e-3 and abs(r["cost"] - 2) < 1e-3 and abs(r["stall_ms"] - 2) < 1e-3 for r in o["checkpoints"])'
is "the lab is removed" "$(sed -n '$p' calls | cut -d ' ' -f 1)" down
SLOWER=0.6 SNAPSHOT=200 run measure --only elastic
is "an elastic run that costs too much is a failure" "$status" 1
like "with a table" "$out" '^resnet18 +128 +100\.0 +\+0\.60 % +.* 1\.10 % +1 % +NO$'
CHECKPOINT=40 run measure --only checkpoints
is "and so are checkpoints" "$status" 1
like "with a table, too" "$out" '^resnet18 +128 +[0-9]+ +100\.0 +104\.0 +2 +4\.00 % +3 % +NO '
FAILS=1 run measure --only elastic
is "a run that fails ends it" "$status" 2
like "and says why" "$err" 'failed with 1: out of luck'
NOLAB=1 run measure
is "without a lab there is one table, and no success" "$status" 1
like "with the reason" "$err" '^note: --elastic was not measured: .*no lab here'
run measure --models vgg
is "a model that it does not have" "$status" 2
is "nothing is left behind" "$(ls -A tmp)" ""

test_end

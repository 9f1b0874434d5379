#!/bin/bash
# Files that older versions have written are read, and mean what they meant: tests/fixtures/v1/README.md.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

old=$SOURCE_DIR/tests/fixtures/v1

same_rows() { # FORECAST OLD-FORECAST: the same figures under the present names
	python3 - "$1" "$2" <<'PYTHON'
import json
import sys

new, old = (json.load(open(path, encoding="utf-8")) for path in sys.argv[1:])
assert (old["version"], new["version"]) == (1, 2), (old["version"], new["version"])
assert new["batch_per_device"] == old["batch"] and new["device_samples_per_s"] == old["device_per_s"]
assert len(new["rows"]) == len(old["rows"]) > 1
for now, before in zip(new["rows"], old["rows"]):
    before["strategy"] = before.pop("placement")
    assert now.pop("samples_per_s_low") < now["samples_per_s"] < now.pop("samples_per_s_high")
    assert now.pop("snapshot_every") == 0 and now.pop("fallback") == 0  # unknown then
    assert now == before, (now, before)
PYTHON
}

run "$LOCKSTEP" plan "$old/profile.json" --cluster "$old/cluster.json" --micro-batches 2 --json
is "a profile and a cluster file are read" "$status" 0
ok "and give the forecast they gave" same_rows .out "$old/forecast.json"
run "$LOCKSTEP" plan "$old/profile.json" --cluster "$old/probe.json" --json
is "a probe is read" "$status" 0
ok "and gives the forecast it gave" same_rows .out "$old/probe-forecast.json"

run "$LOCKSTEP" report "$old/results.json" "$old/forecast.json" --markdown
is "results and a forecast are read" "$status" 0
like "with their batch" "$out" 'batch size = 16'
like "and their strategies" "$out" 'allreduce'

run "$LOCKSTEP" bench "$old/recipe.json" --list
is "a recipe is read" "$status" 0
is "and makes the points it made" "$out" "bench/mlp/1/b16/local/31fe8d89
bench/mlp/2/b16/local/2cd9344a
bench/mlp/1/b8/local/2edae298
bench/mlp/2/b8/local/cce3d401
bench/mlp/1+1/b8/ps/3ffc7d51"
run "$LOCKSTEP" bench "$old/recipe.json" --quick --list
is "in its short form, too" "$out" "bench/mlp/1+1/b8/allreduce/9cba70aa
bench/mlp/1+1/b8/ps/3ffc7d51"

sed 's/"version": 1/"version": 2/' "$old/cluster.json" >new.json
run "$LOCKSTEP" plan "$old/profile.json" --cluster new.json
is "a new file does not have old names" "$status" 1
like "the error names the field" "$err" 'new.json: (net_ns_a_byte|letter_us) is not a field of this file'
sed 's/"version": 1/"version": 3/' "$old/profile.json" >newer.json
run "$LOCKSTEP" plan newer.json
like "a newer file than this program" "$err" 'newer.json: version is 3; this program reads 1 to 2'
test_end

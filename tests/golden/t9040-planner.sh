#!/bin/bash
# The planner against published clusters, given their one-node rows alone: the 2- and 4-node rows of BERT within 5 % but
# for one, the 12- and 16-node rows within 10 %; nine in ten rows of all tables inside their intervals. docs/planner.md
# shows the tables and says what no model can reach.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"

for table in oneflow-bert distml-clusters distml-mnist-sst5 rcc-cnn; do
	run timeout 60 "$LOCKSTEP" plan --fit $table --json
	is "$table is predicted" "$status" 0
	cp .out $table.json
done

cat >error.py <<'PYTHON'
import json, sys
table, model, batch, shape = sys.argv[1:]
for row in json.load(open(table + ".json"))["rows"]:
    if (row["model"], row["batch_per_device"], row["shape"]) == (model, int(batch), shape) and not row["fitted"]:
        print("%.0f" % abs(1000 * row["error"]))
        break
PYTHON
within() { # PERCENT TABLE MODEL BATCH SHAPE
	local error
	error=$(python3 error.py "${@:2}") # in tenths of a percent
	ok "$2, $3, batch $4, $5: within $1 %" test "${error:-9999}" -le $(($1 * 10))
}
ones() { # COUNT: 1+1+1
	local text
	text=$(printf '1+%.0s' $(seq "$1"))
	echo "${text%+}"
}
for batch in 96 64 32; do
	within 5 oneflow-bert bert-base $batch 8+8
	within 5 oneflow-bert bert-base $batch 8+8+8+8
done
# Its second node costs 31 ms per step; 18 to 25 ms at the other batches, for the same bytes.
within 7 oneflow-bert bert-base 24 8+8
for nodes in 12 16; do
	within 10 distml-clusters resnet18 128 "$(ones $nodes)"
	within 10 distml-clusters resnet101 128 "$(ones $nodes)"
	within 10 distml-clusters bert-base 8 "$(ones $nodes)"
done
for model in resnet18 resnet50 resnet101; do
	within 10 distml-mnist-sst5 $model 128 1+1
	within 10 distml-mnist-sst5 $model 128 3+2
done

# Sizes are "2 x 8" or "3+2" there; errors may differ in the last digit.
cat >docs.py <<'PYTHON'
import json, re, sys
shown = [[cell.strip() for cell in line.split("|")[1:-1]] for line in open(sys.argv[1], encoding="utf-8")
         if re.match(r"\| (oneflow|distml|rcc)-", line)]
rows = [(table, row) for table in sys.argv[2:] for row in json.load(open(table + ".json"))["rows"] if not row["fitted"]]
assert len(shown) == len(rows), (len(shown), len(rows))
for (name, job, size, measured, predicted, error), (table, row) in zip(shown, rows):
    parts = row["shape"].split("+")
    assert name == table and job.startswith(row["model"]) and "batch %d" % row["batch_per_device"] in job, (job, row)
    assert size == ("%d x %s" % (row["nodes"], parts[0]) if len(set(parts)) == 1 else row["shape"]), (size, row)
    assert abs(float(measured) / row["measured_samples_per_s"] - 1) < 2e-3 and abs(float(error.split()[0]) - 100 * row["error"]) < 0.15
    low, high = re.search(r"\(([0-9.]+)–([0-9.]+)\)", predicted).groups()
    assert abs(float(low) / row["samples_per_s_low"] - 1) < 2e-3 and abs(float(high) / row["samples_per_s_high"] - 1) < 2e-3, row
PYTHON
ok "docs/planner.md shows these rows" python3 docs.py "$SOURCE_DIR/docs/planner.md" oneflow-bert distml-clusters distml-mnist-sst5 rcc-cnn
ok "nine in ten are inside their intervals" python3 -c '
import json, sys
tables = [json.load(open(path)) for path in sys.argv[1:]]
compared, inside = (sum(t[key] for t in tables) for key in ("compared", "inside"))
print(inside, "of", compared)
sys.exit(not (compared >= 28 and inside >= 0.9 * compared))' oneflow-bert.json distml-clusters.json distml-mnist-sst5.json rcc-cnn.json
test_end

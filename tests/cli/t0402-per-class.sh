#!/bin/bash
# Metrics per class: what eval counts is what the logits say, on any devices.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

run "$LOCKSTEP" train --model cnn --data glyphs --samples 1200 --test-samples 300 --steps 12 --batch 60 --run run --quiet
is "a run" "$status" 0
for devices in 1 3; do
	run "$LOCKSTEP" eval run --batch 32 --devices $devices --per-class --metrics metrics-$devices.json --logits logits.safetensors
	is "eval on $devices devices" "$status" 0
	tail -n +2 .out >table-$devices
done
ok "the same counts" cmp metrics-1.json metrics-3.json
ok "and the same tables" cmp table-1 table-3
like "top-5 accuracy" "$out" '^top-5 accuracy: 0\.[0-9]{4}$'
like "a line per class" "$out" '^9 +[0-9]+ +[01]\.[0-9]{4} +[01]\.[0-9]{4} +[01]\.[0-9]{4}$'

cat >check.py <<'PYTHON'
"""metrics-1.json is what follows from logits.safetensors."""
import json, struct

raw = open("logits.safetensors", "rb").read()
size = struct.unpack("<Q", raw[:8])[0]
head, data = json.loads(raw[8:8 + size]), raw[8 + size:]


def tensor(name, form):
    begin, end = head[name]["data_offsets"]
    return struct.unpack("<%d%s" % ((end - begin) // 4, form), data[begin:end])


labels, flat = tensor("labels", "i"), tensor("logits", "f")
n, classes = len(labels), len(flat) // len(labels)
confusion = [[0] * classes for _ in range(classes)]
top5 = 0
for i, label in enumerate(labels):
    row = flat[i * classes:(i + 1) * classes]
    order = sorted(range(classes), key=lambda c: (-row[c], c))
    confusion[label][order[0]] += 1
    top5 += label in order[:5]
m = json.load(open("metrics-1.json"))
assert m["confusion"] == confusion, m["confusion"]
assert abs(m["top_accuracy"] - top5 / n) < 1e-8
assert abs(m["accuracy"] - sum(confusion[c][c] for c in range(classes)) / n) < 1e-8
for c in range(classes):
    predicted, samples, right = sum(r[c] for r in confusion), sum(confusion[c]), confusion[c][c]
    precision, recall = right / predicted if predicted else 0, right / samples if samples else 0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0
    found = m["classes"][c]
    assert (found["support"], found["predicted"], found["correct"]) == (samples, predicted, right), found
    for name, value in (("precision", precision), ("recall", recall), ("f1", f1)):
        assert abs(found[name] - value) < 1e-8, (name, found, value)
PYTHON
ok "they are those of the logits" python3 check.py
run "$LOCKSTEP" eval run --save
is "eval --save" "$status" 0
ok "keeps them with the run" cmp run/eval.json metrics-1.json
run "$LOCKSTEP" report run --markdown
like "the report has them" "$out" '^### run: test metrics$'
like "a line per class" "$out" '^\| 9 +\| [0-9]+ +\| [01]\.[0-9]{4} +\| [01]\.[0-9]{4} +\| [01]\.[0-9]{4} +\|$'
fails_with "a file keeps nothing" 2 '--save is for a run directory, and run/ckpt/.* is none: use --metrics FILE' \
	"$LOCKSTEP" eval run/ckpt/step-000000012/model.safetensors --save
fails_with "a place that cannot be" 1 'nowhere/m.json' "$LOCKSTEP" eval run --metrics nowhere/m.json

run "$LOCKSTEP" train --model transformer --layers 1 --width 32 --heads 2 --data babble --samples 200 --test-samples 50 --steps 2 --run text --quiet
run "$LOCKSTEP" eval text --per-class
is "text" "$status" 0
like "has names" "$out" '^4 very positive +[0-9]+'
unlike "five classes have no top-5" "$out" 'top-5'

# A class that the test data does not have, and that nothing is taken for, has no F1.
mkdir three
awk 'BEGIN { print "x,label"; for (i = 0; i < 300; i++) printf "%d,%s\n", 10 * (i % 3) + i % 2, substr("abc", i % 3 + 1, 1) }' >three/train.csv
awk 'BEGIN { print "x,label"; for (i = 0; i < 30; i++) printf "%d,%s\n", 10 * (i % 2), substr("ab", i % 2 + 1, 1) }' >three/test.csv
run "$LOCKSTEP" train --model mlp --data three --epochs 30 --batch 30 --lr 0.01 --keep-best f1 --run absent
like "the best macro F1 is that of two classes" "$out" '^Best macro F1: 1\.0000 '
run "$LOCKSTEP" eval absent --per-class
like "the third is there" "$out" '^2 c +0 +0\.0000 +0\.0000 +0\.0000$'
like "and does not count" "$out" '^macro F1: 1\.0000$'
run "$LOCKSTEP" eval absent --save
run "$LOCKSTEP" report absent --markdown
like "nor in the means of the report" "$out" '^\| \*{0,2}mean\*{0,2} +\| \*{0,2}30\*{0,2} +\| (\*{0,2}1\.0000\*{0,2} +\| ?){3}$'

# More classes than counts are kept for: eval.json has what there is.
mkdir many
python3 - <<'PYTHON'
import struct
for prefix, labels in (("train", (0, 4096)), ("t10k", (0, 1))):
    with open("many/%s-images-idx3-ubyte" % prefix, "wb") as to:
        to.write(struct.pack(">IIII", 0x803, 2, 4, 4) + bytes(range(32)))
    with open("many/%s-labels-idx1-short" % prefix, "wb") as to:
        to.write(struct.pack(">II", 0xb01, 2) + struct.pack(">hh", *labels))
PYTHON
run "$LOCKSTEP" train --model mlp --data many --steps 1 --batch 2 --run wide --quiet
is "4,097 classes" "$status" 0
fails_with "have no table of classes" 1 'counts per class are kept for at most 4096 classes' "$LOCKSTEP" eval wide --per-class
run "$LOCKSTEP" eval wide --save
is "but are saved" "$status" 0
like "and a message reports it" "$err" 'wide/eval.json has loss and accuracy alone'
ok "with loss and accuracy" json wide/eval.json "o['samples'] == 2 and 'loss' in o and 'accuracy' in o and 'classes' not in o"

test_end

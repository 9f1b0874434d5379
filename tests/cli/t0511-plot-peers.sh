#!/bin/bash
# bench/plot-peers: the picture of README.md is drawn from figures of docs/benchmarks.md, and follows what bench/peers --json prints.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

plot=$SOURCE_DIR/bench/plot-peers
run "$plot" "$SOURCE_DIR/docs/speed.json"
is "docs/speed.json is drawn" "$status" 0
ok "docs/speed.svg is that picture" cmp .out "$SOURCE_DIR/docs/speed.svg"
python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' .out
is "it is XML" "$?" 0

# Each of its figures is in the newest table, in the row of its model and batch.
cat >figures.py <<'END'
import json, re, sys
report, page = json.load(open(sys.argv[1])), open(sys.argv[2], encoding="utf-8").read()
section = page.split("### PyTorch 2.15, one core of an AMD EPYC (Zen 5)")[1].split("\n### ")[0]
rows = {}
for line in section.splitlines():
    cells = [cell.strip(" *") for cell in line.strip("|").split("|")]
    if len(cells) == 8 and cells[3].endswith("×"):
        rows[cells[0].replace("×", "x")] = cells
def number(text):
    return float(text.replace(",", "").rstrip("×"))
for point in report["points"]:
    words, size = point["model"].split(), point["batch"]
    found = [cells for name, cells in rows.items() if name.startswith(words[0]) and (
        name == f"{point['model'].replace(' ', ', ', 1)}, {size}" or f"{size} x {words[-2:][0]} tokens" in name)]
    assert len(found) == 1, point
    first = 1 if point["precision"] == "fp32" else 4
    theirs, ours, ratio = found[0][first:first + 3]
    assert [peer["samples_per_s"] for peer in point["peers"]] == [number(n) for n in re.split(", ", theirs)], point
    assert (point["lockstep"]["samples_per_s"], point["ratio"]) == (number(ours), number(ratio)), point
print(len(report["points"]))
END
run python3 figures.py "$SOURCE_DIR/docs/speed.json" "$SOURCE_DIR/docs/benchmarks.md"
is "its figures are those of docs/benchmarks.md" "$out$err" 12
like "and so are those of README.md" "$(tr '\n' ' ' <"$SOURCE_DIR/README.md")" 'Zen 5 .* 3\.5 times .* BERT-base 2\.2 times'

cat >peers.json <<'END'
{"machine": {"cpu": "A <small> CPU"}, "torches": [{"torch": "3.1.4+cpu"}], "points": [
 {"model": "cnn", "batch": 64, "threads": 2, "precision": "fp32", "peers": [{"label": "torch", "samples_per_s": 50}, {"label": "torch cl", "samples_per_s": 100}], "lockstep": {"samples_per_s": 250}, "ratio": 2.4},
 {"model": "cnn", "batch": 64, "threads": 2, "precision": "bf16", "peers": [{"label": "torch bf16", "samples_per_s": 200}], "lockstep": {"samples_per_s": 150}},
 {"model": "cnn", "batch": 64, "threads": 2, "precision": "bf16-amx", "peers": [{"label": "torch bf16", "samples_per_s": 200}], "lockstep": {"samples_per_s": 500}},
 {"model": "alone", "batch": 1, "threads": 1, "precision": "fp32", "peers": [{"label": "torch", "samples_per_s": 5}]}]}
END
run "$plot" peers.json
like "the machine and the version" "$out" 'Lockstep and PyTorch 3\.1 on one core of A &lt;small&gt; CPU<'
like "a point" "$out" '>cnn, batch 64, 2 threads<'
is "its bars are relative to the fastest in fp32" "$(sed -nE 's/.*<rect x="[0-9]+" y="[0-9]+" width="([0-9]+)" height="11".*/\1/p' <<<"$out" | xargs)" "80 200 160 400"
is "with rates and ratios, of two bf16 the faster" "$(sed -nE 's/.*font-size="11">([0-9][^<]*)<.*/\1/p' <<<"$out" | xargs)" "100 250 (2.4×) 200 500 (2.5×)"
unlike "a point without Lockstep is left out" "$out" 'alone'
echo '{"points": []}' >none.json
run "$plot" none.json
like "a file without points" "$status $err" '^1 .*no point of the first table'
echo '{' >bad.json
run "$plot" bad.json
like "another file" "$status $err" '^1 .*bad.json is not what .bench/peers --json. prints'
ok "no file was left in the sources" [ ! -e "$SOURCE_DIR/bench/__pycache__" ]

test_end

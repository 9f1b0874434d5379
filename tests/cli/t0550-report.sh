#!/bin/bash
# lockstep report: every form of table, flags, mixed inputs, what is malformed, and names that are markup.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

python3 "$SOURCE_DIR/tests/browser/make_results.py" data || exit 1

markdown() { "$LOCKSTEP" report "$@" --markdown; }
has() { like "$1" "$2" "$3"; }
change() { # FROM TO PYTHON: a copy of results with something else in it
	python3 -c 'import json, sys
o = json.load(open(sys.argv[1]))
exec(sys.argv[3])
json.dump(o, open(sys.argv[2], "w"))' "$@"
}

# ---- throughput
out=$(markdown data/throughput)
has "throughput: a heading a batch" "$out" '^### batch size = 96$'
has "throughput: the published columns" "$out" \
	'^\| Nodes \| Devices per node \| Batch per device \| Figure +\| Samples/s \| Speedup \| Spread within \|$'
has "throughput: one device" "$out" '^\| 1 +\| 1 +\| 96 +\| measured \| 149.8 +\| 1.00 +\| 0.5 % +\|$'
has "throughput: medians of repeats and speedups over them" "$out" '^\| 4 +\| 8 +\| 96 +\| measured \| 4531.1 +\| 30.25 +\| 0.5 % +\|$'
is "throughput: all repeats" "$(grep -cE '^\| 4 +\| 8 +\| 96 +\| measured \| [0-9.]+ +\|$' <<<"$out")" 7
has "a speedup above ideal is marked" "$out" '^\| 1 +\| 8 +\| 24 +\| measured \| 1207.4 +\| 8.60 †1 \| 0.5 % +\|$'
has "and explained" "$out" '^†1 a speedup of 8.60 on 8 devices is above ideal; likely a slow one-device baseline'
is "nothing else is marked" "$(grep -c '†' <<<"$out")" 2
has "the test bed" "$out" '^\| lab1 \| Example CPU @ 2.40GHz \| 16 +\| 98.50 +\| 68.7 GB \| 100gbit +\|$'
has "versions" "$out" '^\| Version \| 0.1.0 +\| xsmm +\| avx512 \| Open MPI v4.1.4 \| Linux 6.1.0 \|$'

# ---- epochs
out=$(markdown data/epochs)
has "epochs: a heading of one device" "$out" '^#### lm6: 120.70 samples/s$'
has "epochs: host, rate, speedup and baseline" "$out" '^#### lm6: 234.16 samples/s, 1.94 times one device \(120.70\)$'
has "epochs: each host has its own baseline" "$out" '^#### lm1: 158.77 samples/s, 1.94 times one device \(81.84\)$'
has "epochs: two nodes by their first host" "$out" '^#### lm1:3, lm6:2: 343.73 samples/s, 4.2 times one device \(81.84\)$'
has "epochs: the headline rate, ours and as the original counts" "$out" \
	'^- Headline rate: 120.70 samples/s \(measured; median of steps\); 120.61 since the last epoch began, as the original counts$'
has "epochs: rates of the epoch and of the interval" "$out" '^- Step 200: 108.31 samples/s since the epoch began, 108.31 since step 0$'
has "epochs: the first is a mean over time, not of rates" "$out" '^- Step 400: 111.24 samples/s since the epoch began, 114.34 since step 200$'
has "epochs: it begins anew after 469 steps" "$out" '^- Step 600: 117.43 samples/s since the epoch began, 117.43 since step 400$'
has "epochs: with the steps of this epoch alone" "$out" '^- Step 800: 118.39 samples/s since the epoch began, 119.02 since step 600$'
unlike "epochs: of the data, which needs no word" "$out" 'passes over the data'
change data/epochs/results.json worker.json 'for p in o["points"]: p["job"]["epoch"] = "worker"'
worker=$(markdown worker.json)
has "epochs: of a worker, which is said" "$worker" '^An epoch is that of a worker, as in the original: every device reads all data'
has "epochs: in the summary" "$worker" '^\| resnet18 \| mnist \| lm1, lm6 \| 2 +\| 3\+2 +\| 128 +\| measured \| 343.73 +\| 4.20 +\| 5 +\|'
has "epochs: and at each" "$worker" '^- Epoch 4 \(5 passes over the data\): [0-9.]+ s, test'
has "epochs: two passes of 235 steps are an epoch of 470" "$worker" '^- Step 400: 215.81 samples/s since the epoch began, 221.81 since step 200$'
unlike "epochs: and not of 235" "$worker" '^- Step 400: 221.81 samples/s since the epoch began'
has "epochs: epochs as training logs them" "$out" '^- Epoch 4: 497.10 s, test 27.62 s, test accuracy 0.9658$'
is "epochs: in the order they happened" "$(grep -A 20 '^#### lm6: 120.70 samples/s$' <<<"$out" | grep '^- [SE]' | head -n 6 | cut -d : -f 1 | cut -c 3- | tr '\n' ' ')" \
	"Step 200 Step 400 Epoch 1 Step 600 Step 800 Epoch 2 "
has "epochs: a summary" "$out" '^\| resnet18 \| mnist \| lm1, lm6 \| 2 +\| 3\+2 +\| 128 +\| measured \| 343.73 +\| 4.20 +\|'
is "epochs: each point once" "$(grep -c '^#### ' <<<"$out")" 14

# ---- walltime
out=$(markdown data/walltime)
has "walltime: the published columns" "$out" \
	'^\| Nodes \| Devices per node \| Epochs +\| Batch per device \| Steps +\| Figure +\| Runtime +\| Speedup +\| Hosts +\|$'
has "walltime: a row a node" "$out" '^\| 1 +\| 1 +\| 10 +\| 512 +\| 140625 +\| measured +\| 15:23:05 +\| - +\| gn01 +\|$'
has "walltime: averages in bold" "$out" '^\| \*\*1\*\* +\| \*\*2\*\* +\| \*\*10\*\* \| .*\*\*8:47:35\*\* +\| \*\*1.87\*\* \| \*\*Avg\*\*'
has "walltime: hosts folded" "$out" '^\| 3 .*\| 6:05:21 +\| 2.69 +\| gn\[01-03\] +\|$'
has "walltime: hosts apart" "$out" '\| gn\[03,05\] +\|$'

change data/walltime/results.json slow.json 'slow = [p for p in o["points"] if p["job"]["devices"] == 1][1]
slow["job"]["speed"] = 0.5
for r in slow["repeats"]: r["wall_s"] *= 2'
change slow.json without.json 'o["points"] = [p for p in o["points"] if p["job"].get("speed", 0) != 0.5]'
is "walltime: a node that was made slower is in no average" \
	"$(markdown slow.json | grep Avg)" "$(markdown without.json | grep Avg)"

# ---- launches: three of point 1, of which one failed and one was repeated; point 2 was always busy
# shellcheck disable=SC2016
launched='def launch(**change): return dict(dict(wall_s=1.0, load=0.05, steal=0.001, mhz=2400.0, busy=0, again=0, reason=""), **change)
for i, p in enumerate(o["points"]):
	rate = p["repeats"][0]["samples_per_s"]
	def repeat(f, k): return dict(p["repeats"][0], samples_per_s=rate * f, launch=k)
	p["launches"] = [launch(), launch(), launch()]
	p["repeats"] = [repeat(f, k) for k, f in enumerate((0.98, 1.0, 1.04)) for f in (f * 0.99, f, f * 1.01)]
	if i == 1:
		p["launches"] = [launch(), launch(reason="exit status 7 <b>"), launch(load=0.8, busy=1), launch(again=1)]
		p["repeats"] = [repeat(1.0, 0), repeat(0.5, 2), repeat(1.1, 3)]
	if i == 2:
		p["launches"] = [launch(steal=0.04, busy=1)]
		p["repeats"] = [repeat(1.0, 0)]'
change data/throughput/results.json launches.json "o['version'] = 3
$launched"
out=$(markdown launches.json)
has "launches: the columns" "$out" '^\| Nodes \| .* \| Speedup +\| Launches +\| Spread within \| Spread between \|$'
has "launches: how many, and spreads within and between" "$out" '^\| 1 +\| 1 +\| 96 +\| measured \| 149.8 +\| 1.00 +\| 3 +\| 2.0 % +\| 6.0 % +\|$'
has "launches: one failed, one was repeated" "$out" '^\| 1 +\| 8 +\| 96 +\| measured \| [0-9.]+ +\| 8.12 +\| 2 of 3 †1 +\| - +\| 9.5 % +\|$'
has "launches: which is explained" "$out" \
	'^†1 launch 2 failed: exit status 7 &lt;b&gt;; launch 3 ran on a busy machine and was repeated\.$'
has "launches: none was quiet" "$out" '^†2 the machine was busy in every launch \(load and steal are in the table of all repeats\)\.$'
has "launches: all repeats, with load and steal" "$out" '^\| 1 +\| 1 +\| 96 +\| measured \| 3 +\| 157.3 +\| 0.05 +\| 0.1 % +\| quiet +\|$'
has "launches: repeats of a busy one" "$out" '^\| 1 +\| 8 +\| 96 +\| measured \| 3 +\| 579.3 +\| 0.80 +\| 0.1 % +\| busy, repeated +\|$'
has "launches: a failed one" "$out" '^\| 1 +\| 8 +\| 96 +\| measured \| 2 +\| - +\| 0.05 +\| 0.1 % +\| failed †1 +\|$'
change data/strategies/results.json launches.json "$launched"
out=$(markdown launches.json)
has "strategies: a table of launches" "$out" '^\| resnet18 +\| - +\| - +\| lab1 +\| 1 +\| 2 +\| 128 +\| measured \| 2 of 3 †1 +\| - +\| 9.5 % +\|$'
has "strategies: and a note on the rate" "$out" '^\| 1 +\| 2 +\| measured \| [0-9.]+ †1 '
change data/epochs/results.json launches.json "$launched"
has "epochs: launches" "$(markdown launches.json)" '^\| resnet18 \| mnist \| lm1 .*\| 2 of 3 †[0-9] +\| - +\| 9.5 % +\|$'
change data/walltime/results.json launches.json "$launched
for k, s in enumerate((100, 900, 300)): o['points'][1]['repeats'][k]['wall_s'] = s
o['points'] = o['points'][1:2]"
out=$(markdown launches.json)
has "walltime: the average is of quiet launches" "$out" '^\| \*\*1\*\* .*\*\*0:03:20\*\* .*\*\*Avg\*\*'
has "walltime: a busy run is shown and marked" "$out" '\| 0:15:00 †1 +\|'
has "walltime: which is explained" "$out" '^†1 the machine was busy: not in the average\.$'
has "walltime: a table of launches" "$out" '\| 2 of 3 †1 '
change launches.json bad.json 'o["points"][0]["repeats"][0]["launch"] = 1'
fails_with "a repeat of a launch that failed" 1 "bad.json: points\[0\].repeats\[0\].launch is 1: there is no such launch, or it failed" \
	"$LOCKSTEP" report bad.json

# ---- differences from the original
change data/throughput/results.json original.json 'for i, p in enumerate(o["points"]):
	p["settings"] = [dict(name="optimizer", original="adamw", ours="adam"), dict(name="clip-norm", original="1", ours="1.0"),
		dict(name="data", original="Wikipedia | <b>", ours="")]
	p["job"]["replay"] = int(i < 3)'
has "what differs from the original" "$(markdown original.json)" \
	'^Differs from the original in: optimizer \(adam, there adamw\); data \(none, there Wikipedia \\\| &lt;b&gt;\); compute \(simulated, there real, 3 of 16 points\)\.$'
change data/throughput/results.json original.json 'for p in o["points"]: p["settings"] = [dict(name="clip-norm", original="1", ours="1.0")]'
has "or nothing" "$(markdown original.json)" '^Differs from the original in: nothing that the recipe records\.$'
unlike "without an original there is none" "$(markdown data/throughput)" 'Differs'

# ---- strategies
out=$(markdown data/strategies)
has "strategies: baselines" "$out" '^\| +\| Figure +\| resnet18 \(samples/s\) \| bert-mini \(tokens/s\) \|$'
has "strategies: words of text" "$out" '^\| lab1 \| measured \| 74.30 +\| 27392.0 +\|$'
has "strategies: settings" "$out" '^### Up to 3 nodes, up to 12 devices, 1gbit: resnet18 \(samples/s\)$'
has "strategies: AllReduce, PS and ideal" "$out" '^\| 2 +\| 8 +\| measured \| 416.08 +\| 309.09 +\| 594.40 \| 5.60 +\| 4.16 +\|$'
change data/strategies/results.json other.json 'for p in o["points"]:
	if p["job"]["strategy"] == "ps": p["job"]["strategy"] = "ps-async" if p["job"]["nodes"] > 2 else "mpi"'
other=$(markdown other.json)
has "strategies: each under its own name" "$other" '^\| Nodes +\| Devices +\| Figure +\| AllReduce +\| PS-async +\| MPI +\| Ideal +\| AllReduce speedup +\| PS-async speedup +\| MPI speedup +\|$'
unlike "strategies: and no other" "$other" '\| PS +\|'
has "strategies: by nodes" "$out" '2 nodes +\| Speedup \| 3 nodes'
has "a rate above the wire is marked" "$out" '^\| 2 +\| 8 +\| measured \| 153395.2 †1'
has "and explained" "$out" '†1 impossible: the gradients, 45.0 MB each way per step, would need 6.74 Gbit/s of a 1gbit link'

change data/strategies/results.json replayed.json 'o["points"][3]["job"]["replay"] = 1'
out=$(markdown replayed.json)
has "a simulated figure says so, and has no speedup over a measured device" "$out" \
	'^\| 1 +\| 8 +\| simulated \| 576.57 †1 +\| - +\| - +\|$'
has "for which there is a reason" "$out" '^†1 no speedup: this row is simulated, the row of one device measured;'
change replayed.json based.json 'o["points"].append(dict(o["points"][0], key="r", samples_per_s=72.0, samples_per_s_min=72.0,
	samples_per_s_max=72.0, repeats=[dict(r, samples_per_s=72.0) for r in o["points"][0]["repeats"]],
	job=dict(o["points"][0]["job"], replay=1)))'
out=$(markdown based.json)
has "but over a replayed one" "$out" '^\| 1 +\| 8 +\| simulated \| 576.57 +\| 576.00 \| 8.01 +\|$'
has "which is a baseline of its own" "$out" '^\| lab1 \| simulated \| 72.00 +\| - +\|$'
has "beside the measured one" "$out" '^\| 1 +\| 4 +\| measured +\| 288.28 +\| 297.20 \| 3.88 +\|$'
has "which is explained" "$out" '^Figures are measured: [^;]*; simulated: compute is simulated from a profile, .*communication is real\.$'
unlike "and only where there is one" "$(markdown data/strategies)" 'Figures are'

# ---- one kind of figure a row, in every form
kinds() { # stdin: Markdown; prints rows that name more than one kind of figure, or none where the table has the column
	awk -F'|' '/^\|/ { if (!table) { column = 0; for (i = 1; i <= NF; i++) if ($i ~ /^ *Figure *$/) column = i; table = 1; next } }
		!/^\|/ { table = 0 }
		table && /^\| -/ { next }
		table && column { n = 0; for (i = 1; i <= NF; i++) n += $i ~ /(measured|simulated|computed|predicted|published)/; if (n != 1) print }'
}
for form in throughput epochs walltime strategies; do
	change "data/$form/results.json" "mixed-$form.json" 'for i, p in enumerate(o["points"]):
	p["job"]["replay"] = i % 2'
	change "mixed-$form.json" "bench-$form.json" 'for p in o["points"]: p["job"].update(kind="bench", epochs=2, samples=1000)'
	out=$(markdown "mixed-$form.json" "bench-$form.json" data/forecast.json --compare published)
	is "$form: every row has one kind of figure" "$(kinds <<<"$out")" ""
	has "$form: with simulated ones" "$out" '^\|.*\| simulated +\|'
	has "$form: the legend has what occurs" "$out" '^Figures are .*measured: '
done
has "walltime: computed from a measured rate" "$(markdown bench-walltime.json)" '^\|.*\| computed +\| 0:00:'
has "walltime: and from a simulated one" "$(markdown bench-walltime.json)" '^\|.*\| computed \(sim.\) +\| 0:00:'
unlike "walltime: nothing measured there" "$(markdown bench-walltime.json | grep -v '^- \|^Sweep\|^Runtime')" 'measured'
change data/strategies/results.json mixed.json 'for p in o["points"]: p["job"]["replay"] = int(p["job"]["strategy"] == "ps")'
out=$(markdown mixed.json)
has "strategies: AllReduce measured" "$out" '^\| 2 +\| 8 +\| measured +\| 416.08 +\| - +\| 594.40 \| 5.60 +\|$'
has "strategies: PS simulated, in another row and without the other's ideal" "$out" '^\| 2 +\| 8 +\| simulated +\| - +\| 309.09 †1 +\| - +\| - +\|$'
change data/throughput/results.json mixed.json 'for p in o["points"]: p["job"]["replay"] = int(p["job"]["nodes"] > 1)'
"$LOCKSTEP" report mixed.json --out mixed.html >/dev/null
has "a plot has a curve of its own for what is simulated" "$(cat mixed.html)" '<td class="w">batch 96, simulated</td><td>32</td>'
unlike "and no other has such points" "$(cat mixed.html)" '<td class="w">batch 96</td><td>(16|32)</td>'
change data/strategies/results.json noted.json 'o["points"][-1]["tokens_per_s"] = 0.0'
is "what reads no text counts its baseline's words" "$(markdown noted.json)" "$(markdown data/strategies)"

# ---- states, names, runs
out=$(markdown data/states)
has "a point not run yet" "$out" '^- cnn/2: not run yet$'
has "a point skipped, with its reason" "$out" '^- cnn/4: skipped, 4 devices need 4 cores, there are 2$'
has "a point failed, with its reason" "$out" '^- cnn/8: failed, lockstep bench: exit status 1$'
has "and counted" "$out" '1 of 4 points of [a-z0-9]+ done, 1 not run yet, 1 skipped, 1 failed'
out=$(markdown data/hostile)
unlike "names are no markup in Markdown" "$out" '<|[^\\]\|`|[^\\]\]\('
change data/states/results.json nothing.json 'o["points"] = []'
run "$LOCKSTEP" report nothing.json --markdown
is "a sweep without a point" "$status" 0
has "says so" "$out" '0 of 0 points done'
change data/states/results.json failed.json 'o["points"] = o["points"][1:]'
ok "a sweep of failures alone" markdown failed.json
for form in throughput epochs walltime strategies; do
	change data/states/results.json "none-$form.json" "o['points'] = []; o['table'] = '$form'"
	change data/states/results.json "failed-$form.json" "o['points'] = o['points'][1:]; o['table'] = '$form'"
	ok "$form of nothing, of failures" markdown "none-$form.json" "failed-$form.json"
	for data in throughput epochs walltime strategies; do
		change "data/$data/results.json" "$data-as-$form.json" "o['table'] = '$form'"
		ok "$data as $form" "$LOCKSTEP" report "$data-as-$form.json" --out any.html
	done
done
out=$(markdown data/run)
has "a run" "$out" '^\| run \| cnn +\| glyphs \| lab1 +\| 1 +\| 2 +\| 128 +\| measured \| 2666.67 +\| 0.750 +\| 0.250 +\| 0.8000 +\|$'
has "its epochs" "$out" '^- Epoch 3: 0.75 s, test 0.25 s, test accuracy 0.8000$'
for strategy in allreduce ps ps-async mpi; do # a run on two nodes
	cp -r data/run "run-$strategy"
	change data/run/run.json "run-$strategy/run.json" "o['settings'].update({'global-batch': 512, 'strategy': '$strategy'}); del o['settings']['placement']"
done
out=$(markdown run-allreduce run-ps run-ps-async run-mpi)
for row in "allreduce AllReduce" "ps PS" "ps-async PS-async" "mpi MPI"; do
	has "a run of ${row% *} is shown as that" "$out" "^\| run-${row% *} +\| cnn +\| glyphs +\| this host +\| ${row#* } +\| 2 "
done
cp -r data/run torn
printf '{"kind": "st' >>torn/metrics.jsonl
is "a line being written is left out" "$(markdown torn)" "$(markdown data/run | sed 's/| run |/| torn |/; s/^| Run |/| Run  |/; s/^| --- |/| ---- |/; s/^### run:/### torn:/; s/^- run:/- torn:/')"
rm torn/metrics.jsonl
has "a run that has only begun" "$(markdown torn)" '^- torn: not run yet, the run has no rate and no epoch yet$'
ok "a run of lockstep train" "$LOCKSTEP" train --model cnn --data glyphs --samples 600 --test-samples 100 --epochs 2 --run real
has "is reported" "$(markdown real)" '^- Epoch 2: [0-9.]+ s, test [0-9.]+ s, test accuracy [0-9.]+$'
has "with the number of its epochs" "$(markdown real)" '^- real: cnn on glyphs, .*, 2 epochs: test accuracy'
ok "a run of fewer steps than are logged" "$LOCKSTEP" train --model mlp --data glyphs --samples 256 --test-samples 100 --batch 64 --steps 3 \
	--run brief
out=$(markdown brief)
has "has its steps, accuracy and fingerprint" "$out" '^- brief: mlp on glyphs, .*, 3 steps \(0\.75 epochs\): test accuracy [0-9.]+, no rate: .*, fingerprint xxh64 [0-9a-f]{16} after step 3$'
has "and is not called unfinished" "$out" '^- brief: ended, no rate'
unlike "anywhere" "$out" 'not run yet'
ok "the same run on two devices" "$LOCKSTEP" train --model cnn --data glyphs --samples 600 --test-samples 100 --epochs 2 --run twin \
	--devices 2 --micro-batch 64 --batch 128
ok "and on one" "$LOCKSTEP" train --model cnn --data glyphs --samples 600 --test-samples 100 --epochs 2 --run single --devices 1 --micro-batch 64 \
	--batch 128
out=$(markdown single twin)
print=$(python3 -c 'import json; print(json.load(open("single/run.json"))["end"]["fingerprint"])')
like "the page has the fingerprint of a run" "$out" "^- Fingerprint after step 10: xxh64 $print$"
like "and says that two are the same" "$out" "^- Fingerprint after step 10: xxh64 $print, the same bits as (single|twin)$"
ok "a run that ends in its first epoch" "$LOCKSTEP" train --model cnn --data glyphs --samples 6000 --test-samples 100 --steps 6 \
	--log-every 2 --run short
has "has the rate it logged" "$(markdown short)" '^\| short \| cnn .*\| [0-9.]+ +\| [0-9.]+ +\| [0-9.]+ +\|$'
has "and the length that was trained, not the unused number of epochs" "$(markdown short)" '^- short: cnn on glyphs, .*, 6 steps \([0-9.]+ epochs?\): test accuracy'
has "and says where it ended" "$(markdown short)" '^- Ended in epoch 1, test [0-9.]+ s, test accuracy [0-9.]+$'

# ---- forecasts
out=$(markdown data/strategies data/forecast.json)
has "predicted" "$out" '^\| allreduce +\| 1gbit +\| fp32 \| 2 +\| 8 +\| - +\| predicted \| 407.16 +\| - +\| 68 % +\| wire +\|'
has "and measured below it" "$out" '^\| allreduce +\| 1gbit +\| fp32 \| 2 +\| 8 +\| - +\| measured +\| 416.08 +\| -2.1 % +\| 70 % +\| - +\|'
has "the fastest bucket alone" "$(grep -cE '^\| allreduce +\| 1gbit +\| fp32 \| 2 .*predicted' <<<"$out")" '^1$'
unlike "what is near needs no word" "$out" 'predicted (faster|slower) than it was:'
has "what the error is of" "$out" 'is predicted faster than it was'
change data/forecast.json far.json 'for r in o["rows"]: r["samples_per_s"] *= 1.47'
has "a profile of another machine explains what is far off" "$(markdown data/strategies far.json)" \
	'^†[0-9]+ predicted faster than it was: one device does 109.2 samples/s in the profile, and 74.3 measured here'
change data/forecast.json links.json 'for r in o["rows"]:
	if r["nodes"] > 1: r["samples_per_s"] *= 0.5; r["efficiency"] *= 0.5; r["exposed_ms"] *= 9'
has "or links do, or computing" "$(markdown data/strategies links.json)" \
	'^†[0-9]+ predicted slower than it was: [0-9.]+ ms of computing, of which [0-9.]+ were measured, and .* Links that are'
has "predicted alone" "$(markdown data/forecast.json)" '^\| allreduce +\| 1gbit +\| fp32 \| 64 +\| 256 '

# ---- published
out=$(markdown data/throughput --compare published)
has "published" "$out" '^\| bert-base \| - +\| 4 +\| 8 +\| 96 +\| published \| 4456.00 +\| 29.75 +\|$'
has "and ours below it" "$out" '^\| bert-base \| ours: lab1, lab2, lab3, lab4 +\| 4 +\| 8 +\| 96 +\| measured +\| 4531.09 +\| 30.25 +\|$'
unlike "tables that nothing compares with are left out" "$out" "bigmnist"
has "and named" "$out" '^Not shown, because nothing here was measured like it: .*small CNN on MNIST and bigMNIST'
out=$(markdown data/throughput --compare rcc-cnn)
has "a printed average" "$out" '^\| \*\*cnn\*\* \| \*\*bigmnist\*\* \| \*\*Avg\*\* +\| \*\*4\*\* +\| \*\*1\*\* +\| \*\*512\*\* +\| \*\*published\*\* \| \*\*35158\*\* +\| \*\*4:46:05\*\* +\| \*\*3.07\*\* †[0-9]+ +\|$'
has "and what its rows give below it" "$out" '^\| cnn +\| bigmnist +\| mean of the 4 rows +\| 4 +\| 1 +\| 512 +\| computed +\| 35158 +\| 4:19:47 +\| 3.54 +\|$'
has "of one device, too" "$out" '^\| cnn +\| bigmnist +\| mean of the 9 rows +\| 1 +\| 1 +\| 512 +\| computed +\| 140626 +\| 15:20:10 +\| 1.00 +\|$'
is "below every average" "$(grep -cE '^\| cnn +\| bigmnist +\| mean of the [0-9] rows ' <<<"$out")" 7
has "a row corrected, with a note" "$out" '^†[0-9]+ the table says batch 64; its 625 steps are batches of 48'
has "an average that cannot be one" "$out" '^†[0-9]+ cannot be the average of the rows above it, which is 4:19:47: no row is so slow'
has "a node faster than its own devices" "$out" '^†[0-9]+ 6.27 times as fast as one device of the same node, on 4: above ideal'
printf 'title: T\n\nmodel,data,hosts,devices,batch_per_device,wall_s,epochs,steps,speedup,note\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n' \
	'cnn,mnist,a,1,64,100,1,938,,' 'cnn,mnist,b,1,64,200,1,938,,' 'cnn,mnist,Avg,1,64,150,1,938,1,' 'cnn,mnist,a,2,64,60,1,625,,' \
	'cnn,mnist,a,2,48,40,1,625,,<b>n' 'cnn,mnist,b,2,64,90,2,469,,' 'cnn,mnist,Avg,2,64,75,1,,2,' >theirs.csv
theirs=$(markdown data/walltime --compare theirs.csv)
has "steps that are none" "$theirs" '60000 samples in batches of 64 on 2 devices are 469 steps'
has "a mean is of like rows: of one batch and one number of epochs" "$theirs" '^\| cnn +\| mnist +\| the only row +\| 1 +\| 2 +\| 64 +\| computed +\| - +\| 0:01:00 +\| 2.50 '
unlike "a mean that agrees is not repeated" "$theirs" 'mean of the'
has "a note is no markup" "$theirs" '^†[0-9]+ &lt;b&gt;n'
has "figures that were copied" "$(markdown data/epochs --compare published)" 'the same figures as with 2 devices: they were copied'
has "what 1 Gbps allows BERT" "$(markdown data/throughput --compare distml-clusters)" '^\| bert-base \| 2 +\| 8 +\| 440.4 MB +\| 3523 ms +\| 2325.2 words/s +\| 14389.8 \| 1.29: the link is the limit'
unlike "without --compare nothing published" "$(markdown data/throughput)" 'ublished'

# ---- the page
run "$LOCKSTEP" report data/throughput
is "a page" "$status" 0
is "a line and the path" "$out" "1 sweep (16 of 16 points done); 1 figure marked as implausibly fast or unreliable
data/throughput/report.html"
ok "beside the sweep" test -s data/throughput/report.html
run "$LOCKSTEP" report data/run --beside seeds
like "the old name of the option is explained" "$err" "--beside seeds is now --compare published"
run "$LOCKSTEP" report data/run --compare published --out seeds.html
like "published figures are counted as such" "$out" '^1 run; [0-9]+ published figures marked as implausibly fast or unreliable$'
run "$LOCKSTEP" report data/throughput data/walltime --compare published --out seeds.html
like "beside ours" "$out" '; [0-9]+ figures? and [0-9]+ published figures marked as implausibly fast or unreliable$'
run "$LOCKSTEP" report data/throughput/results.json data/run data/forecast.json --out all.html --title "T & <b>"
is "mixed inputs" "$out" "1 sweep (16 of 16 points done), 1 run, 1 forecast; 1 figure marked as implausibly fast or unreliable
all.html"
has "the title is escaped" "$(cat all.html)" '<title>T &amp; &lt;b&gt;</title>'
unlike "nothing is fetched" "$(cat all.html)" '(src|href)="?(https?:)?//|@import|url\(h'
(cd data && "$LOCKSTEP" report forecast.json >/dev/null)
ok "a file here is reported here" test -s data/report.html
"$LOCKSTEP" report data/hostile --out hostile.html >/dev/null
unlike "names are no markup in HTML" "$(cat hostile.html)" '<script>alert|<img|<b>h|javascript:z\)<|</title><(b|script)'
is "one script, our own" "$(grep -c '<script' hostile.html)" 1
ok "well-formed but for void elements" python3 - <<'PYTHON'
import html.parser
class Check(html.parser.HTMLParser):
    stack = []
    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "link"):
            self.stack.append(tag)
    def handle_startendtag(self, tag, attrs):
        pass
    def handle_endtag(self, tag):
        assert self.stack.pop() == tag, (tag, self.getpos())
for name in ("all.html", "hostile.html"):
    check = Check()
    check.feed(open(name).read())
    assert not check.stack, check.stack
PYTHON

# ---- mistakes
fails_with "a path that is not there" 1 "nowhere" "$LOCKSTEP" report nowhere
mkdir empty
fails_with "a directory with neither" 1 "empty: holds neither results.json of a sweep nor run.json of a run" "$LOCKSTEP" report empty
echo '{' >bad.json
fails_with "no JSON: file and line" 1 "bad.json:[0-9]: not acceptable JSON" "$LOCKSTEP" report bad.json
echo '{"format": "soup", "version": 1}' >bad.json
fails_with "another format" 1 "bad.json: neither results nor a forecast: format is 'soup'" "$LOCKSTEP" report bad.json
echo '[]' >bad.json
fails_with "no object" 1 "bad.json: neither results nor a forecast: it has no \"format\"" "$LOCKSTEP" report bad.json
change data/throughput/results.json bad.json 'o["points"][3]["repeats"][2]["samples_per_s"] = 0'
fails_with "a rate of nothing: file, field, reason" 1 "bad.json: points\[3\].repeats\[2\].samples_per_s is not above 0" \
	"$LOCKSTEP" report bad.json
change data/throughput/results.json bad.json 'o["points"][1]["job"]["devices"] = "8"'
fails_with "text for a number" 1 "bad.json: points\[1\].job.devices is text, not a whole number" "$LOCKSTEP" report bad.json
change data/forecast.json bad.json 'o["rows"][1]["rate"] = 7'
fails_with "a forecast" 1 "bad.json: rows\[1\].rate is .*, not text" "$LOCKSTEP" report bad.json
fails_with "a page in the place of results" 2 "is an input of the report" "$LOCKSTEP" report data/throughput --out data/throughput/results.json
fails_with "or of a run's settings" 2 "is an input of the report" "$LOCKSTEP" report data/run --out data/run/run.json
cp -r data/run both
cp data/throughput/results.json both
out=$(markdown both)
has "a run in the directory of a sweep: the sweep is shown" "$out" '^### batch size = 96$'
has "and the run" "$out" "$(markdown data/run | grep -m1 '^#### ' | sed 's/[^A-Za-z0-9 #]/./g')"
cp -r data/run badrun
sed -i '5s/"seconds": 0.75/"seconds": "x"/' badrun/metrics.jsonl
fails_with "a run's metrics: file, line, field" 1 "badrun/metrics.jsonl:5: seconds is .*, not a number" "$LOCKSTEP" report badrun
change data/run/run.json badrun/run.json 'del o["settings"]["batch"]'
fails_with "a run's settings" 1 "badrun/run.json: settings.batch is missing" "$LOCKSTEP" report badrun
change data/states/results.json many.json 'p = o["points"][0]; o["points"] = [dict(p, key=str(i)) for i in range(5001)]'
fails_with "more points than a page can show" 2 "has 5001 points; a report shows at most 5000" "$LOCKSTEP" report many.json
cp all.html before.html
fails_with "a page that cannot be made" 1 "bad.json" "$LOCKSTEP" report bad.json --out all.html
ok "leaves the old one" cmp all.html before.html
fails_with "no place for a page" 1 "none/x.html" "$LOCKSTEP" report data/run --out none/x.html
(ulimit -f 1 && run "$LOCKSTEP" report data/run --out limited.html && cp .err limited.err)
like "a page that does not fit: the cause" "$(cat limited.err)" 'cannot write limited.html: File too large'
(ulimit -f 1 && run "$LOCKSTEP" report data/run --out all.html && cp .err limited.err)
like "an old page is said to stay" "$(cat limited.err)" 'cannot write all.html, which is left as it was: File too large'
ok "and does" cmp all.html before.html
run bash -c '"$0" report data/run --markdown >/dev/full' "$LOCKSTEP"
is "output that does not arrive is a failure" "$status" 1

test_end

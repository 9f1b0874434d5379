#!/bin/bash
# Sweeps: lists and recipes make points, each is kept when it is measured, a stop loses one at most, and what cannot be
# measured says why.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

cores=$(python3 -c 'import os; print(len(os.sched_getaffinity(0)))')
tiny=(--model mlp --warmup 1 --steps 2 --repeat 3)
results=runs/bench-sweep/results.json

json_get() { # FILE EXPRESSION: its value for o
	python3 -c 'import json, sys
o = json.load(open(sys.argv[1]))
print(eval(sys.argv[2]))' "$@"
}

# ---- lists ----
run "$LOCKSTEP" bench "${tiny[@]}" --batch-per-device 8,16
is "values in a list make a sweep" "$status" 0
like "its table" "$out" '^model +precision +nodes +devices +batch +strategy +rate +figure +samples/s +spread +speedup$'
like "a row" "$out" '^mlp +fp32 +1 +1 +16 +local +- +measured +[0-9.]+( !)? +[0-9.]+ % +1.00$'
like "where the results are" "$out" '^2 of 2 points done; .*/runs/bench-sweep/results.json$'
like "about how long it will take, before anything is measured" "$(head -n 1 <<<"$err")" '^estimated time: 0:[0-9]{2} \(m:ss\) for 2 points'
like "a line a point, with how many there are, and what is left" "$err" \
	'^\[1/2\] mlp batch 8, 1x1: [0-9.]+ samples/s .*, 0:[0-9]{2} left$'
ok "both points are done" json $results '[p["state"] for p in o["points"]] == ["done", "done"]'
ok "with each repeat" json $results 'all(len(p["repeats"]) == 3 for p in o["points"])'
ok "medians are those of the repeats" json $results \
	'all(sorted(r["samples_per_s"] for r in p["repeats"])[1] == p["samples_per_s"] for p in o["points"])'
ok "the machine is told" json $results 'o["machine"]["cores"] >= 1 and o["machine"]["lockstep"] and o["machine"]["kernels"]'
ok "options are those of the job" json $results \
	'all((p["job"]["warmup"], p["job"]["steps"]) == (1, 2) for p in o["points"])'

cp $results before.json
run "$LOCKSTEP" bench "${tiny[@]}" --batch-per-device 16,32
ok "points that are done are not measured again" json $results \
	'[p for p in o["points"] if p["job"]["batch_per_device"] == 16] == [p for p in __import__("json").load(open("before.json"))["points"] if p["job"]["batch_per_device"] == 16]'
unlike "nor told of" "$err" 'batch 16'
ok "those of another list stay" json $results 'sorted(p["job"]["batch_per_device"] for p in o["points"]) == [8, 16, 32]'
run "$LOCKSTEP" bench "${tiny[@]}" --batch-per-device 16,32 --repeat 4
ok "more repeats than there are: again" json $results \
	'all(len(p["repeats"]) == 4 for p in o["points"] if p["job"]["batch_per_device"] > 8)'
cp $results before.json
run "$LOCKSTEP" bench "${tiny[@]}" --batch-per-device 16,32 --again
ok "--again measures all of them" json $results \
	'not any(p in __import__("json").load(open("before.json"))["points"] for p in o["points"] if p["job"]["batch_per_device"] > 8)'
ok "and keeps those of another list" json $results 'sorted(p["job"]["batch_per_device"] for p in o["points"]) == [8, 16, 32]'

run "$LOCKSTEP" bench "${tiny[@]}" --batch-per-device 8 --devices 1,$((cores + 1)) --threads 1 --out many --seed 7
is "more devices than cores" "$status" 0
ok "are replayed, which is told, and so is one to compare with" json many/results.json \
	'[(p["job"]["devices"], p["job"]["replay"]) for p in o["points"]] == [(1, 0), ('$((cores + 1))', 1), (1, 1)]'
rates=$(json_get many/results.json '" ".join(str(p["samples_per_s"]) for p in o["points"])')
table="$out"
ok "a replayed row is divided by a replayed one" python3 -c 'import re, sys
one, many, replayed = map(float, sys.argv[1].split())
row = [l.split() for l in sys.argv[2].splitlines() if re.match(r"mlp +fp32 +1 +'$((cores + 1))' ", l)][0]
told = float(row[row.index("%") + 1])
sys.exit(not abs(told - many / replayed) < 0.006)' "$rates" "$table"
like "in the table, too" "$out" "^mlp +fp32 +1 +$((cores + 1)) +8 .* simulated +[0-9.]+"
ok "other options are kept as they were typed" json many/results.json \
	'all(p["job"]["arguments"] == "--seed 7" for p in o["points"])'

mkdir single
run sh -c "cd single && '$LOCKSTEP' bench --model mlp --batch-per-device 8 --warmup 1 --steps 2 --repeat 2"
like "one value everywhere is one measurement" "$out" '^samples/s +[0-9.]+, median of 2'
is "that leaves nothing behind" "$(ls single)" ""

fails_with "a model misspelt in a list" 2 "unknown model 'cnm'; did you mean 'cnn'" "$LOCKSTEP" bench --model cnm,mlp
fails_with "a number misspelt in a list" 2 "batch" "$LOCKSTEP" bench --model mlp --batch-per-device 8,x
run "$LOCKSTEP" bench --model mlp --batch-per-device 16 --warmup 1 --steps 2 --repeat 1 --rate 1gbit,10gbit --out one-node
is "rates of one node" "$status" 0
like "are reported to have no effect" "$err" '\-\-rate 1gbit,10gbit has no effect: no point has several nodes; give --nodes'
fails_with "a rate misspelt" 2 "rate 'fast'" "$LOCKSTEP" bench --model mlp --nodes 2 --rate fast
fails_with "a rate that the lab does not take" 2 "rate '0.5tbit'" "$LOCKSTEP" bench --model mlp --nodes 2 --rate 0.5tbit
fails_with "a sweep has no --json" 2 "--json is for one measurement" "$LOCKSTEP" bench --model mlp --batch-per-device 8,9 --json
run "$LOCKSTEP" bench --model mlp --batch-per-device 8,16 --quick
is "--quick is for lists, too" "$status" 0
ok "with fewer steps, in a directory of its own" json runs/bench-sweep-quick/results.json \
	'[(p["job"]["warmup"], p["job"]["steps"], len(p["repeats"])) for p in o["points"]] == [(5, 20, 3)] * 2 and o["quick"] == 1'
run "$LOCKSTEP" bench --model mlp --batch-per-device 8,16 --quick --steps 2 --out quick2
ok "but for those that are asked for" json quick2/results.json 'all(p["job"]["steps"] == 2 for p in o["points"])'
like "help shows the defaults of sweeps" "$("$LOCKSTEP" bench --help | tr '\n' ' ')" '--warmup N .*\(default 3, in a sweep +20\).*--steps N .*\(default 10, in a +sweep +100\)'
fails_with "no repeat" 2 "--repeat must be between 1 and" "$LOCKSTEP" bench --model mlp --batch-per-device 8,9 --repeat 0

run "$LOCKSTEP" bench --model mlp,cnn --nodes 1,2 --list
is "--list shows the points of lists" "$(cut -d / -f 1-5 <<<"$out" | paste -sd ' ')" \
	"bench/mlp/1/b128/local bench/mlp/1+1/b128/allreduce bench/cnn/1/b128/local bench/cnn/1+1/b128/allreduce"

# ---- recipes ----
run "$LOCKSTEP" bench --list
is "--list succeeds" "$status" 0
is "the recipes" "$(awk '{ print $1 }' <<<"$out" | paste -sd ' ')" \
	"distml-resnet distml-sst5 distml-strategies oneflow-bert rcc-bigmnist rcc-mnist"
models=$("$LOCKSTEP" models | awk 'NR > 1 { print $1 }')
for recipe in $(awk '{ print $1 }' <<<"$out"); do
	for form in "" --quick --full; do
		# shellcheck disable=SC2086 # no form is no word
		run "$LOCKSTEP" bench "$recipe" $form --list
		is "$recipe $form: its points can be listed" "$status/$([ -n "$out" ] && echo some)" 0/some
		is "$recipe $form: its models are known" "$(cut -d / -f 2 <<<"$out" | sort -u | grep -vxF "$models")" ""
		ok "$recipe $form: the file says the same" cmp .out <("$LOCKSTEP" bench "$SOURCE_DIR/recipes/$recipe.json" $form --list)
	done
done
fails_with "a recipe misspelt" 2 "unknown recipe 'rcc-mnits'; did you mean 'rcc-mnist'" "$LOCKSTEP" bench rcc-mnits
fails_with "a file that is not there" 1 "none.json" "$LOCKSTEP" bench ./none.json
fails_with "a choice that leaves nothing" 2 "no point of .*18 in all" "$LOCKSTEP" bench oneflow-bert --full --batch-per-device 7
is "every recipe has three forms, and the list says so" "$("$LOCKSTEP" bench --list | grep -c ' (--quick, --full)$')" 6
fails_with "two forms at once" 2 "--quick and --full are two forms of a recipe" "$LOCKSTEP" bench rcc-mnist --quick --full
fails_with "a form of lists" 2 "--full is the full form of a recipe" "$LOCKSTEP" bench --model mlp --batch-per-device 8,16 --full
fails_with "an epoch of lists" 2 "--epoch is for recipes" "$LOCKSTEP" bench --model mlp --batch-per-device 8,16 --epoch data
fails_with "an epoch that is none" 2 "--epoch is 'half': expected data or worker" "$LOCKSTEP" bench rcc-mnist --epoch half

head='"format": "lockstep recipe", "version": 2, "title": "t", "table": "throughput"'
echo "{ $head, \"points\": [{\"model\": \"mlp\", \"modle\": 3}] }" >bad.json
fails_with "a field misspelt" 1 "bad.json: points\[0\].modle is not a field.*did you mean 'model'" "$LOCKSTEP" bench bad.json
echo "{ $head, \"points\": [{\"model\": \"mlp\", \"batch_per_device\": [1, 2.5]}] }" >bad.json
fails_with "a value that is none" 1 "bad.json: points\[0\].batch_per_device is neither" "$LOCKSTEP" bench bad.json
echo "{ $head, \"points\": [{\"model\": \"mlp\"}, {\"model\": \"mpl\"}] }" >bad.json
fails_with "a model that there is not, before anything is measured" 2 "unknown model 'mpl'; did you mean 'mlp'" \
	"$LOCKSTEP" bench bad.json
fails_with "and before anything is listed" 2 "unknown model 'mpl'" "$LOCKSTEP" bench bad.json --list
echo "{ $head, \"points\": [{\"model\": \"mlp\", \"nodes\": 3, \"devices\": \"2+2\"}] }" >bad.json
fails_with "nodes that devices do not agree with" 1 "points\[0\]: nodes 3 with devices '2\+2', which are of 2 nodes" \
	"$LOCKSTEP" bench bad.json --list
echo "{ $head, \"points\": [{\"model\": \"mlp\"}] }" >bad.json
fails_with "a form that a recipe does not have" 2 "bad.json: full is missing: this recipe has no full form" "$LOCKSTEP" bench bad.json --full
echo "{ $head, \"original\": {\"clip-nrom\": 1}, \"points\": [{\"model\": \"mlp\"}] }" >bad.json
fails_with "a setting of the original misspelt" 1 "bad.json: original.clip-nrom is not the name of an option; did you mean 'clip-norm'" \
	"$LOCKSTEP" bench bad.json
echo "{ $head, \"points\": [{\"model\": \"mlp\", \"arguments\": \"--layers 3\"}] }" >bad.json
fails_with "an option that the model does not have" 1 "bad.json: points\[0\].arguments has --layers, which model mlp does not have" \
	"$LOCKSTEP" bench bad.json
echo "{ $head, \"points\": [{\"model\": \"mlp\", \"launches\": 0}] }" >bad.json
fails_with "no launch" 1 "bad.json: points\[0\].launches is 0, which is not between 1" "$LOCKSTEP" bench bad.json
echo "{ $head, \"points\": [{\"model\": \"mlp\", \"devices\": \"1+1\", \"on\": [[1, 2, 3]]}] }" >bad.json
fails_with "more nodes than the point has" 1 'bad.json: points\[0\]: "on" names 3 nodes \(1,2,3\), but the point has 2' "$LOCKSTEP" bench bad.json
for argument in "--profile-out stolen" "--seed 1 '--run=stolen'" "--profile-o stolen" "-o stolen"; do
	echo "{ $head, \"points\": [{\"model\": \"mlp\", \"arguments\": \"$argument\"}] }" >bad.json
	fails_with "a recipe with $argument" 1 "bad.json: points\[0\].arguments has '-.*', which a recipe may not set" \
		"$LOCKSTEP" bench bad.json
done
ok "writes nothing there" test ! -e stolen

# What recipes may set is what the commands know: each option of both commands is judged, and as its command does.
names() { # COMMAND: its options
	"$LOCKSTEP" "$1" --help all | grep -oE -- '--[a-z][a-z0-9-]+' | sort -u
}
verdict() { # KIND OPTION: what is said of the option in a recipe, with or without a value
	local value
	for value in '' ' x'; do
		echo "{ $head, \"points\": [{\"model\": \"transformer\", \"kind\": \"$1\", \"epochs\": 1, \"data\": \"babble\", \"arguments\": \"$2$value\"}] }" >judged.json
		"$LOCKSTEP" bench judged.json --list 2>&1
	done | grep -oE 'lockstep bench does not have|may not set|field of its own|is not an option|^(bench|train)/' | sort -u | tail -1
}
names train >train.names
names bench >bench.names
ok "both commands have options" test "$(wc -l <train.names)" -gt 50 -a "$(wc -l <bench.names)" -gt 30
sort -u train.names bench.names | while read -r option; do
	for kind in train bench; do
		said=$(verdict $kind "$option")
		case $said in
		"may not set" | "field of its own") ;;
		"lockstep bench does not have") [ $kind = bench ] && ! grep -qx -- "$option" bench.names || echo "$kind $option: $said" ;;
		*/) grep -qx -- "$option" $kind.names || echo "$kind $option is accepted" ;;
		*) echo "$kind $option: ${said:-nothing is said}" ;;
		esac
	done
done >misjudged
is "a recipe's arguments are judged as the commands would" "$(cat misjudged)" ""
echo "{ $head, \"points\": [{\"model\": \"mlp\", \"arguments\": \"--schedule constant\"}] }" >bad.json
fails_with "an option that bench does not have, before anything is measured" 1 \
	"bad.json: points\[0\].arguments has '--schedule', which lockstep bench does not have" "$LOCKSTEP" bench bad.json --out unmade
ok "and before anything is made" test ! -e unmade

# The directory of a training run stays one.
run small_train --steps 2 --run a-run
fails_with "--out with a training run" 2 "a-run is the directory of a training run; choose another --out" \
	"$LOCKSTEP" bench --model mlp --batch-per-device 8,16 --steps 1 --warmup 0 --repeat 1 --out a-run
ok "nothing is written there" test ! -e a-run/results.json -a ! -e a-run/lock
printf '{\n"points": [\n}' >bad.json
fails_with "no JSON" 1 "bad.json:3: not acceptable JSON" "$LOCKSTEP" bench bad.json

# Training beside a bench; a point that fails, one that takes too long and one that cannot be leave the others alone.
cat >mixed.json <<JSON
{ $head, "warmup": 1, "steps": 2, "repeat": 2, "limit_s": 5, "points": [
  { "kind": "train", "model": "mlp", "data": "no-such-data|glyphs", "batch_per_device": 32, "epochs": 2, "samples": 640,
    "arguments": "--log-every 5 --test-samples 100" },
  { "kind": "train", "model": "mlp", "data": "glyphs", "batch_per_device": 32, "devices": $((cores + 1)), "epochs": 1 },
  { "model": "mlp", "batch_per_device": 8, "arguments": "--dropout many" },
  { "model": "mlp", "batch_per_device": 8, "steps": 100000000 },
  { "model": "mlp", "batch_per_device": 8, "nodes": 2 },
  { "model": "mlp", "batch_per_device": 8 } ] }
JSON
printf '#!/bin/sh\necho "lab: not root: namespaces cannot be made; try sudo" >&2\nexit 1\n' >lab
chmod 755 lab
run env LOCKSTEP_LAB_TOOL="$PWD/lab" "$LOCKSTEP" bench mixed.json --out mixed
is "a point that failed makes the sweep fail" "$status" 1
like "which is told" "$err" '^lockstep bench: 2 of 6 points failed'
is "each point has its own end" "$(json_get mixed/results.json '" ".join(p["state"] for p in o["points"])')" \
	"done skipped failed failed skipped done"
reason() { json_get mixed/results.json "o['points'][$1]['reason']"; }
like "training is not replayed" "$(reason 1)" "needs $((cores + 1)) cores, this machine has $cores"
like "what the command said" "$(reason 2)" "dropout.*many"
like "too long" "$(reason 3)" "^not done after [5-9] s$"
like "why nodes cannot be emulated" "$(reason 4)" "not root"
ok "training's curves are there" json mixed/results.json \
	'[r["step"] for r in o["points"][0]["rates"]] == list(range(5, 41, 5)) and len(o["points"][0]["epochs"]) == 2'
ok "and accuracy, wall time and losses" json mixed/results.json \
	'(lambda p: p["accuracy"] > 0.1 and p["wall_s"] > 0 and all(r["loss"] > 0 for r in p["rates"]))(o["points"][0])'
ok "the dataset that could be had is told" json mixed/results.json 'o["points"][0]["job"]["data"] == "glyphs"'
ok "a repeat of training is a run" json mixed/results.json 'len(o["points"][0]["repeats"]) == 2'
run env LOCKSTEP_LAB_TOOL="$PWD/lab" "$LOCKSTEP" bench mixed.json --out mixed --batch-per-device 8
unlike "what failed is tried again, what is done is not" "$err" '1x1: [0-9.]+ samples/s'
like "it is" "$err" 'mlp batch 8, 1x1.*failed.*--dropout: .many'

# ---- like for like ----
cat >like.json <<JSON
{ $head, "repeat": 1, "original": { "optimizer": "sgd", "lr": 0.1, "epochs": 2, "epoch": "worker", "data": "mnist", "launches": 3, "eval-every": 1 },
  "points": [
  { "kind": "train", "model": "mlp", "data": "glyphs", "batch_per_device": 32, "epochs": 2, "samples": 640, "devices": 2,
    "optimizer": "sgd", "arguments": "--lr 0.10 --log-every 5 --test-samples 100", "epoch": "worker" } ],
  "full": { "points": [ { "model": "mlp", "batch_per_device": 8, "steps": 2, "warmup": 1, "original": { "launches": 1 } } ] } }
JSON
if [ "$cores" -ge 2 ]; then
	run "$LOCKSTEP" bench like.json
	is "a recipe whose epochs are those of workers" "$status" 0
	ok "an epoch is a pass of every worker" json runs/bench-like/results.json \
		'o["points"][0]["end_step"] == 40 and [e["epoch"] for e in o["points"][0]["epochs"]] == [0, 1]'
	ok "with its accuracy and its time" json runs/bench-like/results.json \
		'all(e["accuracy"] > 0 and e["seconds"] > 0 for e in o["points"][0]["epochs"])'
	ok "the original's settings are kept beside those of the point" json runs/bench-like/results.json \
		'{s["name"]: (s["original"], s["ours"]) for s in o["points"][0]["settings"]} == {"optimizer": ("sgd", "sgd"), "lr": ("0.1", "0.10"), "epochs": ("2", "2"), "epoch": ("worker", "worker"), "data": ("mnist", "glyphs"), "launches": ("3", "1"), "eval-every": ("1", "1")}'
	is "and the form" "$(json_get runs/bench-like/results.json 'o["form"]')" default
	sed -i 's/"lr": 0.1,/"lr": 0.2,/' like.json
	run "$LOCKSTEP" bench like.json
	unlike "a point that is done is not measured again when the recipe records something else" "$err" 'samples/s'
	ok "which is kept" json runs/bench-like/results.json \
		'[s["original"] for s in o["points"][0]["settings"] if s["name"] == "lr"] == ["0.2"]'
else
	skip "epochs of workers" "one core"
fi
run "$LOCKSTEP" bench like.json --full
is "the full form" "$status" 0
is "has a directory of its own" "$(json_get runs/bench-like-full/results.json 'o["form"], o["quick"]')" "('full', 0)"

# ---- what is missing ----
# a machine as it is, but for ip: points on several nodes cannot be emulated
mkdir bin
for program in $(IFS=:; for d in $PATH; do ls "$d" 2>/dev/null; done | sort -u); do
	path=$(command -v -- "$program") || continue
	[ "$program" = ip ] || [ "${path#/}" = "$path" ] || ln -sf "$path" "bin/$program"
done
if [ "$(id -u)" = 0 ]; then
	run env PATH="$PWD/bin" "$LOCKSTEP" bench "${tiny[@]}" --batch-per-device 8,16 --nodes 1,2 --out missing
	is "points that are missing are a status of their own" "$status" 3
	ok "the others are measured" json missing/results.json \
		'all(p["state"] == ("skipped" if p["job"]["nodes"] > 1 else "done") for p in o["points"]) and len(o["points"]) >= 4'
	like "what is missing is told once, and what to do" "$err" \
		'^lockstep bench: 2 of [4-6] points skipped: lab: ip is not installed; .*install-deps lab.*iproute2'
	is "once" "$(grep -c 'points skipped' <<<"$err")" 1
	like "and it is said before anything is measured" "$(grep -m 1 -E 'will be skipped|estimated time|samples/s' <<<"$err")" \
		'warning: 2 of [4-6] points cannot be measured here and will be skipped: lab: ip is not installed'
	like "and how to go on" "$err" '^Provide what is missing, then run the same command again'
else
	skip "a machine without ip" "not root"
fi

# ---- the directory ----
fails_with "results of another sweep" 1 "holds the sweep 'mixed', not 'sweep'" "$LOCKSTEP" bench "${tiny[@]}" --batch-per-device 8,9 --out mixed
sed -E 's/"cores": [0-9]+/"cores": 4711/' many/results.json >changed.json
mv changed.json many/results.json
fails_with "results of another machine" 1 "4711 cores" "$LOCKSTEP" bench "${tiny[@]}" --batch-per-device 8,9 --out many
echo '{' >many/results.json
fails_with "results that are damaged" 1 "many/results.json:" "$LOCKSTEP" bench "${tiny[@]}" --batch-per-device 8,9 --out many
run "$LOCKSTEP" bench "${tiny[@]}" --batch-per-device 8,9 --out many --again
is "--again does not look at them" "$status" 0
is "and keeps them" "$(cat many/results.json.aside)" '{'
like "with a word" "$err" "many/results.json:.*the old file is now .*many/results.json.aside"

# ---- stopping ----
slow=(--model mlp --batch-per-device "8,16,32,64" --warmup 1 --steps 2500 --repeat 3 --out stopped)
done_points() { json_get stopped/results.json 'sum(p["state"] == "done" for p in o["points"])' 2>/dev/null; }
one_is_done() { [ "$(done_points)" -ge 1 ]; }

"$LOCKSTEP" bench "${slow[@]}" >first.out 2>first.err &
pid=$!
ok "a first point is kept" wait_for 60 one_is_done
fails_with "one sweep at a time in a directory" 2 "another sweep is running" "$LOCKSTEP" bench "${slow[@]}"
kill -9 $pid
wait $pid 2>/dev/null
cp stopped/results.json killed.json
killed=$(json_get killed.json 'sum(p["state"] == "done" for p in o["points"])')
nobody_left() { ! pgrep -f -- "$LOCKSTEP bench --json --model mlp .*--steps 2500" >/dev/null; }
ok "the measurement ends with the sweep" wait_for 20 nobody_left

# a script's background jobs ignore SIGINT, and a sweep keeps to that: give it back
env --default-signal=INT "$LOCKSTEP" bench "${slow[@]}" >second.out 2>second.err &
pid=$!
more_are_done() { [ "$(done_points)" -gt "$killed" ]; }
ok "after kill -9 it goes on" wait_for 60 more_are_done
kill -INT $pid
wait $pid
code=$?
is "SIGINT exits with 130" $code 130
like "and says how to go on" "$(cat second.err)" 'stopped with [0-9]+ of 4 points done; run the same command to continue'
ok "nothing is left running" wait_for 20 nobody_left
run "$LOCKSTEP" bench "${slow[@]}"
is "then all are measured" "$status/$(done_points)" 0/4
ok "those before the kill are as they were" json stopped/results.json \
	'all(p in o["points"] for p in __import__("json").load(open("killed.json"))["points"] if p["state"] == "done")'
run "$LOCKSTEP" bench "${slow[@]}"
is "once more there is nothing to do" "$status/$err" 0/

test_end

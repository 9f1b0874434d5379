#!/bin/bash
# A run knows its settings: --run and --resume are enough, what is given besides is checked or extends it.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

odd=(--model cnn --data glyphs --samples 256 --test-samples 64 --batch-per-device 32 --dropout 0.3 --optimizer sgd --momentum 0.8 --nesterov --lr 0.02
	--weight-decay 0.001 --clip-norm 2 --seed 7 --schedule linear --warmup 3 --epochs 3 --devices 1 --keep 5 --log-every 4)
resume() { # RUN OPTION...
	local run=$1
	shift
	"$LOCKSTEP" train --run "$run" --resume "$@"
}

run "$LOCKSTEP" train "${odd[@]}" --run runs/whole
whole=$(fingerprint "$out")
like "a run with settings of all kinds" "$whole" '^[0-9a-f]{16}$'
back() { # RUN: a copy of the run that was stopped at step 8, the end of its first epoch
	rm -rf "$1"
	cp -r runs/whole "$1"
	find "$1/ckpt" -mindepth 1 -maxdepth 1 ! -name step-000000008 -exec rm -r {} +
}
ok "it has a checkpoint of its first epoch" test -d runs/whole/ckpt/step-000000008

back runs/a
run resume runs/a
is "--run and --resume are enough" "$(fingerprint "$out")" "$whole"
like "it logs as it did" "$out" '^Step12: '
back runs/b
run resume runs/b --lr 0.02 --optimizer sgd --batch-per-device 32 --model cnn --threads 2 --log-every 24
is "the same once more is fine, and what does not bind counts" "$(fingerprint "$out")" "$whole"
unlike "as the steps of a log line" "$out" '^Step12: '
back runs/c
fails_with "another learning rate is refused" 1 "--lr was 0.02, now 0.001" resume runs/c --lr 0.001
fails_with "a default that is typed counts as given" 1 "--momentum was 0.8, now 0.9" resume runs/c --momentum 0.9
fails_with "another batch is refused" 1 "--batch.* was 32, now 64" resume runs/c --batch 64
fails_with "another global batch, too" 1 "--batch.* was 32, now 64" resume runs/c --batch 64
fails_with "a schedule that looks at the length" 1 "--epochs was 3, now 4" resume runs/c --epochs 4
run resume runs/c --devices 2 --batch 32 --micro-batch 32
is "other devices with the same batch" "$(fingerprint "$out")" "$whole"
fails_with "--init does not go with it" 2 "--init and --resume" resume runs/c --init runs/a
fails_with "nothing to resume" 1 "runs/nowhere holds no run" resume runs/nowhere
run "$LOCKSTEP" train --resume
is "a resume of no run is a mistake" "$status" 2

# A run may be extended, and remembers it.
run small_train --steps 24
longer=$(fingerprint "$out")
run small_train --steps 16 --run runs/short
run resume runs/short --steps 24
is "--steps extends a run" "$(fingerprint "$out")" "$longer"
run small_train --epochs 1 --run runs/epochs
run resume runs/epochs --epochs 2
run small_train --epochs 2
is "so does --epochs" "$(fingerprint "$(resume runs/epochs 2>/dev/null)")" "$(fingerprint "$out")"
run small_train --steps 16 --run runs/mixed
run resume runs/mixed --epochs 2
is "epochs that are given win over steps of the start" "$(fingerprint "$out")" "$(fingerprint "$(small_train --epochs 2)")"
run small_train --steps 16 --run runs/stopped
run resume runs/stopped --steps 40
find runs/stopped/ckpt -mindepth 1 -maxdepth 1 ! -name step-000000032 -exec rm -r {} +
run resume runs/stopped
is "a run that was extended and killed goes on to its new end" "$(fingerprint "$out")" "$(fingerprint "$(small_train --steps 40)")"

# Only what was given is blamed, not what the run remembers; a setting that stands for its default by 0 was not set.
ok "a folder of images" "$LOCKSTEP" data make glyphs --samples 256 --out here
run "$LOCKSTEP" train --model mlp --data here --batch 64 --micro-batch 64 --devices 1 --schedule constant --steps 2 --run runs/moved
mv here there
run resume runs/moved --data there --steps 3
is "the data may be moved" "$status" 0
find runs/moved/ckpt -mindepth 1 -maxdepth 1 ! -name step-000000002 -exec rm -r {} +
run resume runs/moved --samples 200
is "fewer samples are refused" "$status" 1
like "as what they are" "$err" "with .* settings: --samples was not set, now 200$"
run resume runs/moved --schedule linear
like "another schedule is refused without blaming the length it would have" "$err" "with .* settings: --schedule was constant, now linear$"
run "$LOCKSTEP" train --model mlp --data there --batch 64 --micro-batch 64 --devices 1 --run runs/unset
fails_with "steps that were not set" 1 "--steps was not set, now 4" resume runs/unset --steps 4

# A resume that trains nothing changes nothing that is remembered.
run resume runs/unset --data there --log-every 3 --threads 2
like "the run is complete" "$err" "the run is complete: 4 steps done"
ok "it is no resume to remember" json runs/unset/run.json 'o["resumes"] == []'
cp -r there beside
run resume runs/unset --data beside
is "data in another place is accepted by a complete run" "$status" 0
rm -r beside
run resume runs/unset
is "and not remembered" "$status" 0
rm runs/unset/run.json
run resume runs/unset --log-every 3
is "a complete run without run.json is no mistake" "$status" 0
ok "it is made again as the checkpoint says" json runs/unset/run.json \
	"(o['settings']['data'], o['settings']['log-every'], o['end']['step']) == ('$PWD/there', 200, 4)"

# A path in the run instead of the run.
for path in run.json metrics.jsonl ckpt ckpt/step-000000002 ckpt/step-000000002/state.json; do
	fails_with "--run with $path of a run" 1 "directory of the run.*: use --run runs/moved$" resume "runs/moved/$path"
done
cd runs/moved || exit 1
fails_with "run.json of the working directory" 1 "use --run \.$" resume run.json
cd ../.. || exit 1
touch file
fails_with "--run with some file" 1 "--resume: file is a file; give the directory of a run" resume file
fails_with "eval of run.json" 1 "runs/moved/run.json holds no weights: give the directory of the run, runs/moved," \
	"$LOCKSTEP" eval runs/moved/run.json
fails_with "--init with it" 1 "holds no weights: give the directory of the run, runs/moved," \
	small_train --steps 1 --init runs/moved/ckpt/step-000000002/state.json
for name in run.json metrics.jsonl; do
	fails_with "report of $name" 1 "give the directory of the run, runs/moved" "$LOCKSTEP" report "runs/moved/$name"
done

# What is lost, and what concerns one start alone.
back runs/d
rm runs/d/run.json
run resume runs/d
is "without run.json the checkpoint knows" "$(fingerprint "$out")" "$whole"
back runs/e
rm -r runs/e/ckpt
run resume runs/e
is "without a checkpoint run.json knows" "$(fingerprint "$out")" "$whole"
run small_train --steps 16 --quiet --trace --run runs/quiet
rm runs/quiet/trace.json
run resume runs/quiet --steps 20
like "--quiet is of one start" "$out" "parameters xxh64"
ok "and so is --trace" test ! -e runs/quiet/trace.json

# The number of devices of the node, not of all.
run small_train --steps 16 --devices 2 --micro-batch 32 --batch 64 --run runs/two
ok "run.json has the devices of a node" json runs/two/run.json 'o["settings"]["node-devices"] == 2'
run resume runs/two --steps 20
ok "a resume has as many" json runs/two/run.json 'o["resumes"][0]["settings"]["devices"] == 2'

# On hosts: this one, alone, is a node without a launcher.
run small_train --steps 16 --hosts localhost:2 --micro-batch 32 --batch 64 --run runs/hosts
ok "run.json has the hosts" json runs/hosts/run.json 'o["settings"]["hosts"] == "localhost:2"'
run resume runs/hosts --steps 20
ok "a resume goes on there" json runs/hosts/run.json \
	'(o["resumes"][0]["settings"]["hosts"], o["resumes"][0]["settings"]["devices"]) == ("localhost:2", 2)'

test_end

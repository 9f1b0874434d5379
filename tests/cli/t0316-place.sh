#!/bin/bash
# A run directory that is moved or removed under a run: it is noticed, said, and what can be saved is saved.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

endless() { # RUN: a run that does not end by itself, held still after its first checkpoints; sets $pid
	"$LOCKSTEP" train --model mlp --data glyphs --samples 1000 --batch 64 --micro-batch 64 --devices "${devices:-1}" \
		--schedule constant --steps 10000000 --eval-every 0 --run "$1" --ckpt-every "${every:-16}" >run.out 2>run.err &
	pid=$!
	ok "$1: a run has made its first checkpoints" wait_for 60 grep -q '"step": 40,' "$1/metrics.jsonl" || return
	kill -STOP "$pid"
	ok "$1: and is held" wait_for 20 is_in T
}
is_in() { # STATES: of the process, as /proc shows them
	[[ $1 = *$(sed -E 's/.*\) (.).*/\1/' "/proc/$pid/stat")* ]]
}
go_on() { # sets $status, $err
	kill -CONT "$pid"
	ok "the run ends" wait_for 60 is_in ZX || kill -KILL "$pid"
	wait "$pid"
	status=$?
	err=$(cat run.err)
}
last_step() { # RUN
	basename "$(find "$1/ckpt" -maxdepth 1 -name 'step-?????????' | sort | tail -n 1)" | sed 's/step-0*//'
}
expect() { # STEP: the fingerprint of a run never disturbed
	run small_train --steps "$1" --eval-every 0
	fingerprint "$out"
}

# ---- moved ----
for devices in 1 2; do
	rm -rf runs
	mkdir -p runs
	endless runs/a
	mv runs/a runs/b
	fails_with "on $devices: the moved directory is still locked" 1 "runs/b is in use by another lockstep \(process $pid\)" \
		"$LOCKSTEP" train --run runs/b --resume --model mlp --data glyphs --samples 1000 --schedule constant --batch 64 --micro-batch 64 --steps 10000000
	go_on
	is "on $devices: a run whose directory was moved fails" "$status" 1
	like "on $devices: with what to do" "$err" "runs/a was moved to .*/runs/b during the run.*--run .*/runs/b --resume"
	ok "on $devices: nothing is written at the old place" test ! -e runs/a
	step=$(last_step runs/b)
	ok "on $devices: its last step is saved at the new one" json runs/b/run.json "o['end']['step'] == $step and o['end']['fingerprint'] == '$(expect "$step")'"
	ok "on $devices: and its records are there" json runs/b/metrics.jsonl \
		"o[-1]['kind'] == 'end' and o[-1]['step'] == $step and [l['step'] for l in o if l['kind'] == 'epoch'] == list(range(16, $step // 16 * 16 + 1, 16))"
	run small_train --steps $((step + 5)) --run runs/b --resume --eval-every 0
	is "on $devices: it goes on from there" "$(fingerprint "$out")" "$(expect $((step + 5)))"
done
devices=1

# ---- removed ----
endless runs/gone
rm -rf runs/gone
go_on
is "a run whose directory was removed fails" "$status" 1
like "and says so" "$err" "runs/gone was removed during the run.*created again"
step=$(last_step runs/gone)
ok "its last step is saved" json "runs/gone/ckpt/step-$(printf %09d "$step")/state.json" "o['fingerprint'] == '$(expect "$step")'"
ok "with a description" json runs/gone/run.json "o['settings']['model'] == 'mlp' and o['end']['step'] == $step"
ok "and all of its records" json runs/gone/metrics.jsonl \
	"[l['step'] for l in o if l['kind'] == 'epoch'] == list(range(16, $step // 16 * 16 + 1, 16)) and o[-1]['kind'] == 'end'"
run small_train --steps $((step + 5)) --run runs/gone --resume --eval-every 0
is "it can be continued" "$(fingerprint "$out")" "$(expect $((step + 5)))"

# Somebody else's directory is not written into.
every=100000 endless runs/other
rm -rf runs/other
mkdir runs/other
echo mine >runs/other/note
go_on
is "a run whose directory was replaced fails" "$status" 1
like "and says that nothing is saved" "$err" "runs/other was removed .*something else has its name now"
is "what is there is left alone" "$(ls -A runs/other)" note

# ---- files of it ----
endless runs/files
rm runs/files/.lock runs/files/metrics.jsonl
fails_with "without its .lock it is locked as well" 1 "runs/files is in use by another lockstep" \
	"$LOCKSTEP" train --run runs/files --resume --model mlp --data glyphs --samples 1000 --schedule constant --batch 64 --micro-batch 64 --steps 10000000
kill -CONT "$pid"
ok "metrics.jsonl comes back" wait_for 60 test -f runs/files/metrics.jsonl
kill -TERM "$pid"
go_on
is "a removed metrics.jsonl does not stop a run" "$status" 143
ok "and is written anew, whole" json runs/files/metrics.jsonl "o[0]['step'] <= 16 and o[-1]['kind'] == 'end'"
like "with a word" "$err" "metrics.jsonl was removed during the run"

# run.json alone: the run is as good as before, its end is just not recorded there.
endless described
rm described/run.json
kill -TERM "$pid"
go_on
is "without run.json a run ends as it would" "$status" 143
like "and says where its end is recorded" "$err" "run.json.*recorded in metrics.jsonl alone"
ok "which is true" grep -q '"kind": "end"\|"end"' described/metrics.jsonl

test_end

#!/bin/bash
# Signals: a run that is stopped is not lost, one that is killed neither.
# shellcheck disable=SC2317 # functions are called by ok and wait_for
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# A script's background jobs ignore SIGINT, and lockstep keeps to that: give it back.
heeding() { exec env --default-signal=INT "$LOCKSTEP" train "$@"; }

newest() { # RUN: step of the newest checkpoint
	find "$1/ckpt" -maxdepth 1 -name 'step-*' 2>/dev/null | sort | tail -n 1 | sed -E 's/.*step-0*//'
}
has_checkpoint() { [ -n "$(newest "$1")" ]; }
is_over() { ! kill -0 "$1" 2>/dev/null; }

start() { # RUN OPTIONS...: a long run in the background, until its first checkpoint
	local run=$1
	shift
	heeding --model mlp --data glyphs --samples 1000 --test-samples 100 --batch-per-device 32 --schedule constant --steps 1000000 \
		--eval-every 0 --log-every 1000 --ckpt-every 20 --run "$run" "$@" >"$run.out" 2>"$run.err" &
	pid=$!
	wait_for 60 has_checkpoint "$run"
}

resumes_exactly() { # NAME RUN: go on a little; compare with a run never stopped
	local name=$1 run=$2 step
	step=$(($(newest "$run") + 10))
	local common=(--model mlp --data glyphs --samples 1000 --test-samples 100 --batch-per-device 32 --schedule constant --steps "$step" --eval-every 0)
	run "$LOCKSTEP" train "${common[@]}" --run "$run" --resume
	local resumed
	resumed=$(fingerprint "$out")
	run "$LOCKSTEP" train "${common[@]}"
	is "$name, then resumed to step $step: the bits of a run never stopped" "$resumed" "$(fingerprint "$out")"
}

for pair in INT:130 TERM:143 HUP:129; do
	signal=${pair%:*}
	ok "a run starts" start "run$signal"
	kill -"$signal" "$pid"
	wait "$pid"
	is "SIG$signal gives status ${pair#*:}" "$?" "${pair#*:}"
	like "it says what it does" "$(cat "run$signal.err")" "finishing the step, writing a checkpoint; again to stop at once"
	resumes_exactly "stopped by SIG$signal" "run$signal"
done

# With a small stack the command runs in a thread of its own; the first one only waits for it.
takers() { # PID: threads that take SIGTERM
	local count=0 mask
	for mask in $(sed -n 's/^SigBlk:[[:space:]]*//p' /proc/"$1"/task/*/status); do
		((0x$mask >> 14 & 1)) || count=$((count + 1))
	done
	echo $count
}
ulimited() { ulimit -S -s 512 && heeding "$@"; } # in the background, for the limit stays
ulimited --model mlp --data glyphs --samples 1000 --test-samples 100 --batch-per-device 32 --devices 2 --schedule constant --steps 1000000 \
	--eval-every 0 --log-every 1000 --ckpt-every 20 --run stack >stack.out 2>stack.err &
pid=$!
ok "ulimit -s 512: a run starts" wait_for 60 has_checkpoint stack
is "ulimit -s 512: one thread takes signals" "$(takers "$pid")" 1
kill -TERM "$pid"
wait "$pid"
is "ulimit -s 512: SIGTERM gives status 143" "$?" 143
like "ulimit -s 512: and stops it gently" "$(cat stack.err)" 'stopped after step [0-9]+'

# timeout(1) signals its child and then its group: the first may have been handled when the second comes.
signalled_twice() { # NAME OPTIONS...: steps long enough for both signals to come within one
	local name=$1
	shift
	heeding --model resnet18 --data glyphs --samples 2000 --test-samples 10 --batch 256 --micro-batch 32 --schedule constant \
		--steps 1000 --eval-every 0 --log-every 1 --run "$name" "$@" >"$name.out" 2>"$name.err" &
	pid=$!
	ok "$name: a run starts" wait_for 90 grep -q '^Step1:' "$name.out"
	kill -TERM "$pid"
	kill -HUP "$pid" # another, for two of a kind may come as one; at once, for half a second is little on a busy machine
	wait "$pid"
	like "$name: two signals in quick succession give the status of one" "$?" '^(143|129)$'
	like "$name: and stop it gently" "$(cat "$name.err")" 'stopped after step [0-9]+ of 1000'
	ok "$name: with a checkpoint" has_checkpoint "$name"
}
signalled_twice alone --devices 1
run "$LOCKSTEP" train --hosts localhost:1,localhost:1 --model mlp --data glyphs --samples 64 --test-samples 10 --steps 1
if [ "$status" = 0 ]; then
	signalled_twice launched --hosts localhost:1,localhost:1
else
	skip "two signals to a launcher" "there is no mpirun, or this build has no MPI"
fi

ok "a run to be killed starts" start killed --ckpt-every 1
kill -9 "$pid"
wait "$pid" 2>/dev/null
is "SIGKILL" "$?" 137
resumes_exactly "killed" killed
ok "leftovers of a checkpoint half written are gone" \
	bash -c '! find killed/ckpt -mindepth 1 -maxdepth 1 ! -name "step-*" | grep -q .'

# A step that takes seconds: the second signal must not wait for it.
heeding --model resnet50 --data glyphs --samples 4000 --batch-per-device 1024 --steps 3 --log-every 1 --run slow >slow.out 2>slow.err &
pid=$!
ok "a run of long steps begins" wait_for 60 grep -q ' devices* x ' slow.out
kill -INT "$pid"
ok "the first signal is heard" wait_for 20 grep -q "again to stop at once" slow.err
sleep 0.6 # what comes sooner is the same request
steps=$(grep -c '^Step' slow.out)
kill -INT "$pid"
ok "the second signal ends it" wait_for 30 is_over "$pid"
wait "$pid"
is "with status 130" "$?" 130
is "in the middle of a step" "$(grep -c '^Step' slow.out)" "$steps"
ok "and without a checkpoint" bash -c '! ls slow/ckpt/step-* 2>/dev/null'

heeding --model mlp --data glyphs --samples 1000 --steps 1000000 --eval-every 0 >none.out 2>none.err &
pid=$!
ok "a run that is not kept begins" wait_for 60 grep -q ' devices* x ' none.out
kill -INT "$pid"
wait "$pid"
is "without a run directory it stops, too" "$?" 130
unlike "and promises no checkpoint" "$(cat none.err)" "writing a checkpoint"

# An evaluation that would take minutes: the checkpoint comes before it, and a signal does not wait for its end.
long_test=(--model mlp --data glyphs --samples 320 --batch 32 --devices 1 --schedule constant --eval-every 1)
heeding "${long_test[@]}" --epochs 2 --test-samples 100M --run testing >testing.out 2>testing.err &
pid=$!
ok "an epoch is kept before it is evaluated" wait_for 60 test -d testing/ckpt/step-000000010
sleep 0.3
unlike "the evaluation is under way" "$(cat testing.out)" "Epoch 1"
kill -TERM "$pid"
ok "a signal ends a long evaluation" wait_for 20 is_over "$pid"
wait "$pid"
is "with status 143" "$?" 143
like "the epoch is told without accuracy" "$(cat testing.out)" "^Epoch 1 in [0-9.]+ sec$"
run "$LOCKSTEP" train "${long_test[@]}" --epochs 2 --test-samples 100 --run testing --resume
resumed=$(fingerprint "$out")
run "$LOCKSTEP" train "${long_test[@]}" --epochs 2 --test-samples 100
is "and the run goes on to the same bits" "$resumed" "$(fingerprint "$out")"
heeding "${long_test[@]}" --epochs 1 --test-samples 100M --run last >last.out 2>last.err &
pid=$!
ok "the last epoch is kept, too" wait_for 60 test -d last/ckpt/step-000000010
sleep 0.3
kill -INT "$pid"
wait "$pid"
is "a signal in the last evaluation is told by the status, too" "$?" 130

# What was ignored at the start stays ignored: nohup.
bash -c 'trap "" HUP; exec "$0" train --model mlp --data glyphs --samples 1000 --steps 1000000 --eval-every 0 --run nohup \
	--ckpt-every 20' "$LOCKSTEP" >nohup.out 2>nohup.err &
pid=$!
ok "a run under nohup begins" wait_for 60 has_checkpoint nohup
kill -HUP "$pid"
sleep 0.3
ok "an ignored SIGHUP stays ignored" kill -0 "$pid"
kill -TERM "$pid"
wait "$pid"
is "while SIGTERM ends the run" "$?" 143

# Closed descriptors: nothing is written into a file that happened to get their number.
run small_train --steps 5 --run whole
whole=$(cd whole/ckpt/step-000000005 && sha256sum -- *.safetensors)
"$LOCKSTEP" train --model mlp --data glyphs --samples 1000 --test-samples 200 --batch 64 --micro-batch 64 --devices 1 --schedule constant --steps 5 \
	--run closed <&- >&- 2>closed.err
is "a run whose output is closed fails at the end" "$?" 1
like "and says so" "$(cat closed.err)" "cannot write to standard output"
is "but what it keeps is whole" "$(cd closed/ckpt/step-000000005 && sha256sum -- *.safetensors)" "$whole"
"$LOCKSTEP" train --model mlp --data glyphs --samples 1000 --test-samples 200 --batch 64 --micro-batch 64 --devices 1 --schedule constant --steps 5 \
	--run mute --quiet <&- >&- 2>&-
is "one that prints nothing does not" "$?" 0
is "and is whole, too" "$(cd mute/ckpt/step-000000005 && sha256sum -- *.safetensors)" "$whole"
"$LOCKSTEP" --version >&- 2>closed.err
is "--version to nowhere fails" "$?" 1

test_end

#!/bin/bash
# Where files are written: only a regular file is replaced, and nothing planted beside it is opened.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

run small_train --steps 2 --run runs/a
is "a run to report on" "$status" 0
bench() { timeout 60 "$LOCKSTEP" bench --model mlp --batch-per-device 8 --steps 1 --warmup 0 --repeat 1 "$@"; }
report() { timeout 20 "$LOCKSTEP" report runs/a "$@"; }
logits() { timeout 20 "$LOCKSTEP" eval runs/a --samples 20 "$@"; }

# What used to be the draft's name leads elsewhere: nothing goes there.
echo precious >victim
for option in "report --out" "logits --logits" "bench --profile-out"; do
	ln -sf victim planted.draft
	# shellcheck disable=SC2086 # two words
	run $option planted
	is "$option beside a planted link" "$status" 0
	is "$option: the link's target is as it was" "$(cat victim)" precious
	ok "$option: the file is there" test -s planted
	rm -f planted planted.draft
	mkfifo planted.draft
	# shellcheck disable=SC2086
	run $option planted
	is "$option beside a planted pipe" "$status" 0
	rm -f planted planted.draft
done

# The file itself is a device, a pipe, a link, a directory.
if mknod null c 1 3 2>/dev/null && echo >null; then
	for option in "report --out" "logits --logits" "bench --profile-out"; do
		# shellcheck disable=SC2086
		run $option null
		is "$option to a device" "$status" 0
		ok "$option: the device is still one" test -c null
		is "$option: nothing is left beside it" "$(echo null*)" null
	done
else
	skip "a device of our own" "mknod needs root"
fi
if [ ! -w /dev ]; then # a failure must not cost the machine its device
	run report --out /dev/null
	is "report --out /dev/null" "$status" 0
fi

mkfifo pipe
fails_with "a pipe that nobody reads" 1 'pipe: no process reads from it' report --out pipe
cat pipe >from-pipe &
run report --out pipe
wait $!
is "a pipe that is read" "$status" 0
like "gets the page" "$(tail -c 8 from-pipe)" '</html>'
ok "and stays a pipe" test -p pipe

echo old >target
ln -s target link
run report --out link
is "a link" "$status" 0
ok "stays a link" test -L link
like "and its target is the page" "$(tail -c 8 target)" '</html>'
ln -s nothing dangling
fails_with "a link to nothing" 1 'dangling: it is a symbolic link to nothing' report --out dangling
ok "nothing is made there" test ! -e nothing
mkdir directory
fails_with "a directory" 2 'directory: it is a directory' report --out directory
echo "before" >page
report --out /dev/stdout >>page
is "/dev/stdout is appended to, not replaced" "$(head -n 1 page) $(grep -c '</html>' page)" "before 1"

# Lines that are appended go to a regular file.
mkdir -p runs/b
mkfifo runs/b/metrics.jsonl
run timeout 60 "$LOCKSTEP" train --model mlp --data glyphs --samples 64 --steps 1 --run runs/b
ok "metrics into a pipe do not wait" test "$status" != 124
ok "and are refused" test "$status" != 0
like "by name" "$err" 'metrics.jsonl: it is a pipe'
# A signal ends the work: nothing half made is left. A kill leaves it to the next command.
mkdir text
yes "the cat sat on the mat and looked at the dog . the dog slept ." | head -c 40000000 >text/a.txt
head -c 2000 text/a.txt >little.txt
"$LOCKSTEP" data make vocab little.txt --min-count 1 --out text/vocab.txt --quiet
has_draft() { [ -n "$(find cache -name '*.draft' 2>/dev/null)" ]; }
end_with() { # SIGNAL
	local child
	"$LOCKSTEP" data info text >.out 2>.err &
	child=$!
	ok "a draft is under way (SIG$1)" wait_for 60 has_draft
	kill "-$1" $child
	wait $child 2>/dev/null
	status=$?
}
end_with TERM
is "SIGTERM ends it" "$status" 143
is "without a draft" "$(find cache -name '*.draft')" ""
end_with KILL
is "SIGKILL ends it" "$status" 137
ok "with a draft" test -n "$(find cache -name '*.draft')"
run "$LOCKSTEP" data info text
is "the next one succeeds" "$status" 0
ok "no draft is left anywhere" test -z "$(find . -name '*.draft')"

test_end

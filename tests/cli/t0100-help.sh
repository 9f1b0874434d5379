#!/bin/bash
# Help: every command has it, it fits a screen, and what it says about defaults is true.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

run "$LOCKSTEP" --version
is "--version succeeds" "$status" 0
like "--version prints name and number" "$out" '^lockstep [0-9]+\.[0-9]+\.[0-9]+$'

run "$LOCKSTEP" --help
is "--help succeeds" "$status" 0
for command in train eval data models bench probe slurm; do
	like "--help lists $command" "$out" "^  $command +[a-z]"
done

for command in "" train eval data "data list" "data get" "data make" "data make vocab" "data info" models bench probe slurm; do
	# shellcheck disable=SC2086 # words
	run "$LOCKSTEP" $command --help
	is "lockstep $command --help succeeds" "$status" 0
	is "lockstep $command --help says nothing on stderr" "$err" ""
	like "lockstep $command --help begins with its usage" "$(head -n 1 <<<"$out")" "^usage: lockstep( |$)$command"
	is "lockstep $command --help is at most 80 wide" "$(awk 'length > 80' <<<"$out")" ""
	lines=30
	[ "$command" = train ] && lines=38 # one row a setting, two to a line
	ok "lockstep $command --help fits $lines lines" test "$(wc -l <<<"$out")" -le $lines
done

run "$LOCKSTEP" train --lr 7 --help
like "help shows defaults, not what was typed" "$out" "--lr 0.001 +learning rate"
run "$LOCKSTEP" train --nonsense --help
is "help wins over a mistake" "$status" 0
run "$LOCKSTEP"
is "no command at all is a usage error" "$status" 2
like "and prints the commands" "$err" '^  train '

run bash -c '"$0" --help >/dev/full' "$LOCKSTEP"
is "output that does not arrive is a failure" "$status" 1
like "and is reported" "$err" "cannot write to standard output"

test_end

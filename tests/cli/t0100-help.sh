#!/bin/bash
# Help: every command has it, it fits a screen, and what it says about defaults is true.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

run "$LOCKSTEP" --version
is "--version succeeds" "$status" 0
like "--version prints name and number" "$out" '^lockstep [0-9]+\.[0-9]+\.[0-9]+$'

run "$LOCKSTEP" --help
is "--help succeeds" "$status" 0
for command in train eval predict serve export data models bench plan probe report slurm k8s; do
	like "--help lists $command" "$out" "^  $command +[a-z]"
done

for command in "" train eval predict serve export data "data list" "data get" "data make" "data make vocab" "data info" "data show" models bench plan probe report slurm k8s; do
	# shellcheck disable=SC2086 # words
	run "$LOCKSTEP" $command --help
	is "lockstep $command --help succeeds" "$status" 0
	is "lockstep $command --help says nothing on stderr" "$err" ""
	like "lockstep $command --help begins with its usage" "$(head -n 1 <<<"$out")" "^usage: lockstep( |$)$command"
	is "lockstep $command --help is at most 80 wide" "$(awk 'length > 80' <<<"$out")" ""
	ok "lockstep $command --help fits 50 lines" test "$(wc -l <<<"$out")" -le 50
	is "lockstep $command --help: a text for every option" "$(grep -E '^  (-[a-z], )?--' <<<"$out" | grep -vE '^  (-[a-z], )?--[a-z0-9-]+( [A-Z][^ ]*)? +[a-z0-9]')" ""
done

# The settings of training are too many for a screen: --help has what most jobs want, and says where the others are.
run "$LOCKSTEP" train --help
topics=$(sed -nE 's/^More: --help (.*)\|all$/\1/p' <<<"$out" | tr '|' ' ')
is "the parts of help" "$topics" "model text length update machine nodes output"
options() { sed -nE 's/^  (-[a-z], )?(--[a-z][a-z0-9-]*).*/\2/p' | sort; }
all=$("$LOCKSTEP" train --help all | options)
for topic in $topics; do
	run "$LOCKSTEP" train --help "$topic"
	is "train --help $topic succeeds" "$status" 0
	is "train --help $topic is at most 80 wide" "$(awk 'length > 80' <<<"$out")" ""
	ok "train --help $topic fits 24 lines" test "$(wc -l <<<"$out")" -le 24
	parts="${parts-}$(options <<<"$out")"$'\n'
done
is "the parts together are all settings, each in one" "$(sort <<<"${parts%$'\n'}")" "$all"
is "the short help has only such" "$(comm -23 <("$LOCKSTEP" train --help | options) <(echo "$all"))" ""
ok "and fewer" test "$("$LOCKSTEP" train --help | options | wc -l)" -lt "$(wc -l <<<"$all")"
like "the text part has the size of a model" "$("$LOCKSTEP" train --help text)" "--layers N +transformer: number of layers"
fails_with "help on an option without its dashes" 2 "'devices' is an option; try --help --devices" "$LOCKSTEP" train --help devices
fails_with "help on nothing known" 2 "no help on 'nonsense'; there is --help model.text.length" "$LOCKSTEP" train --help nonsense
run "$LOCKSTEP" train -h nodes
like "-h takes a part, too" "$out" "--strategy NAME"
unlike "and shows that alone" "$out" "--lr"
run "$LOCKSTEP" eval --help runs/a
is "a command without parts takes no topic" "$status" 0
run "$LOCKSTEP" train --help --strategy
is "help on an option shows it and its values" "$(sed -nE 's/^(  (  )?[^ ]+).*/\1/p' <<<"$out")" "  --strategy
    allreduce
    ps
    ps-async
    mpi"
like "with a line on each" "$out" '^    ps  +parameter servers own all parameters'
run "$LOCKSTEP" train --help -m
like "also by its short name" "$out" '^    resnet18 +torchvision'
run "$LOCKSTEP" eval --help --samples
is "an option without named values is shown alone" "$(sed -nE 's/^(  (  )?[^ ]+).*/\1/p' <<<"$out")" "  --samples"
run "$LOCKSTEP" train --help --strategy ps
like "only as the last word" "$out" '^usage: lockstep train'
for option in model data optimizer schedule strategy wire pin share; do
	is "train --help --$option is at most 80 wide" "$("$LOCKSTEP" train --help --$option | awk 'length > 80')" ""
	unlike "and has no gap" "$("$LOCKSTEP" train --help --$option)" '[{}]'
done

run "$LOCKSTEP" train --lr 7 --help
like "help shows defaults, not what was typed" "$out" '^  --lr X +set the learning rate \(default 0.001\)$'
run "$LOCKSTEP" train --nonsense --help
is "help wins over a mistake" "$status" 0
run "$LOCKSTEP"
is "no command at all is a usage error" "$status" 2
like "and prints the commands" "$err" '^  train '

run bash -c '"$0" --help >/dev/full' "$LOCKSTEP"
is "output that does not arrive is a failure" "$status" 1
like "and is reported" "$err" "cannot write to standard output"

test_end

#!/bin/bash
# Options as other trainers call them: the error has the name they have here, and the manual page lists them all.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

page=$SOURCE_DIR/docs/man/lockstep-train.1
table=$(sed -nE 's/^\t\{ "([a-z0-9-]+)", ("([a-z0-9-]+)"|NULL),.*/\1 \3/p' "$SOURCE_DIR/src/settings/aliases.c" | grep -v '^beside ')
listed=$(sed -nE 's/^\.It Li --([a-z0-9-]+) Ta (Fl -([a-z0-9-]+))?.*/\1 \3/p' "$page")
ok "there is a table of names" test "$(wc -l <<<"$table")" -gt 50
is "the manual page lists it" "$(sort <<<"$listed")" "$(sort <<<"$table")"
precisions=$(sed -nE 's/^\t\{ "([a-z0-9-]+)", NULL, FP16 \},$/\1/p' "$SOURCE_DIR/src/settings/aliases.c")
is "and says what is not there yet" "$(sed -nE 's/^\.It Li --([a-z0-9-]+) Ta there is no fp16$/\1/p' "$page")" "$precisions"

wrong=
while read -r name option; do
	run "$LOCKSTEP" train "--$name=@"
	if [ "$status" != 2 ] || ! grep -q "unknown option '--$name'[;:]" <<<"$err" ||
		{ [ -n "$option" ] && ! grep -q "here it is '--$option'" <<<"$err"; }; then
		wrong+="$name: $err"$'\n'
	fi
done <<<"$table"
is "train names the option that each of them is" "$wrong" ""

bad() { # NAME PATTERN ARGUMENTS...
	local name=$1 pattern=$2
	shift 2
	fails_with "$name" 2 "$pattern" "$LOCKSTEP" "$@"
}

bad "--batch-size" "lockstep train: unknown option '--batch-size'; here it is '--batch' \(samples per step over all devices" train --batch-size 64
bad "--learning-rate" "unknown option '--learning-rate'; here it is '--lr'" train --learning-rate 0.1
bad "--device cuda" "unknown option '--device'; here it is '--devices' \(Lockstep computes on CPUs; --devices N" train --device cuda
bad "--device=cuda" "unknown option '--device'; .*computes on CPUs" train --device=cuda
bad "--gpus" "unknown option '--gpus'; .*computes on CPUs; --devices N" train --gpus 2
bad "--devices cuda" "--devices: 'cuda' is not a whole number" train --devices cuda
bad "--weight_decay" "unknown option '--weight_decay'; did you mean '--weight-decay'" train --weight_decay 0.1
bad "--batch_size" "unknown option '--batch_size'; here it is '--batch'" train --batch_size=64
bad "--hostfile" "unknown option '--hostfile'; here it is '--hosts' \(--hosts @FILE reads them" train --hostfile hosts
for command in bench plan models train; do
	bad "--size of $command" "unknown option '--size'; here it is '--image-size'" $command --size 32
done
bad "--label-column" "here it is '--target'" train --label-column price
bad "--num-workers" "unknown option '--num-workers': samples are read ahead" train --num-workers 4
for option in --fp16 --amp; do
	# shellcheck disable=SC2086 # words
	bad "$option" "unknown option '${option%%[ =]*}': there is no fp16; --precision bf16" train $option
done
bad "one dash too few" "unknown option '-lr'; did you mean '--lr'" train -lr 0.1
bad "behind a flag" "unknown option '-lr'; did you mean '--lr'" train --quiet -lr 0.1
bad "behind a value" "unknown option '-lr'; did you mean '--lr'" train --epochs 3 -lr 0.1
bad "a letter that is an option, too" "unknown option '-run'; did you mean '--run'" train -run zz
bad "with its value" "unknown option '-run'; did you mean '--run'" train --samples 32 -run=zz
bad "and a number" "unknown option '-batch'; did you mean '--batch'" train -batch 4
bad "and another name" "unknown option '-learning-rate'; here it is '--lr'" train -learning-rate=0.1
bad "a bench knows them" "unknown option '--batch-size'; here it is '--batch'" bench --batch-size 8
bad "and eval" "unknown option '--batch-size'; here it is '--batch'" eval run --batch-size 8
bad "and data info" "unknown option '--max-seq-length'; here it is '--seq-len'" data info glyphs --max-seq-length 8
bad "and slurm, behind the --" "unknown option '--learning-rate'; here it is '--lr'" slurm -- --learning-rate 0.1
bad "where there is no such option none is named" "unknown option '--learning-rate'$" eval run --learning-rate 1
for command in train eval bench plan probe report models slurm k8s "data info" "data make" "data make vocab" "data get"; do
	# shellcheck disable=SC2086 # words
	option=$("$LOCKSTEP" $command --help all | sed -nE 's/^  (-[a-z], )?(--[a-z]{4,}) .*/\2/p' | head -n 1)
	# shellcheck disable=SC2086
	bad "$command: a slip of the pen" "unknown option '${option}q'; did you mean '$option'" $command "${option}q"
done

run "$LOCKSTEP" train --device 1 --model mlp --data glyphs --samples 64 --test-samples 8
is "an option may still be cut short" "$status" 0

test_end

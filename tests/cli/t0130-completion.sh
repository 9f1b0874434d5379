#!/bin/bash
# Completion offers what the command takes.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

mkdir bin
ln -s "$LOCKSTEP" bin/lockstep
PATH=$PWD/bin:$PATH
. "$SOURCE_DIR/completions/lockstep.bash"

offers() { # WORDS...: what is offered for the last one
	COMP_WORDS=(lockstep "$@")
	COMP_CWORD=$#
	COMPREPLY=()
	_lockstep
	echo "${COMPREPLY[@]}"
}

is "commands" "$(offers "")" "train eval predict generate serve export data models bench plan probe report slurm k8s --help --version"
is "the beginning of a command" "$(offers tr)" "train"
is "commands of data" "$(offers data "")" "list get make info show check"
is "an option" "$(offers train --lr-step)" "--lr-step-every --lr-step-factor"
is "every option of train" "$(offers train -- | wc -w)" \
	"$({ "$LOCKSTEP" train --help all | sed -nE 's/^  (-[a-z], )?(--[a-z][a-z0-9-]*).*/\2/p'; echo --help; } | sort -u | wc -l)"
is "an option that the short help leaves out" "$(offers train --replace)" "--replace-invalid"
is "parts of help" "$(offers train --help n)" "nodes"
is "those of another command" "$(offers bench --help re)" "replay"
is "an option of data make" "$(offers data make --sa)" "--samples"
is "a vocabulary to make" "$(offers data make voc)" "vocab"
is "an option of data make vocab" "$(offers data make vocab --min)" "--min-count"
is "texts are left to bash" "$(offers data make vocab te)" ""
is "optimizers" "$(offers train --optimizer ada)" "adam adamw"
for option in --optimizer --strategy --wire --schedule --pin --share --model --data; do
	is "every value of $option" "$(offers train $option "")" "$("$LOCKSTEP" train --help $option | sed -nE 's/^    ([^ ]+) .*/\1/p' | xargs)"
done
is "strategies" "$(offers bench --strategy ps)" "ps ps-async"
is "wires" "$(offers train --wire "")" "fp32 bf16"
like "models by the short option" "$(offers train -m bert-t)" "^bert-tiny$"
is "of another command" "$(offers plan --wire b)" "bf16"
is "strategies that can be planned" "$(offers plan --strategy "")" "allreduce ps"
is "as the page knows them" "$(offers train --optimizer "")" "$(sed -nE 's/^\| `([a-z]+)`.*/\1/p' "$SOURCE_DIR/docs/optimizers.md" | xargs)"
like "models" "$(offers train --model resnet1)" "^resnet18 "
like "datasets" "$(offers train --data gl)" "^glyphs$"
like "datasets to get" "$(offers data get mn)" "^mnist$"
is "models to show" "$(offers models bert-t)" "bert-tiny"
is "options of a probe" "$(offers probe --b)" "--bucket-bytes --bytes"
is "recipes of a bench" "$(offers bench rcc)" "rcc-bigmnist rcc-mnist"
is "also behind a flag" "$(offers bench --quick one)" "oneflow-bert"
is "options of a prediction" "$(offers predict --dev)" "--deviation --devices"
is "values of a prediction" "$(offers predict --format "")" "csv jsonl"
is "kinds of input" "$(offers predict --input-format i)" "image idx"
is "inputs are left to bash" "$(offers predict runs/a di)" ""
is "options of a server" "$(offers serve --max-b)" "--max-batch --max-body"
is "options of a report" "$(offers report --c)" "--compare"
is "published figures" "$(offers report --compare p)" "published"
is "published tables to fit" "$(offers plan --fit distml-c)" "distml-clusters"
is "options of a job" "$(offers slurm --n)" "--nodes"
is "of both kinds" "$(offers k8s --nam)" "--namespace"
is "behind -- those of train, too" "$(offers k8s --nodes 2 -- --lr-step)" "--lr-step-every --lr-step-factor"
is "behind -- those of train" "$(offers slurm --nodes 2 -- --lr-step)" "--lr-step-every --lr-step-factor"
is "files are left to bash" "$(offers train --run ru)" ""

test_end

#!/bin/bash
# Mistakes on the command line: status 2, what is wrong and with which value, the nearest name, and where to read on.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

bad() { # NAME PATTERN ARGUMENTS...
	local name=$1 pattern=$2
	shift 2
	fails_with "$name" 2 "$pattern" "$LOCKSTEP" "$@"
}

bad "a command misspelt" "unknown command 'trian'; did you mean 'train'" trian
bad "a command of data misspelt" "lockstep data: unknown command 'maek'; did you mean 'make'" data maek
bad "an option misspelt" "lockstep train: unknown option '--epohs'; did you mean '--epochs'" train --epohs 2
bad "an option cut too short" "'--e' may be --epochs, --early-stop, .*--epsilon, .*--eval-every" train --e 2
bad "an option unlike any" "unknown option '--zzzzzz'" train --zzzzzz
bad "a short option unlike any" "unknown option '-Z'" train -Z
bad "a value missing" "--lr needs a value" train --lr
bad "an empty value" "--lr needs a value" train --lr=
bad "a short option's value missing" "-m needs a value" train -m
bad "a value too many" "--quiet takes no value" train --quiet=1
bad "an operand too many" "'extra' is one argument too many" train extra
bad "a negative number is out of range, not an option" "--lr must be at least 0, not -1" train --lr -1
bad "a number with text behind it" "--lr: '0.1x' is not a number" train --lr 0.1x
bad "no number at all" "--epochs: 'many' is not a whole number" train --epochs many
bad "infinity" "--lr" train --lr inf
bad "not a number" "--lr: 'nan' is not a number" train --lr nan
bad "a number so small that it is 0" "--lr: 1e-400 is too small" train --lr 1e-400
bad "a hexadecimal rate" "--lr: '0x1p-4' is not a number" train --lr 0x1p-4
bad "a hexadecimal count" "--batch: '0x10' is not a whole number" train --batch 0x10
bad "a blank before a number" "--lr: ' 0.1' is not a number" train --lr ' 0.1'
bad "hexadecimal shares" "--share 0x3:2" train --share 0x3:2 --model mlp --data glyphs
bad "shares that end too soon" "--share 3:" train --share 3: --model mlp --data glyphs
bad "no steps" "--steps must be at least 1, not 0; leave it out for the default" train --steps 0
bad "no samples" "--samples must be at least 1, not 0" train --samples 0
bad "no test samples" "--test-samples must be at least 1, not 0" train --test-samples 0
bad "checkpoints every 0 steps" "--ckpt-every must be at least 1, not 0" train --ckpt-every 0
bad "no devices" "--devices must be at least 1, not 0" train --devices 0
bad "a bench on no devices" "--devices must be at least 1, not 0" bench --devices 0
bad "an evaluation of no samples" "--samples must be at least 1, not 0" eval run --samples 0
bad "a dataset of no samples" "--samples must be at least 1, not 0" data make glyphs --out x --samples 0
bad "tokens of no sample" "--seq-len must be at least 1, not 0" data info glyphs --seq-len 0
bad "zero epochs" "--epochs must be between 1 and" train --epochs 0
bad "a batch of nothing" "--batch must be between 1 and" train --batch 0
bad "half a sample" "--batch: '1.5' is not a whole number" train --batch 1.5
bad "a suffix nobody knows" "--samples: '5Q'" train --samples 5Q
bad "certain dropout" "--dropout must be between 0 and 0.99, not 1" train --dropout 1
bad "more threads than anyone has" "--threads must be between 0 and" train --threads 1000000
bad "a model misspelt" "'resnet19'.*did you mean 'resnet18'" train --model resnet19 --data glyphs --samples 64
bad "an optimizer misspelt" "'adma'.*did you mean 'adam'" train --optimizer adma --model mlp --data glyphs --samples 64
bad "a schedule misspelt" "'cosin'.*did you mean 'cosine'" train --schedule cosin --model mlp --data glyphs --samples 64
bad "a micro-batch larger than the batch" "--micro-batch 65 is larger than --batch 64" train --micro-batch 65 --batch 64 --model mlp --data glyphs
bad "a micro-batch that does not fit" "--batch 64 is not a multiple of --micro-batch 24; use batch 48 or 72, or leave out --micro-batch" train --micro-batch 24 --batch 64 --model mlp --data glyphs
bad "a batch twice" "--batch-per-device already determines the batch and the micro-batch; leave out --batch" \
	train --batch 64 --batch-per-device 32 --model mlp --data glyphs
bad "a strategy misspelt" "'alreduce'.*did you mean 'allreduce'" train --strategy alreduce --model mlp --data glyphs
bad "staleness with lamb" "--optimizer lamb does not work with --strategy ps-async" train --staleness 2 --strategy ps-async \
	--optimizer lamb --model mlp --data glyphs
bad "staleness without servers" "--staleness needs --strategy ps-async" train --staleness 2 --model mlp --data glyphs
bad "servers without their strategy" "--servers needs --strategy ps or ps-async" train --servers 2 --model mlp --data glyphs
bad "a wire nobody has" "unknown wire 'fp16'" train --wire fp16 --model mlp --data glyphs
bad "shares of nothing" "--share 3:0" train --share 3:0 --model mlp --data glyphs
bad "eval of nothing" "RUN\|FILE.safetensors is missing" eval
bad "eval of two things" "'b' is one argument too many" eval a b
bad "making a dataset nowhere" "--out DIR is missing" data make glyphs
bad "getting nothing" "NAME is missing" data get
bad "an image of no size" "--image-size must be between 1 and" models --image-size 0
bad "a report of nothing" "PATH... is missing" report
bad "a report of two places" "--markdown prints to standard output: it takes no --out" report --markdown --out x.html .
bad "published figures nobody has" "unknown set of published figures 'publised'; did you mean 'published'" report . --compare publised
bad "a bench of no repeat" "--repeat must be between 1 and" bench --repeat 0

run "$LOCKSTEP" train --lr -1
is "a message and a hint, nothing else" "$err" "lockstep train: --lr must be at least 0, not -1
try 'lockstep train --help'"
is "and nothing on stdout" "$out" ""

test_end

#!/bin/bash
# One thing is not called many: "1 sample", "1 step", wherever a number stands before its word.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# A bare 1 before a word in the plural; "1 x" and "1/8" are no counts.
many='(^|[^0-9.,x:-])1 ((training|test|warm-up|parameter|more|micro) ?)*[a-z-]*(samples|devices|steps|nodes|threads|points|epochs|classes|tokens|servers|cores|micro-batches|files|documents|sentences|sweeps|runs|rows|hosts|workers|numbers|repeats|layers)\b'
proper() { # NAME: stdout and stderr of the last command have no such count
	unlike "$1" "$out
$err" "$many"
}
like "the pattern knows one" "stopped: 1 samples" "$many"
like "and one with a word between" "after 1 warm-up steps" "$many"
unlike "and nothing else" "21 samples, 1 sample, 0.1 steps, batch 1, 1x1 maps, 1.1 points" "$many"

one=(--model mlp --data glyphs --samples 1 --test-samples 1 --batch 1 --devices 1 --threads 1)
run "$LOCKSTEP" train "${one[@]}" --steps 1 --warmup 1 --trace --run runs/one
is "a run of one of everything" "$status" 0
like "one step, epoch, sample, device and thread" "$out" "^1 step \(1 epoch\) of 1 sample in micro-batches of 1;.* after 1 warm-up step\$"
like "one sample to train and one to test" "$out" "1 training and 1 test sample of"
proper "train"
run "$LOCKSTEP" train --run runs/one --resume
like "a complete run of one step" "$err" "the run is complete: 1 step done"
proper "train --resume"
run "$LOCKSTEP" train "${one[@]}" --steps 1 --plan-memory
like "a plan of one of everything" "$status $out" "^0 memory plan: micro-batch of 1 sample, 1 micro-batch per step, 1 device, 1 thread each"
proper "train --plan-memory"
run "$LOCKSTEP" eval runs/one
like "eval of one sample" "$out" ", 1 sample in "
proper "eval"
cores=$(nproc)
run "$LOCKSTEP" train "${one[@]}" --steps 1 --threads $((cores + 1))
is "a device of more threads than cores" "$status" 0
like "more threads than cores" "$err" "$((cores + 1)) threads on $cores cores?: oversubscribed"
proper "a device of too many threads"
run "$LOCKSTEP" train --model transformer --layers 1 --width 16 --heads 1 --data babble --samples 1 --test-samples 1 --batch 1 --devices 1 --steps 1
is "one text" "$status" 0
proper "train on text"

run "$LOCKSTEP" data make glyphs --samples 1 --out pictures
run "$LOCKSTEP" data info pictures
like "one image" "$out" "^train: 1 sample of 1 x 28 x 28"
proper "data info"
run "$LOCKSTEP" train --model mlp --data pictures --samples 5 --batch 1 --steps 1 --devices 1
like "one image has fewer classes than the test images" "$status $err" "^1 .*: label [0-9] at index [0-9]+, expected 0"
proper "labels of other classes"
echo "One sentence." >text.txt
run "$LOCKSTEP" data make vocab text.txt --size 60 --out vocab.txt
run "$LOCKSTEP" data info text.txt --vocab vocab.txt
like "one file, document and sentence" "$status $out" "^0 corpus: 1 file, 1 document"
proper "data info of text"

run "$LOCKSTEP" bench --model mlp --batch-per-device 1 --steps 1 --warmup 0 --repeat 1 --devices 1 --out runs/sweep
is "a sweep of one point" "$status" 0
like "one point" "$out" "1 of 1 point done"
proper "bench"
run "$LOCKSTEP" report runs/sweep runs/one --out page.html
like "one of each" "$out" "1 sweep \(1 of 1 point done\), 1 run"
proper "report"
out=$(sed 's/<[^>]*>/\n/g' page.html) err=''
like "its page is about the model" "$out" "mlp"
proper "its page"
run "$LOCKSTEP" bench --model mlp --batch-per-device 1 --steps 1 --warmup 0 --repeat 1 --nodes 1 --hosts localhost:1,localhost:1 --out runs/none
like "a bench on hosts" "$status $out" "1 of 1 point done"
proper "bench on hosts"
run "$LOCKSTEP" train --model mlp --data glyphs --steps 1 --strategy ps --servers 1 --devices 1
like "a server and nobody to compute" "$status $err" "^2 .*1 parameter server on 1 node: no node would be left to compute"
proper "its count of nodes"

test_end

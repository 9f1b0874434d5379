#!/bin/bash
# What goes over the wire: the reachable gradient and no more, half of it as bf16, words that occur; and the modes that give up the same bits.
# shellcheck disable=SC2317 # functions are called by ok and wait_for
# shellcheck source=tests/lab/lib.sh
. "$(dirname "$0")/lib.sh"

lab_up 2 --rate 1gbit

# What host a sends in a run of two nodes. Tests of the link at the start go the other way.
sent() { "$lab" run --on a cat /sys/class/net/eth0/statistics/tx_bytes; }
traffic_of() { # COMMAND...: sets $traffic
	traffic=$(sent)
	"$@"
	traffic=$(($(sent) - traffic))
}
near() { # GOT EXPECTED: 0.95 to 1.15 times; frames, acknowledgements and what launches nodes come on top
	[ $((100 * $1)) -ge $((95 * $2)) ] && [ $((100 * $1)) -le $((115 * $2)) ]
}
reachable=$("$LOCKSTEP" models | awk '$1 == "resnet18" { printf "%.0f\n", 1e6 * $5 }')
all=$("$LOCKSTEP" models | awk '$1 == "resnet18" { print 4 * $2 }')
ok "resnet18 has weights that never change ($reachable of $all bytes reachable)" test $((10 * reachable)) -lt $((9 * all))

# ---- bytes -----------------------------------------------------------------------------------------------------------
# Of two nodes each sends half of its gradient and half of the parameters.
resnet=(--model resnet18 --data glyphs --samples 96 --test-samples 1 --batch 16 --micro-batch 8 --steps 6 --eval-every 0 --schedule constant)
traffic_of train_on a:1,b:1 "${resnet[@]}"
full=$traffic
ok "6 steps send 6 times the reachable gradient: $full" near "$full" $((6 * reachable))
traffic_of train_on a:1,b:1 "${resnet[@]}" --wire bf16
ok "bf16 halves it: $traffic" near "$traffic" $((3 * reachable))
traffic_of train_on a:1,b:1 "${resnet[@]}" --strategy ps
ok "a worker sends its gradient to the server, and gets parameters: $traffic" near "$traffic" $((6 * reachable))

# An embedding has a gradient for the words of the step alone: 256 of 30522, of 1024 bytes each.
words=$((30522 * 1024))
run timeout 60 "$lab" run "$LOCKSTEP" bench --hosts a:1,b:1 --strategy ps --model transformer --layers 1 --batch-per-device 8 --seq-len 32 \
	--warmup 1 --steps 4 --repeat 1 --json
pushed=$(python3 -c 'import json, sys; print(int(json.load(sys.stdin)["nodes"][0]["sent_bytes"]))' <<<"$out")
ok "a worker sends much less than a table of words: $pushed of $words bytes" test $((4 * pushed)) -lt "$words"
ok "and the rest of the gradient" test "$pushed" -gt 1000000

# ---- bits given up -----------------------------------------------------------------------------------------------------
job=(--model cnn --data glyphs --samples 1000 --test-samples 500 --batch 64 --micro-batch 8 --epochs 3 --schedule constant)
lost="the trained bits are not those of other layouts"
last_loss() { # RUN
	python3 -c 'import json, sys
print([r["loss"] for r in map(json.loads, open(sys.argv[1] + "/metrics.jsonl")) if r["kind"] == "test"][-1])' "$1"
}
step_losses() { # RUN: the mean of its first eight training losses and of its last eight
	python3 -c 'import json, sys
losses = [r["loss"] for r in map(json.loads, open(sys.argv[1] + "/metrics.jsonl")) if r["kind"] == "step"]
print(sum(losses[:8]) / 8, sum(losses[-8:]) / 8)' "$1"
}
within() { # PERCENT A B
	awk -v part="$1" -v a="$2" -v b="$3" 'BEGIN { d = a > b ? a - b : b - a; exit !(a > 0 && b > 0 && 100 * d <= part * b) }'
}
run "$LOCKSTEP" train "${job[@]}" --devices 1 --run exact
exact=$(fingerprint "$out")
exact_loss=$(last_loss exact)
ok "the job learns ($exact_loss)" within 60 "$exact_loss" 0.5

gives_up() { # NAME PERCENT OPTION...: says so, gets other bits and nearly the loss
	local name=$1 part=$2 loss
	shift 2
	train_on a:1,b:1 "${job[@]}" --run "$name" "$@"
	is "$name trains" "$status" 0
	like "$name says what it gives up" "$err$out" "${1#--} $2 .*$lost"
	like "$name ends with bits" "$(fingerprint "$out")" '^[0-9a-f]{16}$'
	loss=$(last_loss "$name")
	ok "$name ends near the loss of the exact run ($loss)" within "$part" "$loss" "$exact_loss"
}
gives_up bf16 3 --wire bf16
ok "bf16 rounds" test "$(fingerprint "$out")" != "$exact"
gives_up mpi 1 --strategy mpi
train_on a:1,b:1 "${job[@]}" --strategy mpi --run mpi-bf16 --wire bf16
is "mpi's sum is of fp32 only" "$status" 2
train_on a:2,b:1 "${job[@]}"
is "without them the bits are the same" "$(fingerprint "$out")" "$exact"
unlike "and nothing is given up" "$err$out" "$lost"

# Every family of models: batch statistics, attention, an output layer that is the words. mpi comes near the exact run;
# ps-async goes another way: it must learn.
families=("resnet18-cifar --data glyphs" "vit-tiny --data glyphs" "gpt-nano --data babble --seq-len 24")
for family in "${families[@]}"; do
	model=${family%% *}
	# shellcheck disable=SC2206 # words
	small=(--model $family --samples 64 --test-samples 16 --batch 8 --micro-batch 4 --steps 3 --schedule constant --lr 1e-3)
	run "$LOCKSTEP" train "${small[@]}" --devices 1 --run "$model-exact"
	train_on a:1,b:1 "${small[@]}" --strategy mpi --run "$model-mpi"
	is "$model trains with mpi" "$status" 0
	like "$model with mpi says what it gives up" "$err$out" "$lost"
	ok "$model with mpi ends near the exact run ($(last_loss "$model-mpi"))" within 1 "$(last_loss "$model-mpi")" "$(last_loss "$model-exact")"
	train_on a:1,b:1 "${small[@]}" --steps 48 --log-every 1 --strategy ps-async --run "$model-ps-async"
	is "$model trains with ps-async" "$status" 0
	like "$model with ps-async says what it gives up" "$err$out" "$lost"
	read -r begin end <<<"$(step_losses "$model-ps-async")"
	ok "$model with ps-async learns ($begin to $end)" awk -v a="$begin" -v b="$end" 'BEGIN { exit !(b > 0 && b < 0.9 * a) }'
done

train_on a:1,b:1 "${job[@]}" --wire bf16 --run bf16 --epochs 4 --resume
is "bf16: a checkpoint goes on" "$status" 0
ok "bf16: and learns more ($(last_loss bf16))" awk -v a="$(last_loss bf16)" -v b="$exact_loss" 'BEGIN { exit !(a < b) }'

test_end

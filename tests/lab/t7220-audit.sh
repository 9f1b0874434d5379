#!/bin/bash
# A bit that falls over in a node's memory is found by the audit of parameters, which names the node.
#
# A weight that is exchanged would be overwritten by the next all-gather, or be wrong on all nodes. So the bit is in one that
# is not: a tap of a filter that never meets the image. Its place in the memory of a node is found by its neighbours'
# values, which are those of any run of the same seed.
# shellcheck disable=SC2317 # functions are called by ok and wait_for
# shellcheck source=tests/lab/lib.sh
. "$(dirname "$0")/lib.sh"

lab_up 3 --rate 1gbit
job=(--model resnet18 --data glyphs --samples 64 --test-samples 1 --batch 6 --micro-batch 2 --eval-every 0 --schedule constant
	--log-every 2)
run "$LOCKSTEP" train "${job[@]}" --devices 1 --steps 1 --run one
weights=$(echo one/ckpt/step-*/model.safetensors)

cat >flip.py <<'PYTHON'
import json, re, struct, sys
weights, pid = sys.argv[1:]
with open(weights, "rb") as file:
    length = struct.unpack("<Q", file.read(8))[0]
    entry = json.loads(file.read(length))["layer4.1.conv2.weight"]
    file.seek(8 + length + entry["data_offsets"][0])
    inputs = entry["shape"][1]
    values = file.read(4 * 16 * inputs * 9)
# the upper left tap of the first input, for 16 outputs
pattern = b"".join(values[4 * 9 * inputs * k :][:4] for k in range(16))
found = 0
with open(f"/proc/{pid}/mem", "r+b", 0) as memory:
    for line in open(f"/proc/{pid}/maps"):
        area = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw-p \S+ 00:00 0 *$", line)
        if not area:
            continue
        begin, end = (int(word, 16) for word in area.groups())
        if end - begin > 1 << 30:  # a sanitizer's own
            continue
        memory.seek(begin)
        try:
            at = memory.read(end - begin).find(pattern)
        except OSError:  # freed since the list was made
            continue
        if at >= 0:
            memory.seek(begin + at)
            memory.write(bytes([pattern[0] ^ 1]))
            found += 1
sys.exit(found != 1)
PYTHON

begin_job() { # OPTION...
	: >bg.out # now: the shell in the background may come to it later than the search below
	"$lab" run "$LOCKSTEP" train --hosts a:1,b:1,c:1 "${job[@]}" "$@" >bg.out 2>bg.err &
	job_id=$!
	ok "nodes train" wait_for 60 grep -q '^Step2:' bg.out
	begin_errors
}

begin_job --steps 100000 --audit-every 3
ok "a bit is turned on host c" python3 flip.py "$weights" "$(node_on c)"
begin=$SECONDS
wait_bounded $job_id
is "the run ends" "$?" 1
like "and names the node" "$(errors)" \
	'^lockstep train: audit after step [0-9]+: the parameters of node 2 \(c\) are not those of the other nodes \(xxh64 [0-9a-f]{16}\)'
is "once" "$(errors | sed 1d)" ""
ok "in seconds" test $((SECONDS - begin)) -le 20
ok "nothing is left" wait_for 15 lab_is_empty

# The audit is what finds it: without one the difference goes unnoticed.
begin_job --steps 40 --audit-every 0
ok "a bit is turned on host b" python3 flip.py "$weights" "$(node_on b)"
wait_bounded $job_id
is "without an audit the run goes on" "$?" 0
train_on a:1,b:1,c:1 "${job[@]}" --steps 6 --audit-every 1
is "and with one, a run without such a bit" "$status" 0

test_end

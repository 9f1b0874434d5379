#!/bin/bash
# lockstep probe: every figure is there and plausible, alone and between nodes; tables are Markdown, JSON parses.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

positive='lambda v: isinstance(v, (int, float)) and 0 < v < 1e15'
figures='["cores", "gflop_per_s_core", "gflop_per_s", "memory_bytes"]'

begin=$SECONDS
run "$LOCKSTEP" probe --quick --json
is "probe --quick --json succeeds" "$status" 0
is "nothing on stderr when it is quick" "$(grep -v '^probe: ' <<<"$err")" ""
[ -n "${SANITIZER:-}" ] || ok "it is quick" test $((SECONDS - begin)) -lt 90
cp .out probe.json
ok "one node" json probe.json 'type(o) is dict and len(o["nodes"]) == 1 and o["exchange_between_nodes"] == []'
ok "its figures are positive" json probe.json "all(map($positive, map(o['nodes'][0].get, $figures)))"
ok "those of memory, too" json probe.json \
	"all(map($positive, list(o['nodes'][0]['memory'].values()) + list(o['nodes'][0]['memory_core'].values())))"
ok "and how steady they are" json probe.json '0 <= o["nodes"][0]["unsteady"] < 100'
ok "it is told what ran" json probe.json 'all(o["nodes"][0][k] for k in ["host", "version", "kernels", "isa", "system"])'
is "of this version" "$(python3 -c 'import json; print("lockstep", json.load(open("probe.json"))["nodes"][0]["version"])')" \
	"$("$LOCKSTEP" --version)"
ok "no more cores than there are" json probe.json "1 <= o['nodes'][0]['cores'] <= $(nproc --all)"
ok "as many devices as cores, where no number is asked for" json probe.json 'o["nodes"][0]["devices"] == o["nodes"][0]["cores"]'
ok "GB/s are one gradient over the time" json probe.json \
	'all(abs(x["gb_per_s"] * x["seconds"] * 1e9 / o["bytes"] - 1) < 1e-6 for x in o["nodes"][0]["exchange_in_node"])'
ok "a node alone has no link" json probe.json 'o["nodes"][0]["link"] is None'

one_core=$(python3 -c 'import os; print(min(os.sched_getaffinity(0)))')
run taskset -c "$one_core" "$LOCKSTEP" probe --quick --json
ok "on one core it counts one" json .out 'o["nodes"][0]["cores"] == 1 and o["nodes"][0]["exchange_in_node"] == []'
run taskset -c "$one_core" "$LOCKSTEP" probe --quick
unlike "where there is nothing to compare it with" "$out" 'cores together'
ok "its NUMA domains are counted" json probe.json '1 <= o["nodes"][0]["numa_domains"] <= o["nodes"][0]["cores"]'
if [ "$(nproc)" -ge 2 ]; then
	two=$(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0))[:2], sep=",")')
	run env HWLOC_SYNTHETIC="numa:2 core:1 pu:1(indexes=$two)" taskset -c "$two" "$LOCKSTEP" probe --quick --json
	ok "on a machine of two domains, two" json .out '(o["nodes"][0]["numa_domains"], o["nodes"][0]["cores"]) == (2, 2)'
fi
run "$LOCKSTEP" probe --quick --devices 3 --bytes 100004 --bucket-bytes 8192 --repeat 2 --json
ok "what is asked for is measured" json .out \
	'(o["bytes"], o["repeat"], [x["devices"] for x in o["nodes"][0]["exchange_in_node"]]) == (100004, 2, [3])'

run "$LOCKSTEP" probe --quick --devices 2
is "as text" "$status" 0
for head in '## Test bed' '## Memory, GB/s' '## Exchange within a node'; do
	ok "$head" grep -qxF "$head" <<<"$out"
done
like "the test bed's columns" "$out" '^\| Name +\| CPU +\| Cores \| NUMA domains \| GFLOP/s per core \|'
is "rows of Markdown have as many cells as their heads" "$(awk -F '|' '
	/^\|/ { if (!columns) columns = NF; if (NF != columns) print NR; next }
	{ columns = 0 }' <<<"$out")" ""
unlike "no word of links" "$out" '## Links'
like "its host" "$out" "^\| $(uname -n) "

fails_with "too little to exchange" 2 'bytes must be 4096 to 2\^36, not 100' "$LOCKSTEP" probe --bytes 100
fails_with "no number" 2 "repeat" "$LOCKSTEP" probe --repeat many
fails_with "servers need nodes" 2 'servers 1.*1 node' "$LOCKSTEP" probe --quick --servers 1
fails_with "an option misspelt" 2 'did you mean|unrecognized|unknown' "$LOCKSTEP" probe --quik
fails_with "an operand" 2 'argument|operand' "$LOCKSTEP" probe here
fails_with "hosts that are none" 2 'hosts' "$LOCKSTEP" probe --hosts ,
fails_with "servers and hosts" 2 'servers 2' "$LOCKSTEP" probe --hosts a,b --servers 2
fails_with "an unknown instruction set" 2 'LOCKSTEP_ISA' env LOCKSTEP_ISA=abacus "$LOCKSTEP" probe --quick
run bash -c '"$@" >/dev/full' - "$LOCKSTEP" probe --quick --json
is "a result that cannot be written is a failure" "$status" 1

# ---- between nodes ----

if ! command -v mpirun >/dev/null; then
	skip "between nodes" "there is no mpirun (tools/install-deps build gets it)"
	test_end
fi
if json probe.json 'o["nodes"][0]["mpi"] == ""'; then
	skip "between nodes" "this build has no MPI"
	test_end
fi
# LeakSanitizer itself crashes ("Tracer caught signal 11") in processes whose MPI has unloaded its plug-ins; leaks of the
# parts are looked for alone, above, and in the unit tests, where threads play nodes.
export LSAN_OPTIONS=detect_leaks=0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
nodes() { # COUNT OPTIONS...
	local count=$1
	shift
	timeout -k 5 100 mpirun -q --oversubscribe --bind-to none -np "$count" "$LOCKSTEP" probe --quick "$@" </dev/null
}

run nodes 2 --bytes 400000 --devices 1 --json
is "two nodes" "$status" 0
[ "$status" = 0 ] || test_note "$err"
cp .out nodes.json
ok "one object of both" json nodes.json 'len(o["nodes"]) == 2 and all(n["gflop_per_s"] > 0 for n in o["nodes"])'
ok "with the devices that were asked for" json nodes.json '[n["devices"] for n in o["nodes"]] == [1, 1]'
run "$LOCKSTEP" probe --quick --hosts localhost:3,localhost:2 --bytes 400000 --json
ok "or that --hosts gives each" json .out '[n["devices"] for n in o["nodes"]] == [3, 2]'
ok "their link is positive" json nodes.json "all(map($positive, o['nodes'][1]['link'].values()))"
ok "ways to exchange" json nodes.json \
	'[(b["strategy"], b["wire"]) for b in o["exchange_between_nodes"]] == [("allreduce", "fp32"), ("allreduce", "bf16")]'
ok "their figures are positive" json nodes.json \
	"all(all(map($positive, [v for k, v in b.items() if type(v) is not str and k != 'servers'])) for b in o['exchange_between_nodes'])"
# Half of the gradient out as sums, and half as new values; meetings and the floats that ride along are small.
ok "fp32 moves the gradient once each way" json nodes.json '1 <= o["exchange_between_nodes"][0]["wire_bytes"] / o["bytes"] < 1.05'
ok "bf16 half of it" json nodes.json '0.5 <= o["exchange_between_nodes"][1]["wire_bytes"] / o["bytes"] < 0.55'
run nodes 3 --bytes 100000 --devices 1 --servers 1
is "three, one of them a server" "$status" 0
[ "$status" = 0 ] || test_note "$err"
like "is a line of its own" "$out" '^\| ps +\| fp32 '
is "two links" "$(grep -cE '^\| [12] \(' <<<"$out")" 2
run nodes 2 --servers 2
ok "no worker is an error" test "$status" != 0
like "that says why" "$err" 'servers 2 of 2 nodes'
run timeout -k 5 60 mpirun -q --oversubscribe --bind-to none -np 1 "$LOCKSTEP" probe --quick --bytes 8192 : \
	-np 1 "$LOCKSTEP" probe --quick --bytes 16384
ok "nodes with other options are refused" test "$status" != 0
like "by name" "$err" 'node 1 \(.*\) was started with other options than node 0'

test_end

#!/bin/bash
# Devices by default on a machine of several NUMA domains, which hwloc is made to see: never fewer devices than domains where micro-batches
# suffice, none cut by a border, and the trained bits of one device.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# In the two domains of one core each that this machine may have: devices as before.
if [ "$(nproc)" -ge 2 ]; then
	two=$(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0))[:2], sep=",")')
	job=(train --model mlp --data glyphs --samples 96 --batch 96 --micro-batch 32 --steps 2 --eval-every 0)
	run "$LOCKSTEP" "${job[@]}" --devices 1 --threads 1
	expected=$(fingerprint "$out")
	run env HWLOC_SYNTHETIC="numa:2 core:1 pu:1(indexes=$two)" taskset -c "$two" "$LOCKSTEP" "${job[@]}"
	like "two domains, three micro-batches: a device in each" "$out" '^2 devices '
	is "with the bits of one device" "$(fingerprint "$out")" "$expected"
	run env HWLOC_SYNTHETIC="numa:2 core:1 pu:1(indexes=$two)" taskset -c "$two" "$LOCKSTEP" "${job[@]}" --batch 32
	like "one micro-batch: one device over both" "$out" '^1 device x 2 threads'
fi

# A process that believes to have 64 processors, of numbers that this machine does not have.
cat >machine.c <<'END'
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	(void)pid;
	memset(set, 0, size);
	for (int i = 900; i < 964; i++)
		CPU_SET_S(i, size, set);
	return 0;
}

int pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *set)
{
	FILE *list = fopen("bound", "a");
	(void)thread;
	for (int i = 900; list && CPU_COUNT_S(size, set) == 1 && i < 964; i++)
		if (CPU_ISSET_S(i, size, set))
			fprintf(list, "%d\n", i);
	return list ? fclose(list) : 0;
}
END
believe=(env "HWLOC_SYNTHETIC=numa:4 core:16 pu:1(indexes=$(seq -s, 900 963))" "LD_PRELOAD=$PWD/machine.so")
if ! cc -shared -fPIC -o machine.so machine.c 2>.err || ldd "$LOCKSTEP" | grep -qE 'lib(a|t|ub)san'; then
	skip "64 cores in four domains" "there is no compiler, or a sanitizer, which wants to be loaded first"
	test_end
fi
job=(train --model mlp --data glyphs --samples 256 --micro-batch 8 --eval-every 0)
layout() { # MICRO-BATCHES OPTION...: devices x threads of the memory plan
	"${believe[@]}" "$LOCKSTEP" "${job[@]}" --batch $((8 * $1)) --plan-memory "${@:2}" 2>&1 |
		sed -nE 's/^memory plan: .* per step, ([0-9]+) devices?, ([0-9]+) threads? each$/\1x\2/p'
}
is "enough micro-batches for each domain: none is cut" "$(for n in 4 5 6 8 10 16 32; do layout $n; done | xargs)" \
	"4x16 5x8 6x8 8x8 10x5 16x4 32x2"
is "fewer: all cores, cut or not" "$(for n in 1 2 3; do layout $n; done | xargs)" "1x64 2x32 3x21"
is "devices that are asked for have all cores" "$(layout 5 --devices 5)" 5x12
is "threads that are asked for do not cut them either" "$(layout 8 --threads 12)" 4x12
job+=(--batch 40 --steps 1)
run "$LOCKSTEP" "${job[@]}" --devices 1 --threads 1
expected=$(fingerprint "$out")
run "${believe[@]}" "$LOCKSTEP" "${job[@]}"
like "a run on them" "$out" '^5 devices x 8 threads '
is "has the bits of one device of one thread" "$(fingerprint "$out")" "$expected"
is "each thread is bound to a core of its own, and each device to one domain" "$(sort -nu bound | tr '\n' ' ')" \
	"$(seq -s' ' 900 907) $(seq -s' ' 908 915) $(seq -s' ' 916 923) $(seq -s' ' 932 939) $(seq -s' ' 948 955) "
rm bound
run "${believe[@]}" "$LOCKSTEP" "${job[@]}" --devices 4 --threads 8
ok "half of the cores are left to others" test ! -e bound

test_end

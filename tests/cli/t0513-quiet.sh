#!/bin/bash
# When a measurement of bench/ may be called quiet: the shares of the machine that other processes and other guests of the hypervisor had
# decide, with injected readings; scripts print the verdict, and one that calls a busy machine quiet is found.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# Runs a script of bench/ whose two readings of the machine are: nothing at the start; at the end 100 s of which OTHERS and STEAL s
# were not ours.
cat >injected.py <<'END'
import os, runpy, sys
bench, others, steal, script = sys.argv[1], float(os.environ["OTHERS"]), float(os.environ["STEAL"]), sys.argv[2]
sys.dont_write_bytecode = True
sys.path.insert(0, bench)
import shared
times, own = iter([[1000, 400, 7], [1100, 400 + 50 + others, 7 + steal]]), iter([10, 60])
shared.cpu_times, shared.own_seconds = lambda: next(times), lambda: next(own)
sys.argv = sys.argv[2:]
runpy.run_path(os.path.join(bench, script), run_name="__main__")
END
injected() { # OTHERS STEAL SCRIPT OPTION...
	OTHERS=$1 STEAL=$2 run env OTHERS="$1" STEAL="$2" python3 injected.py "$SOURCE_DIR/bench" "${@:3}"
}

# A lockstep of 1000 samples per second.
cat >lockstep <<'END'
#!/bin/bash
case "$*" in
*--help*) echo "--batch-per-device" ;;
*"--image-size"*) exit 1 ;; # its help has no such option
bench*"--conv direct"*) echo '{"samples_per_s": 500.0}' ;;
bench*) echo '{"samples_per_s": 1000.0}' ;;
train*) echo "test accuracy: 0.5" ;;
probe*) echo '{"nodes": [{"exchange_in_node": [{"gb_per_s": 9.0}]}]}' ;;
esac
END
chmod +x lockstep
versions=(versions lockstep lockstep --rounds 1 --only cnn)

injected 0 0 "${versions[@]}"
is "a measurement" "$status" 0
like "of a machine without others is quiet" "$out" '^machine .*, [0-9]+ CPUs?, [0-9]+ MHz; load .*, steal 0\.0 %, other processes 0\.0 % of the machine: quiet$'
injected 3 3 "${versions[@]}"
like "3 % for others and 3 % for guests are accepted" "$out" 'steal 3\.0 %, other processes 3\.0 % of the machine: quiet$'
injected 3.2 0 "${versions[@]}"
like "more for other processes is not" "$out" 'other processes 3\.2 % of the machine: NOT QUIET: do not quote these figures$'
injected 0 3.2 "${versions[@]}"
like "nor for other guests" "$out" 'steal 3\.2 %.*: NOT QUIET'
injected -5 0 "${versions[@]}"
like "processes that the counters missed are no others" "$out" 'other processes 0\.0 % of the machine: quiet$'
like "the figures follow" "$out" '^cnn, 64 per device, 1 device  +1000\.00 +1000\.00 +1\.000'

injected 0 0 "${versions[@]}" --extra "--conv direct"
like "options are passed on to both sides" "$out" '^cnn, 64 per device, 1 device  +500\.00 +500\.00 +1\.000'
injected 0 0 "${versions[@]}" --extra-new="--conv direct"
like "or to the new one alone" "$out" '^cnn, 64 per device, 1 device  +1000\.00 +500\.00 +0\.500'
is "which is slower by that" "$status" 1
injected 0 0 versions lockstep lockstep --rounds 1 --only 32x32
like "an older binary is asked in its own words" "$out" '^resnet18, 128 per device, 1 device, 32x32x3 +1000\.00 '

# Without injection: the line is there, whatever it says. The command's own time is not that of others.
run "$SOURCE_DIR/bench/micro-batch" ./lockstep 1
like "bench/micro-batch: its tables" "$out" '^resnet18 +2 +64 +1000\.0$'
like "and the machine" "$out" '^machine .*: (quiet|NOT QUIET.*)$'
run python3 -B "$SOURCE_DIR/bench/shared.py" bash -c 'echo measured; exit 3'
is "a command that is watched keeps its status" "$status $(head -n 1 <<<"$out")" "3 measured"
like "and its machine is named" "$out" '^machine .* MHz; load '
python3 -B "$SOURCE_DIR/bench/shared.py" bash -c 'echo $$ >pid; sleep 600' >.out 2>.err &
started() { [ -s pid ]; }
ok "a watched command runs" wait_for 30 started
kill -TERM $!
wait $!
is "a signal ends the watch" "$?" 143
ok "and the command" eval '! kill -0 "$(cat pid)" 2>/dev/null'
run python3 -B - "$SOURCE_DIR/bench" <<'END'
import subprocess, sys
sys.path.insert(0, sys.argv[1])
import shared
before = shared.own_seconds()
work = "import time\nwhile time.process_time() < 0.5: pass"
subprocess.run(["bash", "-c", 'python3 -c "$0"; true', work], check=True)
print(shared.own_seconds() - before >= 0.4)
END
is "work of a grandchild is our own" "$out" True

# A processor's instructions decide what is compared by default.
for flags in "" "avx512_bf16" "avx512_bf16 amx_bf16"; do
	echo "flags : fpu $flags" >cpuinfo
	run python3 -B -c 'import sys; sys.path.insert(0, sys.argv[1]); import shared; print(*shared.bf16_kinds("cpuinfo"))' "$SOURCE_DIR/bench"
	is "precisions of a processor with ${flags:-neither}" "$out" "$(sed 's/avx512_bf16/bf16/; s/amx_bf16/bf16-amx/' <<<"$flags")"
done
ok "no file was left in the sources" [ ! -e "$SOURCE_DIR/bench/__pycache__" ]

test_end

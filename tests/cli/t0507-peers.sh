#!/bin/bash
# bench/peers with stand-ins for both sides: its arithmetic, its verdict, and that it leaves nothing behind.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

if [ "$(nproc)" -lt 2 ]; then
	skip "bench/peers" "it compares two devices, and there is one CPU"
	test_end
fi

# A PyTorch that trains 1000 samples per second in one process, with --bf16 4000, compiled 1.5 times that, the ranks together
# 1600. DIES=N: rank N ends at its first order. SLOW: no answer in time. NO_COMPILER: compiled it ends.
cat >torch <<'END'
#!/usr/bin/env python3
import json, os, sys, time
argv = sys.argv[2:]
if sys.argv[1] == "-c":
    sys.exit()  # it has every module
value = lambda name, other: int(argv[argv.index(name) + 1]) if name in argv else other
if "--probe" in argv:
    print(json.dumps({"torch": "9.9", "torchvision": "9.9", "onednn": "none", "capability": "none"}))
    sys.exit()
ballast = b"x" * (64 << 20)  # so that memory is not what fails
batch, world, rank = value("--batch", 0), value("--world", 1), value("--rank", 0)
open(os.environ["PIDS"], "a").write(f"{os.getpid()}\n")
print(json.dumps({"ready": True, "parameters": 7}), flush=True)
if "NO_COMPILER" in os.environ and "--compiled" in argv:
    sys.exit("there is no C++ compiler")
for line in sys.stdin:
    if os.environ.get("DIES") == str(rank) and world > 1:
        sys.exit("rank is out of memory")
    time.sleep(3600 if "SLOW" in os.environ else 0)
    alone = batch / (4000 if "--bf16" in argv else 1000) / (1.5 if "--compiled" in argv else 1)
    seconds = alone if world == 1 else (batch * world / 1600 if rank else batch / 1600)
    print(json.dumps({"seconds": [seconds] * json.loads(line)["steps"]}), flush=True)
END
# A lockstep of 8000 samples a second a device, 24000 in bf16, SCALING times that on two, or without a second device.
cat >lockstep <<'END'
#!/bin/bash
[ "$1" = bench ] || exit 2
case " $* " in
*" --devices 1 "*) rate=8000 ;;
*" --devices 2 "*)
	[ -n "$SCALING" ] || { echo "lockstep bench: this version measures one device" >&2; exit 1; }
	rate=$(awk "BEGIN { print 8000 * $SCALING }") ;;
esac
case " $* " in
*" --precision bf16 "*) rate=24000 ;;
*" --precision "*) echo "lockstep bench: no such precision" >&2; exit 1 ;;
esac
echo "{\"samples_per_s\": $rate, \"version\": \"0\"}"
END
chmod +x torch lockstep
mkdir temporary
export PIDS=$PWD/pids
peers=("$SOURCE_DIR/bench/peers" --torch "$PWD/torch" --lockstep "$PWD/lockstep" --rounds 2)
best=("${peers[@]}")
peers+=(--eager)

none_left() {
	local pid
	while read -r pid; do
		! kill -0 "$pid" 2>/dev/null || return 1
	done <pids
	[ -s pids ] && [ -z "$(ls temporary)" ]
}

export TMPDIR=$PWD/temporary SCALING=1.95
run "${peers[@]}" --only devices --json
is "the devices alone" "$status" 0
cp .out devices.json
ok "one row a model" json devices.json '[r["model"] for r in o["devices"]] == ["resnet18", "resnet50", "cnn", "bert-base of 128 tokens"]'
ok "a job whose data is not there is left out, with a note" json devices.json 'any("SST-5 is left out" in note for note in o["notes"])'
ok "no other table" json devices.json 'o["points"] == []'
ok "scaling is two devices over one" json devices.json 'all(abs(r["scaling"] - 1.95) < 1e-6 for r in o["devices"])'
ok "ranks count together, at the pace of the slowest" \
	json devices.json 'all(abs(r["peers"][0]["samples_per_s"] - 1600) < 1e-6 for r in o["devices"])'
ok "the ratio is against them" json devices.json 'all(abs(r["ratio"] - 9.75) < 1e-6 for r in o["devices"])'
is "two ranks a model were started" "$(wc -l <pids)" 8
ok "and nothing is left of them" none_left

run "${peers[@]}" --quick --models cnn --threads 1
is "both tables" "$status" 0
cp .out .tables
like "threads" "$out" '^cnn +64 +1 +fp32 +1000.0 +8000.0 +8.00x'
like "devices" "$out" '^cnn +512 +fp32 +8000.0 +15600.0 +1.95x .* 1600.0 +9.75x .* yes$'

run "${peers[@]}" --quick --models cnn --threads 1 --only threads --bf16 --precision fp32,bf16
is "both precisions" "$status" 0
like "fp32 beside fp32" "$out" '^cnn +64 +1 +fp32 +1000.0 +8000.0 +8.00x'
like "bf16 beside bf16" "$out" '^cnn +64 +1 +bf16 +4000.0 +24000.0 +6.00x .* 1.8x, '

# By default PyTorch is at its best: every mode is measured, the ratio is against the fastest of a precision.
run "${best[@]}" --models cnn --only threads --threads 1 --precision fp32,bf16
is "all modes of PyTorch" "$status" 0
like "fp32 against the fastest in fp32" "$out" '^cnn +64 +1 +fp32 +1000.0 +1500.0 +1000.0 +1500.0 +8000.0 +5.33x .* torch compiled '
like "bf16 against the fastest in bf16" "$out" '^cnn +64 +1 +bf16 +4000.0 +6000.0 +4000.0 +6000.0 +24000.0 +4.00x .* torch compiled bf16 '
NO_COMPILER=1 run "${best[@]}" --models cnn --only threads --threads 1 --precision fp32
is "a PyTorch that cannot compile" "$status" 0
like "is measured in its other modes" "$out" '^cnn +64 +1 +fp32 +1000.0 +1000.0 +8000.0 +8.00x'
like "with a note" "$out" '^note: cnn batch 64 threads 1 without torch compiled: .*there is no C\+\+ compiler$'
run "${best[@]}" --models cnn --only threads --threads 1 --compiled
like "only the modes that are named" "$out" '^cnn +64 +1 +fp32 +1000.0 +1500.0 +8000.0 +5.33x'

# Without --torch the current PyTorch of the cache is the first; Debian's is a second version on request.
mkdir -p cache/lockstep/peers-venv/bin
cp torch cache/lockstep/peers-venv/bin/python
sed 's/"torch": "9.9"/"torch": "1.13"/; s/else 1000)/else 500)/' torch >debian
chmod +x debian
run env XDG_CACHE_HOME="$PWD/cache" "$SOURCE_DIR/bench/peers" --lockstep "$PWD/lockstep" --rounds 2 --models cnn --only threads --threads 1 \
	--precision fp32 --debian "$PWD/debian"
like "the current PyTorch and Debian's" "$out" '^torch     9.9 .*'
like "the ratio is against the first" "$out" '^cnn +64 +1 +fp32 +1000.0 +1500.0 +1000.0 +1500.0 +500.0 +500.0 +8000.0 +5.33x'
like "the second has a line of ratios, and is not compiled" "$out" '^against torch 1.13: cnn b64 t1 16.00x, cnn b512 t1 16.00x$'
rm -r cache
run "${peers[@]}" --models cnn --precision bf16
is "bf16 beside fp32 is refused" "$status" 2
like "with the reason" "$err" 'give both'
run "${peers[@]}" --models cnn --precision fp64
like "an unknown precision is named" "$err" 'no precision fp64'
like "the machine's state is printed" "$(cat .tables)" '^machine .* MHz; load .* steal .* %, other processes .* % of the machine: '

# JAX trains 2000 samples a second. llm.c's program trains batches of 4 in 1 ms, of 64 tokens whatever its name says.
sed 's/json.dumps({"torch".*/json.dumps({"jax": "0.9"}))/; s/else 1000)/else 2000)/' torch >jax
cat >llmc <<'END'
#!/bin/bash
[ "$(stat -c %s gpt2_124M.bin)" = 497904640 ] || { echo "bad weights" >&2; exit 1; }
tokens=$(od -An -td4 -j8 -N4 dev/data/tinyshakespeare/tiny_shakespeare_train.bin)
echo "train dataset num_batches: $((tokens / 256))"
for step in 0 1 2; do
	echo "val loss 11.0"
	echo "step $step: train loss 11.0 (took $([ "$step" = 0 ] && echo 9000 || echo 1.000000) ms)"
done
exec sleep 3600
END
chmod +x jax llmc
more=(--only threads --threads 1 --jax "$PWD/jax")
run "${peers[@]}" "${more[@]}" --models cnn,gpt2 --llmc 4x64=llmc
is "JAX and llm.c" "$status" 0
like "both are named" "$out" $'^jax +0.9\nllm.c +4 x 64: .*/llmc$'
like "the ratio is to the fastest" "$out" '^gpt2 of 64 tokens .* 1000.0 +2000.0 +4000.0 +8000.0 +2.00x .* llm.c '
like "a point of another size is without llm.c" "$out" '^gpt2 of 256 tokens .* 1000.0 +2000.0 +- +8000.0 +4.00x .* jax '
like "and one of another model" "$out" '^cnn +64 .* 1000.0 +2000.0 +- +8000.0 +4.00x .* jax '
like "and each has its ratios" "$out" '^against llm.c: gpt2 of 64 tokens b4 t1 2.00x$'
ok "nothing of them is left" none_left
run "${peers[@]}" "${more[@]}" --models gpt2 --llmc 4x256=llmc
is "a program of another size ends the comparison" "$status" 2
like "which says what it trains" "$err" 'a step has about 256 tokens, not 4 x 256'
ok "and nothing is left of it" none_left
run "${peers[@]}" "${more[@]}" --models gpt2 --llmc llmc
like "a program without a size is refused" "$err" 'the form is BATCHxTOKENS=FILE'
run "${peers[@]}" --models gpt2 --jax /bin/false
like "an interpreter without JAX is named" "$err" '/bin/false has no usable JAX'

SCALING=1.84 run "${peers[@]}" --only devices --models cnn
is "too little scaling is a failure" "$status" 1
like "which the table shows" "$out" ' 1.84x .* NO$'

SCALING='' run "${peers[@]}" --models cnn --threads 1
is "a lockstep without devices is a failure" "$status" 1
like "after the first table" "$out" '^cnn +512 +1 +fp32 '
like "and told" "$out" '^note: the table of devices is not complete: .*measures one device'
SCALING='' run "${peers[@]}" --models cnn --only devices
is "nothing measured" "$status" 2

DIES=1 run "${peers[@]}" --models cnn --only devices
is "a rank that ends" "$status" 2
like "is named, with its reason" "$err" 'torch rank 1 at cnn: ended: rank is out of memory'
ok "and the others end" none_left

: >pids
SLOW=1 "${peers[@]}" --models cnn --only devices >.out 2>.err &
both() { [ "$(wc -l <pids)" = 2 ]; }
ok "two ranks are at work" wait_for 30 both
kill -TERM $!
wait $!
is "a signal ends the comparison" "$?" 143
ok "and them" none_left
ok "no file was left in the sources" [ ! -e "$SOURCE_DIR/bench/__pycache__" ]

test_end

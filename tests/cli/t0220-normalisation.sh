#!/bin/bash
# Images of a directory are normalised with their own mean and deviation, which stay with the run and its weights: whoever
# resumes, evaluates or starts from them uses the same. More than 256 classes.
# shellcheck disable=SC2317 # functions are called by ok and run
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

export LSAN_OPTIONS=detect_leaks=0 # of MPI
make_set() { # DIR BRIGHTNESS CHANNELS CLASSES: 60 images to train on and 20 to test, of 8 x 8; prints mean and deviation
	python3 - "$@" <<'PYTHON'
import math, os, random, struct, sys
where, bright, channels, classes = sys.argv[1], *map(int, sys.argv[2:])
random.seed(bright)
os.makedirs(where, exist_ok=True)
for split, count in (("train", 60), ("t10k", 20)):
    pixels = [[random.randrange(bright * (c + 1)) for c in range(channels) for _ in range(64)] for _ in range(count)]
    with open(f"{where}/{split}-images-idx4-ubyte", "wb") as out:
        out.write(struct.pack(">5I", 0x804, count, channels, 8, 8) + b"".join(map(bytes, pixels)))
    wide = classes > 256
    labels = [i * (classes - 1) // (count - 1) for i in range(count)]
    with open(f"{where}/{split}-labels-idx1-" + ("short" if wide else "ubyte"), "wb") as out:
        out.write(struct.pack(">2I", 0xb01 if wide else 0x801, count) + struct.pack(f">{count}" + "BH"[wide], *labels))
    for c in range(channels if split == "train" else 0):
        values = [p / 255 for image in pixels for p in image[64 * c:64 * c + 64]]
        mean = sum(values) / len(values)
        print("%.4g %.4g" % (mean, math.sqrt(sum((v - mean) ** 2 for v in values) / len(values))))
PYTHON
}
metadata() { # FILE KEY
	python3 -c 'import json, struct, sys
data = open(sys.argv[1], "rb").read()
print(json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])["__metadata__"].get(sys.argv[2]))' "$@"
}
same_images() { # LOGITS DIR MEAN DEVIATION: the model has seen the test images of DIR normalised so
	python3 - "$@" <<'PYTHON'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
length = struct.unpack("<Q", data[:8])[0]
where = json.loads(data[8:8 + length])["images"]
begin, end = (8 + length + at for at in where["data_offsets"])
seen = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
bytes_ = open(sys.argv[2] + "/t10k-images-idx4-ubyte", "rb").read()[20:]
mean, deviation = float(sys.argv[3]), float(sys.argv[4])
assert len(seen) == len(bytes_) > 0
assert all(abs(s - (b / 255 - mean) / deviation) < 1e-5 for s, b in zip(seen, bytes_))
PYTHON
}
checkpoint() { # RUN: its newest
	local all=("$1"/ckpt/step-*/model.safetensors)
	echo "${all[-1]}"
}
evaluate() { # SOURCE: on images of `light`; $status, $err
	rm -f logits.safetensors
	run "$LOCKSTEP" eval "$1" --data light --logits logits.safetensors
}

# ---- a directory's own ------------------------------------------------------------------------------------------------
make_set colours 60 3 400 >expected
run "$LOCKSTEP" data info colours
is "data info of 400 classes in shorts" "$status" 0
like "has them" "$out" '^train: 60 samples of 3 x 8 x 8, 400 classes$'
like "without a line for each" "$out" 'labels 0 to 399: 0 to 1 samples per class, 340 classes without any'
mean="$(cut -d' ' -f1 expected | paste -sd' ')" deviation="$(cut -d' ' -f2 expected | paste -sd' ')"
like "and what its images are normalised with" "$out" "^  normalised with mean \($mean\), deviation \($deviation\)\$"
train() { # DIR [OPTION]...
	"$LOCKSTEP" train --model mlp --data "$1" --batch 16 --micro-batch 4 --schedule constant --devices 1 "${@:2}"
}
run train colours --steps 4 --run runs/colours
is "training on it succeeds" "$status" 0
like "and says so at the start" "$out$err" "3x8x8, 400 classes, normalised with mean \($mean\), deviation \($deviation\)"
expected=$(fingerprint "$out")
ok "run.json has the constants" json runs/colours/run.json \
	"(o['settings']['mean'], o['settings']['deviation']) == ([${mean// /,}], [${deviation// /,}])"
is "and so have the weights" "$(metadata "$(checkpoint runs/colours)" mean), $(metadata "$(checkpoint runs/colours)" deviation)" \
	"$mean, $deviation"
run train colours --steps 4 --devices 3 --threads 2
is "three devices: the same bits" "$(fingerprint "$out")" "$expected"
cp -r colours mnists
printf '0.1307 0.3081\n0.1307 0.3081\n0.1307 0.3081\n' >mnists/normalisation
run train mnists --steps 4
like "a file in the directory decides otherwise" "$out$err" 'normalised with mean \(0.1307 0.1307 0.1307\)'
ok "and gives other bits" test "$(fingerprint "$out")" != "$expected" -a "$status" = 0
echo 0.5 >mnists/normalisation
fails_with "a file with too few numbers" 1 "mnists/normalisation must have a line with mean and deviation for each channel .* 3; line 1" \
	train mnists --steps 4

# ---- the weights' ------------------------------------------------------------------------------------------------------
read -r mean deviation < <(make_set dark 40 1 10)
read -r light_mean light_deviation < <(make_set light 250 1 10)
run train dark --steps 6 --run runs/whole
expected=$(fingerprint "$out")
run train dark --steps 3 --run runs/parts
echo "0.25 0.75" >dark/normalisation # from here on the directory says otherwise
run train dark --steps 6 --run runs/parts --resume
is "a resumed run keeps its constants" "$status $(fingerprint "$out")" "0 $expected"
rm -r runs/parts/ckpt
run train dark --steps 6 --run runs/parts --resume
is "and one that starts again" "$status $(fingerprint "$out")" "0 $expected"
evaluate runs/whole
is "an evaluation on other images" "$status$err" 0
ok "has the run's constants" same_images logits.safetensors light "$mean" "$deviation"
cp "$(checkpoint runs/whole)" alone.safetensors
evaluate alone.safetensors
ok "so has one of the file alone" same_images logits.safetensors light "$mean" "$deviation"
run train light --steps 2 --init alone.safetensors --run runs/tuned
is "training from the weights" "$status" 0
ok "has theirs, too" json runs/tuned/run.json "(o['settings']['mean'], o['settings']['deviation']) == ([$mean], [$deviation])"
tuned=$(fingerprint "$out")

# What was written before constants were kept had MNIST's.
python3 - alone.safetensors old.safetensors foreign.safetensors <<'PYTHON'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
length = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + length])
for target, keys in ((sys.argv[2], ("mean", "deviation")), (sys.argv[3], ("lockstep",))):
    for key in keys:
        del header["__metadata__"][key]
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    open(target, "wb").write(struct.pack("<Q", len(text)) + text + data[8 + length:])
PYTHON
evaluate old.safetensors
ok "old weights have MNIST's constants" same_images logits.safetensors light 0.1307 0.3081
evaluate foreign.safetensors
ok "those of another program have the data's" same_images logits.safetensors light "$light_mean" "$light_deviation"

mpirun=$(command -v mpirun.openmpi || command -v mpirun)
if [ -z "$mpirun" ] || PATH=/nowhere "$LOCKSTEP" train --hosts localhost,localhost 2>&1 | grep -q 'has no MPI'; then
	skip "two nodes" "there is no mpirun, or this build has no MPI"
	test_end
fi
start=(timeout 60 "$mpirun" --oversubscribe --bind-to none -np 1)
[ "$(id -u)" != 0 ] || start+=(--allow-run-as-root)
node=("$LOCKSTEP" train --model mlp --data light --batch 16 --micro-batch 4 --schedule constant --devices 2 --steps 2)
run "${start[@]}" "${node[@]}" --init alone.safetensors : -np 1 "${node[@]}" --init elsewhere.safetensors
is "a node without the file hears them from the first" "$status $(fingerprint "$out")" "0 $tuned"

test_end

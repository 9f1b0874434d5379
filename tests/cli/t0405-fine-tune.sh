#!/bin/bash
# Fine-tuning: weights for another number of classes start a new head; --freeze keeps parameters as they are.
# shellcheck disable=SC2317 # functions are called by run
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

cat >tensors.py <<'EOF'
import array, fnmatch, json, struct, sys

def read(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    return {k: (v["dtype"], v["shape"], data[8 + size + v["data_offsets"][0] : 8 + size + v["data_offsets"][1]])
            for k, v in header.items()}

def write(path, tensors):
    header, blob = {}, b""
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(blob), len(blob) + len(data)]}
        blob += data
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + blob)

def same(a, b):
    """Names of tensors that are the same in both files."""
    a, b = read(a), read(b)
    return sorted(k for k in a if a[k] == b.get(k))

if sys.argv[1] == "same":  # A B PATTERN...: exactly the tensors that match are the same
    a, b, *patterns = sys.argv[2:]
    wanted = sorted(k for k in read(a) if any(fnmatch.fnmatch(k, p) for p in patterns))
    got = [k for k in same(a, b) if not k.endswith("num_batches_tracked")]
    wanted = [k for k in wanted if not k.endswith("num_batches_tracked")]
    sys.exit(0 if got == wanted else f"the same: {got}, expected: {wanted}")
elif sys.argv[1] == "names":
    print(*read(sys.argv[2]))
elif sys.argv[1] == "triple":  # conv1 of three channels, as torchvision's
    tensors = read(sys.argv[2])
    dtype, shape, data = tensors["conv1.weight"]
    floats = array.array("f", data)
    taps = shape[2] * shape[3]
    wide = array.array("f", [floats[o * taps + t] for o in range(shape[0]) for c in range(3) for t in range(taps)])
    tensors["conv1.weight"] = (dtype, [shape[0], 3, *shape[2:]], wide.tobytes())
    write(sys.argv[3], tensors)
elif sys.argv[1] == "widen":  # a layer that is not the last one, with two more outputs
    tensors = read(sys.argv[2])
    for name in ("fc1.weight", "fc1.bias"):
        dtype, shape, data = tensors[name]
        tensors[name] = (dtype, [shape[0] + 2, *shape[1:]], data + data[: len(data) // shape[0] * 2])
    write(sys.argv[3], tensors)
elif sys.argv[1] == "idx":  # a folder of noisy images of four classes
    folder = sys.argv[2]
    for part, count in (("train", 96), ("t10k", 32)):
        labels = bytes(i % 4 for i in range(count))
        images = bytes((p * (label + 1) * 7 + i) % 256 for i, label in enumerate(labels) for p in range(784))
        open(f"{folder}/{part}-images-idx3-ubyte", "wb").write(struct.pack(">IIII", 2051, count, 28, 28) + images)
        open(f"{folder}/{part}-labels-idx1-ubyte", "wb").write(struct.pack(">II", 2049, count) + labels)
EOF

base() { "$LOCKSTEP" train --model "$1" --data glyphs --samples 128 --eval-every 0 --batch 64 --micro-batch 16 --run "runs/$1" -q; }
ok "a cnn" base cnn
ok "a resnet" base resnet18
mkdir four && ok "data of four classes" python3 tensors.py idx four
tune() { "$LOCKSTEP" train --data ./four --eval-every 0 --batch 32 --micro-batch 8 --steps 3 --schedule constant --seed 5 "$@"; }
weights() { echo "runs/$1"/ckpt/step-*/model.safetensors; }

# A new head, and what is said of it.
run tune --model cnn --init runs/cnn --run runs/tuned
is "ten classes to four" "$status" 0
like "is said" "$err" "has 10 classes, this model 4: its layer fc2 is not used, the model's own is newly initialised"
like "with tensors, distribution and seed" "$err" \
	'newly initialised from seed 5: fc2\.weight \(4, 128\) = 0, fc2\.bias \(4\) = 0$'
ok "channels" python3 tensors.py triple "$(weights cnn)" rgb.safetensors
fails_with "images of other channels" 1 \
	"'conv1.weight' has shape \(32, 3, 3, 3\), the model needs \(32, 1, 3, 3\): it was trained on images of 3 channels, this data has 1" \
	tune --model cnn --init rgb.safetensors
ok "another layer" python3 tensors.py widen "$(weights cnn)" wide.safetensors
fails_with "another layer of another size" 1 "'fc1.weight' has shape \(130, .*\), the model needs \(128, .*'fc1.bias' has shape \(130\)" \
	tune --model cnn --init wide.safetensors
unlike "is not the head's fault" "$err" "newly initialised"

# Frozen parameters keep their bits, the others do not.
run tune --model cnn --init runs/cnn --freeze 'conv*,fc1.weight' --weight-decay 0.1 --optimizer adamw --run runs/frozen
is "a frozen run" "$status" 0
like "says how many" "$out" '^model cnn: [0-9]+ parameters from runs/cnn, [0-9]+ of them frozen;'
ok "these tensors are the same, and no other" python3 tensors.py same "$(weights cnn)" "$(weights frozen)" 'conv*' fc1.weight
unlike "they have no optimizer state" "$(python3 tensors.py names runs/frozen/ckpt/step-*/optimizer.safetensors)" 'conv|fc1\.weight'
expected=$(fingerprint "$out")
for layout in "--devices 1" "--devices 2" "--devices 4 --threads 2"; do
	# shellcheck disable=SC2086 # two words
	run tune --model cnn --init runs/cnn --freeze 'conv*,fc1.weight' --weight-decay 0.1 --optimizer adamw $layout
	is "the same bits with $layout" "$(fingerprint "$out")" "$expected"
done

# A resnet, its batch norms included: running statistics of frozen ones stay, those of others go on.
freeze='conv1.*,bn1*,layer1.*,layer2.0.bn1.weight'
run tune --model resnet18 --init runs/resnet18 --freeze "$freeze" --run runs/norms
is "a resnet" "$status" 0
like "its head" "$err" 'newly initialised from seed 5: fc\.weight \(4, 512\) ~ U\(-0\.04419, 0\.04419\), fc\.bias \(4\) ~ U\(-0\.04419, 0\.04419\)$'
ok "frozen norms keep their statistics" python3 tensors.py same "$(weights resnet18)" "$(weights norms)" 'conv1.*' 'bn1.*' 'layer1.*' \
	layer2.0.bn1.weight
expected=$(fingerprint "$out")
run tune --model resnet18 --init runs/resnet18 --freeze "$freeze" --steps 2 --run runs/half
is "half of it" "$status" 0
fails_with "goes on with the same patterns only" 1 "runs/half.* was started with different settings: --freeze was conv1\.\*,bn1.*bn1.weight, now conv1" \
	"$LOCKSTEP" train --run runs/half --resume --steps 3 --freeze 'conv1.*'
run "$LOCKSTEP" train --run runs/half --resume --steps 3 --devices 3
is "and ends with the same bits" "$(fingerprint "$out")" "$expected"
fails_with "a run without any is not resumed with one" 1 "--freeze was not set, now conv1" \
	"$LOCKSTEP" train --run runs/tuned --resume --steps 5 --freeze 'conv1.*'

# Mistakes.
fails_with "a layer without its star" 2 "--freeze: 'conv1' matches no parameter of the model; did you mean 'conv1\.\*'\?" tune --model cnn --freeze conv1
fails_with "a typing mistake" 2 "'laeyr1.\*' matches no parameter of the model; did you mean 'layer1\*'\?" tune --model resnet18 --freeze 'laeyr1.*'
fails_with "everything" 2 "--freeze '\*' matches every parameter: there is nothing left to train" tune --model cnn --freeze '*'
fails_with "nothing between commas" 2 "--freeze has an empty pattern" tune --model cnn --freeze 'conv1.*,,fc1.*'
fails_with "another trainer's word" 2 "unknown option '--freeze-layers'; here it is '--freeze'" tune --model cnn --freeze-layers conv1

# On several nodes, by every strategy; clipping and lamb take norms of what is trained.
mpirun=$(command -v mpirun.openmpi || command -v mpirun)
if [ -z "$mpirun" ] || PATH=/nowhere "$LOCKSTEP" train --hosts localhost,localhost 2>&1 | grep -q 'has no MPI'; then
	skip "several nodes" "there is no mpirun, or this build has no MPI"
	test_end
fi
export LSAN_OPTIONS=detect_leaks=0 # of MPI
three=(timeout 120 "$mpirun" --oversubscribe --bind-to none -np 3)
[ "$(id -u)" != 0 ] || three=("${three[@]}" --allow-run-as-root)
job=("$LOCKSTEP" train --model resnet18 --data ./four --eval-every 0 --batch 32 --micro-batch 8 --steps 2 --schedule constant
	--init runs/resnet18 --freeze "$freeze" --optimizer lamb --clip-norm 0.5 --weight-decay 0.1)
run "${job[@]}" --devices 1
expected=$(fingerprint "$out")
for strategy in allreduce "ps --servers 1"; do
	# shellcheck disable=SC2086 # two words
	run "${three[@]}" "${job[@]}" --devices 1 --strategy $strategy
	is "three nodes, $strategy: the same bits" "$status $(fingerprint "$out")" "0 $expected"
done
for strategy in mpi "ps-async --servers 1"; do
	# shellcheck disable=SC2086 # two words
	run "${three[@]}" "$LOCKSTEP" train --model cnn --data ./four --eval-every 0 --batch 32 --micro-batch 8 --steps 3 --init runs/cnn \
		--freeze 'conv*' --devices 1 --strategy $strategy --run "runs/${strategy%% *}"
	is "three nodes, $strategy" "$status" 0
	ok "frozen is frozen" python3 tensors.py same "$(weights cnn)" "$(weights "${strategy%% *}")" 'conv*'
done

test_end

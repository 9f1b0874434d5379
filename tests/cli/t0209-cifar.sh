#!/bin/bash
# CIFAR: files are installed from a directory and from an archive, and trained on.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

mkdir -p from/cifar-10-batches-bin
python3 - <<'PYTHON'
import random
random.seed(1)
records = [bytes([label]) + bytes([label * 25]) * 3072 for label in range(10)]
for name in ["data_batch_%d.bin" % i for i in range(1, 6)] + ["test_batch.bin"]:
    with open("from/cifar-10-batches-bin/" + name, "wb") as f:
        f.write(b"".join(records[random.randrange(10)] for _ in range(10000)))
PYTHON
run "$LOCKSTEP" data get cifar10 --from from
is "from a directory" "$status" 0
like "says where" "$out" 'cifar10 is in .*/cache/cifar10'
run "$LOCKSTEP" data info cifar10
is "data info" "$status" 0
like "has its shape" "$out" '50000 samples of 3 x 32 x 32, 10 classes'
run "$LOCKSTEP" data get cifar10
like "files that are there are left alone" "$out" 'cifar10 is already in'
run "$LOCKSTEP" train --model cnn --data cifar10 --samples 600 --test-samples 100 --steps 4 --run run \
	--augment randaugment,jitter,hue:0.1
is "it trains" "$status" 0
ok "with mean and deviation of its own, which the run keeps" json run/run.json \
	"(o['settings']['mean'], o['settings']['deviation']) == ([0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616])"
tar -C from -c cifar-10-batches-bin | gzip -1 >archive.tar.gz
run "$LOCKSTEP" data get cifar10 --from archive.tar.gz --dir other
is "from the archive" "$status" 0
ok "the same bytes" cmp other/data_batch_3.bin from/cifar-10-batches-bin/data_batch_3.bin
echo airplane >from/cifar-10-batches-bin/batches.meta.txt
fails_with "the directory itself is no data, and it says what to do" 1 \
	"dataset 'from/cifar-10-batches-bin' has CIFAR's binary files: run \`lockstep data get cifar10 --from from/cifar-10-batches-bin\`" \
	"$LOCKSTEP" train --model cnn --data from/cifar-10-batches-bin
truncate -s 3073000 from/cifar-10-batches-bin/data_batch_2.bin
fails_with "a file that is too short" 1 'data_batch_2.bin has 3073000 bytes, expected 30730000' \
	"$LOCKSTEP" data get cifar10 --from from --dir third
fails_with "a name for nothing" 1 'nowhere' "$LOCKSTEP" data get cifar100 --from nowhere

test_end

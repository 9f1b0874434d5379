#!/bin/bash
# CIFAR, and Fashion-MNIST: files are installed from a directory and from an archive, and trained on.
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
# Fashion-MNIST has published checksums: its own files are taken, and nothing else.
mkdir fashion
fails_with "a directory without the files" 1 'there is no train-images-idx3-ubyte or train-images-idx3-ubyte.gz in fashion' \
	"$LOCKSTEP" data get fashion-mnist --from fashion
fails_with "one that is not there" 1 'nowhere is not a directory' "$LOCKSTEP" data get fashion-mnist --from nowhere
truncate -s 47040016 fashion/train-images-idx3-ubyte
fails_with "a file of the right size" 1 'fashion/train-images-idx3-ubyte.*(checksum|MD5)' "$LOCKSTEP" data get fashion-mnist --from fashion --dir installed
ok "is not installed" test ! -e installed/train-images-idx3-ubyte
fails_with "and then there is no such dataset" 1 'lockstep data get fashion-mnist' "$LOCKSTEP" train --model mlp --data fashion-mnist
real=/usr/share/datasets/fashion-mnist # of Debian's package
if [ -d "$real" ]; then
	run "$LOCKSTEP" data get fashion-mnist --from "$real"
	is "the published files are installed" "$status" 0
	run "$LOCKSTEP" data info fashion-mnist
	like "and read" "$out" 'train: 60000 samples of 1 x 28 x 28, 10 classes'
else
	skip "the published files are installed" "there is no $real"
fi
fails_with "a name for nothing" 1 'nowhere' "$LOCKSTEP" data get cifar100 --from nowhere

test_end

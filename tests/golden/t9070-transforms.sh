#!/bin/bash
# Changes of images are those of torchvision, on the same parameters. $PYTHON names another interpreter.
# needs: PyTorch
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-/usr/bin/python3}

if ! reason=$("$python" -c 'import numpy, torch, torchvision' 2>&1); then
	echo "1..0 # SKIP $python cannot import torch and torchvision: $(tail -n 1 <<<"$reason")"
	exit 0
fi
exec "$python" "$here/torch_transforms.py" "$BUILD_DIR/tests/golden/transform_dump"

#!/bin/bash
# The golden files in the tree are what make_models.py makes; needs a PyTorch. $PYTHON names another interpreter.
# needs: PyTorch
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-/usr/bin/python3}

if ! reason=$("$python" -c 'import numpy, torch, torchvision' 2>&1); then
	echo "1..0 # SKIP $python cannot import torch and torchvision: $(tail -n 1 <<<"$reason")"
	exit 0
fi
echo 1..1
if "$python" "$here/make_models.py" --check | sed 's/^/# /' && [ "${PIPESTATUS[0]}" = 0 ]; then
	echo "ok 1 - golden files are as made"
else
	echo "not ok 1 - golden files are as made"
	exit 1
fi

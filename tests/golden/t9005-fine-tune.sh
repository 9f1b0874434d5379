#!/bin/bash
# A new head on weights of torchvision: torch_fine_tune.py, where there is a PyTorch. $PYTHON names another interpreter.
# needs: PyTorch
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-/usr/bin/python3}
lockstep=${LOCKSTEP:-$here/../../build/lockstep}

if ! reason=$("$python" -c 'import torch, torchvision' 2>&1); then
	echo "1..0 # SKIP $python cannot import torch and torchvision: $(tail -n 1 <<<"$reason")"
	exit 0
fi
exec "$python" "$here/torch_fine_tune.py" "$lockstep"

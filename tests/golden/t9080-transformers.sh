#!/bin/bash
# GPT-2 and ViT of Hugging Face's transformers, where there is one: torch_transformers.py. $PYTHON names another interpreter.
# needs: PyTorch
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-/usr/bin/python3}
lockstep=${LOCKSTEP:-$here/../../build/lockstep}

if ! reason=$("$python" -c 'import torch, transformers' 2>&1); then
	echo "1..0 # SKIP $python cannot import torch and transformers: $(tail -n 1 <<<"$reason")"
	exit 0
fi
exec "$python" "$here/torch_transformers.py" "$lockstep"

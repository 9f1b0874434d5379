#!/bin/bash
# GPT-2 and ViT of Hugging Face's transformers, where there is one: torch_transformers.py. $PYTHON names another interpreter than Debian's and
# that of tools/python-packages BUILD golden.
# needs: PyTorch
here=$(cd "$(dirname "$0")" && pwd)
lockstep=${LOCKSTEP:-$here/../../build/lockstep}
build=${BUILD_DIR:-$(dirname "$lockstep")}

for python in "${PYTHON:-/usr/bin/python3}" "$build/golden-venv/bin/python"; do
	reason=$("$python" -c 'import torch, transformers' 2>&1) &&
		exec "$python" "$here/torch_transformers.py" "$lockstep" "$build/tests/golden/text_dump"
done
echo "1..0 # SKIP $python cannot import torch and transformers: $(tail -n 1 <<<"$reason")"

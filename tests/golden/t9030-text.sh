#!/bin/bash
# Language models against PyTorch's arithmetic: torch_text.py, where there is a PyTorch. $PYTHON names another
# interpreter.
# needs: PyTorch
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-/usr/bin/python3}
lockstep=${LOCKSTEP:-$here/../../build/lockstep}
build=${BUILD_DIR:-$(dirname "$lockstep")}

if ! reason=$("$python" -c 'import numpy, torch' 2>&1); then
	echo "1..0 # SKIP $python cannot import torch: $(tail -n 1 <<<"$reason")"
	exit 0
fi
exec "$python" "$here/torch_text.py" "$lockstep" "$build/tests/golden/text_dump"

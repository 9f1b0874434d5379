#!/bin/bash
# GPT-2 and ViT of Hugging Face's transformers, where there is one: torch_transformers.py. $PYTHON names another
# interpreter than Debian's and that of tools/python-packages BUILD golden.
# needs: PyTorch
here=$(cd "$(dirname "$0")" && pwd)
lockstep=${LOCKSTEP:-$here/../../build/lockstep}
BUILD_DIR=${BUILD_DIR:-$(dirname "$lockstep")}
# shellcheck source=tests/golden/lib.sh
. "$here/lib.sh"

if ! python=$(python_with torch transformers); then
	echo "1..0 # SKIP Python cannot import torch and transformers: $python"
	exit 0
fi
exec "$python" "$here/torch_transformers.py" "$lockstep" "$BUILD_DIR/tests/golden/text_dump"

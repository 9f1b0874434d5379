#!/bin/bash
# Exported models: onnx's checker accepts them, and onnxruntime computes the logits that Lockstep does.
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/golden/lib.sh
. "$here/lib.sh"

if ! python=$(python_with onnx onnxruntime); then
	echo "1..0 # SKIP there is no onnx and onnxruntime for Python"
	exit 0
fi
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
"$python" "$here/onnx_compare.py" "$LOCKSTEP" "$BUILD_DIR/tests/golden" "$folder"

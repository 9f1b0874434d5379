#!/bin/bash
# Exported models: onnx's checker accepts them, and onnxruntime computes the logits that Lockstep does.
here=$(cd "$(dirname "$0")" && pwd)
for python in "${PYTHON:-/usr/bin/python3}" "$BUILD_DIR/venv/bin/python"; do
	if "$python" -c 'import onnx, onnxruntime' 2>/dev/null; then
		exec "$python" "$here/onnx_compare.py" "$LOCKSTEP" "$BUILD_DIR/tests/golden" "$(mktemp -d)"
	fi
done
echo "1..0 # SKIP there is no onnx and onnxruntime for Python"

#!/bin/bash
# Every program in examples/python runs to its end, in an empty directory and without a network.
# shellcheck source=tests/python/lib.sh
. "$(dirname "$0")/lib.sh"

# fine_tune.py wants weights with torchvision's names: those of our ResNet are.
weights() {
	"$python" -c 'import lockstep
lockstep.Model("resnet18", input=(3, 64, 64), classes=1000, seed=7).save("resnet18.safetensors")'
}

arguments() { # NAME
	case $1 in
	mnist) echo --data glyphs ;;
	fine_tune) echo resnet18.safetensors 32 ;;
	esac
}

for source in "$SOURCE_DIR"/examples/python/*.py; do
	name=$(basename "$source" .py)
	mkdir "$name"
	read -ra words <<<"$(arguments "$name")"
	cd "$name" || exit 1
	[ "$name" != fine_tune ] || weights
	ok "$name" timeout 240 "$python" "$source" "${words[@]}"
	mv .ok output
	ok "$name prints parameters" grep -E 'parameters.* [0-9a-f]{16}' output
	cd .. || exit 1
done
is "all of them" "$test_count" 10
is "MNIST in 15 lines" "$(grep -cvE '^$|^"""|^python|^#' "$SOURCE_DIR/examples/python/mnist.py" | awk '{ print $1 <= 15 }')" 1

# bench/python, its function: both sides run and end with the same weights. Nothing is said of times here.
run "$python" "$SOURCE_DIR/bench/python" --build "$BUILD_DIR" --rounds 1 --steps 2 --only mlp --limit 1e9
is "bench/python runs" "$status" 0
like "and compares" "$out" '^mlp +128 +[0-9.]+ +[0-9.]+ +-?[0-9.]+%$'
run "$python" "$SOURCE_DIR/bench/python" --build "$BUILD_DIR" --rounds 1 --steps 2 --only mlp --limit=-1000
is "its limit decides" "$status" 1
run "$python" "$SOURCE_DIR/bench/python" --build "$BUILD_DIR" --only none
is "a model that it does not have" "$status" 2
test_end

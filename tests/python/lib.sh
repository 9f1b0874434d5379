# shellcheck shell=bash
# lib.sh - the Python package of this build, in $PWD/package: python/lockstep with the modules that are generated. Sets
# $python, an interpreter with what the tests need (tools/python-packages), or skips the script.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"

skip_all() { # REASON
	echo "1..0 # SKIP $1"
	exit 0
}
[ -z "${SANITIZER:-}" ] || skip_all "an interpreter without the sanitizer cannot load its library"
for python in "$BUILD_DIR/venv/bin/python" "${PYTHON:-python3}"; do
	"$python" -c 'import cffi, numpy, pytest' 2>/dev/null && break
	python=
done
[ -n "$python" ] || skip_all "Python's cffi, numpy and pytest are not installed"

mkdir package
cp -r "$SOURCE_DIR/python/lockstep" package/
if ! "$python" "$SOURCE_DIR/python/tools/make_binding.py" --include "$SOURCE_DIR/include" \
	--library "$BUILD_DIR/liblockstep.so" --out package/lockstep >binding.log 2>&1; then
	echo "not ok 1 - the binding is made"
	test_note "$(tail -n 20 binding.log)"
	echo "1..1"
	exit 1
fi
export PYTHONPATH=$PWD/package LOCKSTEP_LIBRARY=$BUILD_DIR/liblockstep.so PYTHONDONTWRITEBYTECODE=1 LOCKSTEP SOURCE_DIR

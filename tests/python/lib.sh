# shellcheck shell=bash
# lib.sh - the Python package of this build, in $PWD/package: python/lockstep with the modules that are generated. Sets
# $python, an interpreter with what the tests need (tools/python-packages), or skips the script. In a build with the
# address sanitizer it runs with that where LS_PYTHON_PRELOAD=1 is in the environment.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"

skip_all() { # REASON
	echo "1..0 # SKIP $1"
	exit 0
}
case ${SANITIZER:-}${LS_PYTHON_PRELOAD:+-preload} in
"" | -preload | address-preload) ;;
*) skip_all "an interpreter without the sanitizer cannot load its library (LS_PYTHON_PRELOAD=1 preloads that of addresses)" ;;
esac
for python in "$BUILD_DIR/venv/bin/python" "$SOURCE_DIR/build/venv/bin/python" "${PYTHON:-python3}"; do
	"$python" -c 'import cffi, numpy, pytest' 2>/dev/null && break
	python=
done
[ -n "$python" ] || skip_all "Python's cffi, numpy and pytest are not installed"

# The sanitizer's library comes before the interpreter's malloc(), which is then C's; that of C++ before it is asked for
# exceptions. Errors end a program. Leaks are written to files and do not: the interpreter and others have some at their
# end.
with_address_sanitizer() {
	local compiler name=libasan.so path library
	compiler=$(sed -nE 's/^CMAKE_C_COMPILER:[A-Z]+=//p' "$BUILD_DIR/CMakeCache.txt")
	! "$compiler" --version | grep -q clang || name=libclang_rt.asan-$(uname -m).so
	library=$("$compiler" -print-file-name="$name")
	path=$(command -v "$python")
	printf '#!/bin/sh\nLD_PRELOAD="%s %s" exec "%s" "$@"\n' "$library" "$("$compiler" -print-file-name=libstdc++.so.6)" "$path" >python
	chmod +x python
	mkdir reports
	python=$PWD/python
	export PYTHONMALLOC=malloc
	export ASAN_OPTIONS="detect_leaks=1:abort_on_error=1:exitcode=0:log_path=$PWD/reports/report:stack_trace_format='    #%n %F %L (%m)'"
	"$python" -c '' || skip_all "the interpreter does not run with $library"
}
[ "${SANITIZER:-}" != address ] || with_address_sanitizer

# What the sanitizer reports, each a block of lines, with one of our libraries or the command among the first calls:
# behind what the interpreter keeps they stand later, where they called it back.
reports_of_ours() {
	cat reports/report.* 2>/dev/null | awk -v RS= -v ORS='\n\n' '/ #[0-5] [^\n]*\([^)]*lockstep[^)\/]*\)/'
}

mkdir package
cp -r "$SOURCE_DIR/python/lockstep" package/
if ! "$python" "$SOURCE_DIR/python/tools/make_binding.py" --include "$SOURCE_DIR/include" \
	--library "$BUILD_DIR/liblockstep.so" --out package/lockstep >binding.log 2>&1; then
	echo "not ok 1 - the binding is made"
	test_note "$(tail -n 20 binding.log)" "$(cat reports/* 2>/dev/null | head -n 60)"
	echo "1..1"
	exit 1
fi
export PYTHONPATH=$PWD/package LOCKSTEP_LIBRARY=$BUILD_DIR/liblockstep.so PYTHONDONTWRITEBYTECODE=1 LOCKSTEP SOURCE_DIR

# cffi closes the library at the end, and then no report can name a function of it: Python reads this when it starts,
# and ctypes never closes one.
[ "${SANITIZER:-}" != address ] || cat >package/sitecustomize.py <<'PYTHON'
import ctypes
import os

if os.path.exists(os.environ.get("LOCKSTEP_LIBRARY", "")):
    ctypes.CDLL(os.environ["LOCKSTEP_LIBRARY"])
PYTHON

# shellcheck shell=bash
# lib.sh - TAP for scripts that compare programs of this folder with Python.
#
#   check NAME COMMAND...   one test: whether COMMAND ends with status 0
#   check_end               the plan, and the status of the script
#   python_with MODULE...   prints the first interpreter that has the modules, of $PYTHON or Debian's and those that
#                           tools/python-packages made; where none has, prints why the first has not, and fails
#
n=0
failed=0

python_with() { # MODULE...
	local python modules error reason=
	modules=$(IFS=, && echo "$*")
	for python in "${PYTHON:-/usr/bin/python3}" "$BUILD_DIR/venv/bin/python" "$BUILD_DIR/golden-venv/bin/python"; do
		if error=$("$python" -c "import $modules" 2>&1); then
			echo "$python"
			return
		fi
		reason=${reason:-$error}
	done
	tail -n 1 <<<"$reason"
	return 1
}

check() { # NAME COMMAND...
	local name=$1 output status
	shift
	n=$((n + 1))
	output=$("$@" 2>&1)
	status=$?
	if [ $status = 0 ]; then
		echo "ok $n - $name"
	else
		failed=1
		echo "not ok $n - $name"
	fi
	[ -z "$output" ] || sed 's/^/# /' <<<"$output"
}

check_end() {
	echo "1..$n"
	exit $failed
}

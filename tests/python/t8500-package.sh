#!/bin/bash
# The Python package: tests/python/test_*.py, each test a line here, and mypy where it is installed.
# shellcheck source=tests/python/lib.sh
. "$(dirname "$0")/lib.sh"

"$python" -m pytest -v -p no:cacheprovider --color=no --basetemp="$PWD/pytest" "$SOURCE_DIR/tests/python" >pytest.log 2>&1
code=$?
while read -r result name; do
	case $result in
	PASSED) test_result 0 "$name" ;;
	SKIPPED) skip "$name" "pytest says so" ;;
	*) test_result 1 "$name" ;;
	esac
done < <(sed -nE 's/^[^:]*::(.*) (PASSED|FAILED|ERROR|SKIPPED)( .*)?$/\2 \1/p' pytest.log)
is "pytest ends well, and each of its tests has a line" "$code $test_count" "0 $(sed -nE 's/^collected ([0-9]+) .*/\1/p;s/^collecting .* collected ([0-9]+) .*/\1/p' pytest.log)"
[ $code = 0 ] || test_note "$(tail -n 60 pytest.log)"

if [ -n "${SANITIZER:-}" ]; then
	is "the sanitizer finds no error and no leak of ours" "$(reports_of_ours | head -n 60)" ""
	test_end
fi
if "$python" -c 'import mypy' 2>/dev/null; then
	ok "types are those that are written down" "$python" -m mypy --config-file "$SOURCE_DIR/python/pyproject.toml" \
		--cache-dir=/dev/null package/lockstep
else
	skip "types are those that are written down" "mypy is not installed"
fi
test_end

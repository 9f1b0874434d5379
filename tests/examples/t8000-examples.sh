#!/bin/bash
# Every program in examples/ runs to its end, in an empty directory and without a network; one that
# takes more than four minutes ($EXAMPLE_TIMEOUT seconds) fails.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
n=0
failed=0
for source in "$SOURCE_DIR"/examples/*.c; do
	[ -f "$source" ] || continue
	name=$(basename "$source" .c)
	n=$((n + 1))
	mkdir "$work/$name"
	if (cd "$work/$name" && LOCKSTEP_DATA=$work/no-data timeout "${EXAMPLE_TIMEOUT:-240}" "$BUILD_DIR/examples/$name") \
		>"$work/output" 2>&1 && [ -s "$work/output" ]; then
		echo "ok $n - $name: $(tail -1 "$work/output" | tr -d '#')"
	else
		failed=1
		echo "not ok $n - $name"
		tail -40 "$work/output" | sed 's/^/# /'
	fi
done
[ $n -gt 0 ] && echo "1..$n" || echo "1..0 # SKIP there are no examples"
exit $failed

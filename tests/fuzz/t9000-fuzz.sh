#!/bin/bash
# Every fuzz target for a few seconds. FUZZ_SECONDS and FUZZ_SEED change how long and which.
seconds=${FUZZ_SECONDS:-4}
seed=${FUZZ_SEED:-$(date +%s)}
work=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d) # in memory: parsers of files sync what they write
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work
echo "# seed $seed"

if [ "$SANITIZER" = thread ]; then
	echo "1..0 # SKIP the parsers' fuzz targets are not built under ThreadSanitizer"
	exit 0
fi

n=0
failed=0
for source in "$SOURCE_DIR"/tests/fuzz/fuzz_*_*.c; do
	[ -f "$source" ] || continue
	name=$(basename "$source" .c)
	mkdir -p "$work/$name"
	corpus=$SOURCE_DIR/tests/fuzz/corpus/$name
	[ -d "$corpus" ] || corpus=
	n=$((n + 1))
	# The first directory is where libFuzzer puts what it finds: never the tree's own.
	if (cd "$work" && "$BUILD_DIR/tests/fuzz/$name" -seed="$seed" -runs=200000 -max_total_time="$seconds" \
		-max_len=65536 -rss_limit_mb=2048 "$work/$name" ${corpus:+"$corpus"}) >"$work/output" 2>&1; then
		echo "ok $n - $name, seed $seed"
	else
		failed=1
		echo "not ok $n - $name, seed $seed"
		tail -60 "$work/output" | sed 's/^/# /'
		for crash in "$work"/crash-* "$work"/oom-* "$work"/timeout-*; do
			[ -f "$crash" ] && echo "# failing input, base64: $(head -c 4096 "$crash" | base64 -w0)"
		done
		rm -f "$work"/crash-*
	fi
done
echo "1..$n"
exit $failed

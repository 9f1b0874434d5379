#!/bin/bash
# README.md and docs/: links lead somewhere, commands have the options they are shown with, the README is short and what
# it promises first is true.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

check() { # FILE...: its problems
	python3 "$SOURCE_DIR/tests/cli/check_docs.py" "$LOCKSTEP" "$@"
}

# the check itself: a page with one mistake of each kind
cat >bad.md <<'END'
# A page
See [this](bad.md#a-page), [that](missing.md), [there](bad.md#nowhere) and [the web](https://example.org/x).
`--lr` is an option, `--no-such` is none.
```
lockstep train --model cnn \
    --wrong-one --lr 1e-3 | tail -1   # --comment
lockstep data get mnist --from DIR
lockstep slurm --nodes 2 -- --model cnn --nodes 2 > job.sh
mpirun --bind-to none build/lockstep bench --wrong-too
```
END
is "the check finds what is wrong" "$(check bad.md | sed 's/.*bad\.md:/bad.md:/')" "bad.md:2: missing.md does not exist
bad.md:2: bad.md#nowhere: there is no such heading
bad.md:3: no command has --no-such
bad.md:6: lockstep train has no --wrong-one
bad.md:8: lockstep train has no --nodes
bad.md:9: lockstep bench has no --wrong-too"

pages=("$SOURCE_DIR"/README.md "$SOURCE_DIR"/docs/*.md)
ok "there are pages" test ${#pages[@]} -ge 9
is "links of README.md and docs/ exist, and so do the options of their commands" "$(check "${pages[@]}")" ""
for page in "$SOURCE_DIR"/docs/*.md; do
	name=$(basename "$page")
	[ "$name" = README.md ] || ok "docs/README.md lists $name" grep -q "]($name)" "$SOURCE_DIR/docs/README.md"
done
words=$(wc -w <"$SOURCE_DIR/README.md")
ok "README.md has at most 500 words: $words" test "$words" -le 500

# Targets of make that pages show exist.
shown=$(sed -nE 's/^make ([^#]*).*/\1/p' "${pages[@]}" "$SOURCE_DIR/CONTRIBUTING.md" | tr -s ' ' '\n' | grep -xE '[a-z-]+' | sort -u)
ok "pages show targets of make" grep -qx lockstep <<<"$shown"
for target in $shown; do
	ok "make $target exists" grep -qE "^$target:.* ## " "$SOURCE_DIR/Makefile"
done

# What docs/predict.md shows first can be followed in the directory of the README's commands, with the result that it shows.
follow() { # the first block of commands in docs/predict.md
	mkdir bin
	ln -s "$LOCKSTEP" bin/lockstep
	awk '/^```$/ { n++; next } n == 1' "$SOURCE_DIR/docs/predict.md" >commands
	PATH=$PWD/bin:$PATH bash -e commands
}
# The commands that the README shows first print the fingerprint that it shows.
mapfile -t shown < <(sed -nE 's,^build/lockstep (train .*),\1,p' "$SOURCE_DIR/README.md")
is "README.md shows two training commands" "${#shown[@]}" 2
promised=$(fingerprint "$(cat "$SOURCE_DIR/README.md")")
like "README.md shows a fingerprint" "$promised" '^[0-9a-f]{16}$'
for line in "${shown[@]}"; do
	read -ra arguments <<<"${line%%|*}"
	run "$LOCKSTEP" "${arguments[@]}"
	is "lockstep $line" "$(fingerprint "$out")" "$promised"
done
run follow
is "docs/predict.md can be followed" "$status" 0
probability=$(sed -nE 's/.*"label":7,"probability":([0-9.]+),"top".*/\1/p' "$SOURCE_DIR/docs/predict.md")
like "and shows the right answer" "$out" "digit.png,1,7,${probability:-none},"

test_end

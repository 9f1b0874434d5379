#!/bin/bash
# Byte-pair encoding gives the ids that Hugging Face's tokenizers do with the same files: on hard cases, every character
# and random texts. BPE_STRINGS and BPE_SEED change how many texts and which.
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/golden/lib.sh
. "$here/lib.sh"

if ! python=$(python_with tokenizers); then
	echo "1..0 # SKIP there is no package tokenizers for Python"
	exit 0
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

mkdir "$work/text"
cat "$SOURCE_DIR"/docs/*.md "$here/wordpiece-vocab.txt" >"$work/text/docs.txt"
check "a vocabulary is learnt" "$LOCKSTEP" data make vocab "$work/text" --bpe --size 2000 --out "$work"
check "ids are those of tokenizers" "$python" "$here/bpe.py" "$BUILD_DIR/tests/golden/bpe_lines" "$work" \
	--strings "${BPE_STRINGS:-100000}" ${BPE_SEED:+--seed "$BPE_SEED"}
check_end

#!/bin/bash
# With GPT-2's own vocabulary, ids are those that Hugging Face's tokenizers give: hard cases, every character, random
# texts. Needs npm and a network once; BPE_STRINGS and BPE_SEED change how many texts and which.
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/golden/lib.sh
. "$here/lib.sh"

if ! python=$(python_with tokenizers); then
	echo "1..0 # SKIP there is no package tokenizers for Python"
	exit 0
fi
if ! reason=$("$here/gpt2-vocabulary" "$BUILD_DIR/gpt2-vocabulary" 2>&1); then
	echo "1..0 # SKIP $(tail -n 1 <<<"$reason")"
	exit 0
fi
check "ids are those of tokenizers" "$python" "$here/bpe.py" "$BUILD_DIR/tests/golden/bpe_lines" "$BUILD_DIR/gpt2-vocabulary" \
	--strings "${BPE_STRINGS:-100000}" ${BPE_SEED:+--seed "$BPE_SEED"}
check_end

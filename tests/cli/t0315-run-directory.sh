#!/bin/bash
# A run directory in bad shape: nothing in it is lost, and what can go on does.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

listing() { # RUN: every file with its contents
	(cd "$1" && find . -type f ! -name .lock -exec sha256sum {} + | sort -k 2)
}
run small_train --steps 20
whole=$(fingerprint "$out")
run small_train --steps 10 --run runs/good --ckpt-every 5
is "a run with two checkpoints" "$(cd runs/good/ckpt && echo *)" "step-000000005 step-000000010"

# Checkpoints that cannot be read: refused, and nothing changes.
unreadable() { # NAME COMMAND: applied to every checkpoint directory
	local name=$1 directory before
	shift
	rm -rf runs/bad
	cp -r runs/good runs/bad
	for directory in runs/bad/ckpt/step-*; do
		"$@" "$directory"
	done
	before=$(listing runs/bad)
	fails_with "$name: refused" 1 "no checkpoint in runs/bad/ckpt can be used \(2 found\).*nothing was changed" \
		small_train --steps 20 --run runs/bad --resume
	is "$name: nothing was changed" "$(listing runs/bad)" "$before"
}
damage() { printf 'x' | dd of="$1/model.safetensors" bs=1 seek=5000 conv=notrunc 2>/dev/null; }
newer() { sed -i 's/"format": 1/"format": 2/' "$1/state.json"; }
lose_state() { rm "$1/state.json"; }
lose_all() { rm "$1"/*; }
unreadable "damaged checkpoints" damage
unreadable "checkpoints of another format" newer
unreadable "checkpoints without state" lose_state
unreadable "empty checkpoint directories" lose_all

test_end

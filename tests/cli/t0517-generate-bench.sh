#!/bin/bash
# bench/generate with stand-ins for both sides: what it requires of Lockstep without guesses, its texts, and that it
# leaves nothing behind.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
mkdir temporary
export TMPDIR=$PWD/temporary PYTHONDONTWRITEBYTECODE=1

# A PyTorch of 100 tokens per second and a transformers of half that, which write the letter "a" again and again; of the
# latter $OTHER is the first token.
cat >torch <<'END'
#!/usr/bin/env python3
import json, os, sys
if "--probe" in sys.argv:
    print(json.dumps({"torch": "9.9", "torchvision": "9.9", "onednn": "none", "capability": "none"}))
    sys.exit()
kind, a = sys.argv[-1], ord("a") - 33
print(json.dumps({"ready": True, "version": "9.9" if kind == "torch" else "8.8"}), flush=True)
for line in sys.stdin:
    count = json.loads(line)["count"]
    first = int(os.environ.get("OTHER", a)) if kind == "transformers" else a
    print(json.dumps({"seconds": count / (100 if kind == "torch" else 50), "tokens": [first] + [a] * (count - 1)}), flush=True)
END
# A lockstep of $RATE tokens per second, with guesses ten times that.
cat >lockstep <<'END'
#!/bin/bash
while [ $# -gt 0 ]; do
	case $1 in
	--lookup) lookup=$2 ;;
	--max-new-tokens) count=$2 ;;
	esac
	shift
done
[ "$lookup" = 0 ] || RATE=$((RATE * 10))
printf 'a%.0s' $(seq "$count")
echo
awk "BEGIN { printf \"read 44 tokens in 0.000 sec; generated %d in %.3f sec\\n\", $count, $count / $RATE }" >&2
END
chmod +x torch lockstep
export RATE
measure() { "$SOURCE_DIR/bench/generate" --lockstep "$PWD/lockstep" --torch "$PWD/torch" --tokens 24 --rounds 2 "$@"; }

RATE=200 run measure --transformers
is "twice as fast is enough" "$status" 0
like "beside PyTorch" "$out" '^torch +100\.0 +2\.00x +2\.00-2\.00 +20\.00x +20\.00-20\.00 +1\.5x +yes +yes$'
like "beside transformers" "$out" '^transformers +50\.0 +4\.00x .* 1\.5x +yes +yes$'
like "guesses have a row of their own" "$out" '^lockstep --lookup 15 +2000\.0 .* yes +yes$'
like "both versions are named" "$out" '^torch +torch 9\.9, transformers 8\.8$'
RATE=120 run measure
is "guesses do not make up for a slow program" "$status" 1
like "the row says so" "$out" '^torch +100\.0 +1\.20x +1\.20-1\.20 +12\.00x .* 1\.5x +yes +NO$'
RATE=120 run measure --required 1.2
is "another requirement" "$status" 0
RATE=200 OTHER=33 run measure --transformers
is "another text is a failure" "$status" 1
like "and where it is" "$out" '^transformers .* NO +NO$'
is "nothing is left behind" "$(ls temporary)" ""

test_end

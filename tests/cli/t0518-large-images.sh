#!/bin/bash
# bench/large-images with stand-ins for compiler, products and lockstep: the layers that it measures, its table, its verdict.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# A compiler whose program notes its input and says 200 GFLOP/s.
cat >compiler <<'END'
#!/bin/bash
while [ "$1" != -o ]; do shift; done
printf '#!/bin/bash\ncat >"%s/layers"\necho " 1.0 2.0 3.0"\necho "all 200.00"\n' "$PWD" >"$2"
chmod +x "$2"
END
# 160 GFLOP/s directly, $AUTO by default.
cat >stand-in <<'END'
#!/bin/bash
[ -n "${AUTO:-}" ] || { echo "stand-in: out of luck" >&2; exit 1; }
rate=160
[[ " $* " != *" --conv auto "* ]] || rate=$AUTO
echo "{\"gflop_per_s\": $rate, \"samples_per_s\": $((rate / 20)), \"peak_rss_bytes\": 1600000000}"
END
chmod +x compiler stand-in
mkdir temporary
export CC=$PWD/compiler TMPDIR=$PWD/temporary
bench=("$SOURCE_DIR/bench/large-images" --lockstep ./stand-in --rounds 2)

AUTO=190 run "${bench[@]}"
is "enough" "$status" 0
like "the products" "$out" '^bare products +200\.0 *$'
like "steps that make them" "$out" '^a step, --conv direct +160\.0 +80\.0 % +8\.00 +100$'
like "steps by default" "$out" '^a step, --conv auto +190\.0 +95\.0 % +9\.00 +100$'
like "the machine" "$out" '^resnet50, 224x224x3, 16 per step, one thread; .*(: quiet|NOT QUIET: .*)$'
is "resnet50 has 53 convolutions" "$(awk '{ sum += $7 } END { print sum, NR }' layers)" "53 23"
is "which come to 8.2 GFLOP per image, forward" \
	"$(awk '{ sum += 2 * $1 * $2 * $3 * $3 * ($5 / $4) * ($5 / $4) * $7 } END { printf "%.1f", sum / 1e9 }' layers)" 8.2
AUTO=170 run "${bench[@]}"
is "too little" "$status" 1
AUTO=170 run "${bench[@]}" --required 0.8 --model resnet18 --size 64 --batch 8
is "as much as is asked for" "$status" 0
is "resnet18 has 20 convolutions" "$(awk '{ sum += $7; sizes = sizes " " $5; batch = $6 } END { print sum, batch sizes }' layers)" \
	"20 8 64 16 16 8 16 8 4 8 4 2 4"
run "${bench[@]}"
is "nothing is measured" "$status" 2
like "and a message reports it" "$err" 'large-images: .*stand-in.* failed: stand-in: out of luck'
AUTO=190 run "${bench[@]}" --size 100
is "a size that does not halve" "$status" 2
is "nothing is left" "$(ls temporary)" ""

test_end

#!/bin/bash
# bench/images with a stand-in for PyTorch: its sets, its tables, its verdict, and that it leaves nothing behind.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
export TMPDIR=$PWD PYTHONDONTWRITEBYTECODE=1 FORMATS=$SOURCE_DIR/tests/cli LOCKSTEP

# In the place of images_torch.py: images of generated digits, and a rate of $RATE samples per second.
cat >torch <<'END'
#!/bin/bash
case $2 in
--probe) echo '{"torch": "9.9", "torchvision": "9.9", "pillow": "9.9"}' ;;
--make)
	"$LOCKSTEP" data make glyphs --samples "$4" --out "$6.made" --quiet && python3 "$FORMATS/image_formats.py" "$6.made" "$6" &&
		mv "$6/folder" "$6/png" && cp -r "$6/png" "$6/jpeg"
	;;
*)
	while read -r _; do
		echo "{\"seconds\": 1, \"samples\": $RATE}"
	done
	;;
esac
END
chmod +x torch
measure() { "$SOURCE_DIR/bench/images" --lockstep "$LOCKSTEP" --torch "$PWD/torch" --quick --sets 28x1 "$@"; }

RATE=1 run measure --only decode --json
is "two points are measured, and fast enough" "$status" 0
echo "$out" >points.json
ok "with both sides" json points.json 'len(o["decoding"]) == 2 and not o["training"] and all(
	p["rates"][0] > 2 and p["rates"][1] == 1 and p["ratio"] == p["rates"][0] for p in o["decoding"])'
RATE=1000000000 run measure
is "a slower one is a failure" "$status" 1
like "a table of decoding" "$out" '^28x1 jpeg +600 .* 2.00 +NO$'
like "and of training" "$out" '^28x1 png +cnn .* 0.95 '
run "$SOURCE_DIR/bench/images" --lockstep "$LOCKSTEP" --start 1000 --json
is "starting on 1,000 files is measured, without PyTorch" "$status" 0
echo "$out" >start.json
ok "for the first and the second time" json start.json 'o["files"] == 1000 and o["first_s"] > 0 and o["second_s"] > 0 and o["met"]'
# A lockstep that sees one training file less.
cat >lockstep <<'END'
#!/bin/bash
rm -f "$5/train/class 0/0.png"
exec "$LOCKSTEP" "$@"
END
chmod +x lockstep
run "$SOURCE_DIR/bench/images" --lockstep "$PWD/lockstep" --start 200
is "a training on fewer files is not measured" "$status" 2
like "and it says how many" "$err" 'was to start on 200 files: .*data files: 199 training samples'
run "$SOURCE_DIR/bench/images" --lockstep "$LOCKSTEP" --start 100
like "a table of it" "$out" '^100 +[0-9.]+ +[0-9.]+ +- +yes$'
run "$SOURCE_DIR/bench/images" --start 5
is "too few are refused" "$status" 2
is "nothing is left behind" "$(find . -name 'lockstep-images-*')" ""
run "$SOURCE_DIR/bench/images" --lockstep "$LOCKSTEP" --torch /nowhere/python
is "without PyTorch nothing is measured" "$status" 2
like "and it says why" "$err" '^bench/images: /nowhere/python'

test_end

#!/bin/bash
# lockstep data show: a PNG of training images as --augment changes them.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

if ! "$LOCKSTEP" data show glyphs --rows 1 --epochs 0 --out probe.png 2>.err; then
	like "a build without libpng says so" "$(cat .err)" 'without libpng'
	test_end
	exit
fi
pixels() { # FILE: "width height depth colour", and a checksum of the pixels
	python3 -c "
import struct, sys, zlib
b = open(sys.argv[1], 'rb').read()
assert b[:8] == b'\\x89PNG\\r\\n\\x1a\\n'
at, data = 8, b''
while at < len(b):
    n, = struct.unpack('>I', b[at:at + 4])
    if b[at + 4:at + 8] == b'IDAT':
        data += b[at + 8:at + 8 + n]
    at += 12 + n
print(*struct.unpack('>IIBB', b[16:26]), zlib.crc32(zlib.decompress(data)))" "$1"
}
run "$LOCKSTEP" data show glyphs --rows 3 --epochs 2 --augment rotate:20,crop:4 --out sheet.png
is "it draws" "$status" 0
is "and says nothing" "$out$err" ""
# 28 pixels are drawn as 84; a gap of 2 around cells, of 8 behind the first.
like "three rows of an image and two epochs" "$(pixels sheet.png)" "^$((2 + 84 + 8 + 2 * 86)) $((2 + 3 * 86)) 8 0 [0-9]+$"
run "$LOCKSTEP" data show glyphs --rows 3 --epochs 2 --augment rotate:20,crop:4 --out again.png
is "the same again" "$(pixels again.png)" "$(pixels sheet.png)"
run "$LOCKSTEP" data show glyphs --rows 3 --epochs 2 --augment rotate:20,crop:4 --seed 2 --out other.png
unlike "another seed, another picture" "$(pixels other.png)" "$(pixels sheet.png | cut -d ' ' -f 5)"
run "$LOCKSTEP" data make glyphs --samples 2 --out two --quiet
run "$LOCKSTEP" data show two --out two.png
is "fewer samples than rows" "$(pixels two.png | cut -d ' ' -f 2)" $((2 + 2 * 86))
fails_with "without --out" 2 '--out FILE is missing' "$LOCKSTEP" data show glyphs
fails_with "text" 2 "'babble' is text; only images can be shown" "$LOCKSTEP" data show babble --out no.png
fails_with "a wrong list" 2 "did you mean 'rotate'" "$LOCKSTEP" data show glyphs --augment rotat --out no.png
fails_with "rows without end" 2 '--rows' "$LOCKSTEP" data show glyphs --rows 100000 --out no.png
fails_with "a picture that is too large" 2 'too large; show fewer rows or epochs' "$LOCKSTEP" data show glyphs --rows 1000 --epochs 1000 --out no.png
fails_with "a folder that is not there" 1 'nowhere/sheet.png' "$LOCKSTEP" data show glyphs --out nowhere/sheet.png
ok "nothing is left of failures" test ! -e no.png
like "completion knows it" "$("$LOCKSTEP" data --help)" 'show +draw training images'
test_end

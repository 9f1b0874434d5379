#!/bin/bash
# Folders that are large in one way: of thousands of classes, and of images that take much memory to decode.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
export LOCKSTEP_DATA=$PWD/data PYTHONDONTWRITEBYTECODE=1

# ---- 2,000 classes
python3 - "$SOURCE_DIR" <<'EOF'
import os, sys
sys.path.insert(0, sys.argv[1] + "/tests/cli")
from image_folder import png
CLASSES = 2000
for label in range(CLASSES):
    for split, count in (("train", 2), ("test", int(label % 10 == 0))):
        folder = "many/%s/class %04d" % (split, label)
        if count:
            os.makedirs(folder)
        for i in range(count):
            with open("%s/%d.png" % (folder, i), "wb") as out:
                out.write(png(bytes((label >> bit & 1) * 255 for bit in range(16)), 4, 4))
EOF
run "$LOCKSTEP" data info many
like "2,000 folders are 2,000 classes" "$out" '^train: 4000 samples of 1 x 4 x 4, 2000 classes'
like "of which the test images have some" "$out" '^test: 200 samples'
run "$LOCKSTEP" train --model mlp --data many --batch 400 --steps 6 --run run --schedule constant
is "they are trained on" "$status" 0
first=$(fingerprint "$out")
run "$LOCKSTEP" train --model mlp --data many --batch 400 --steps 6 --devices 3 --schedule constant
is "from what is kept, the same bits" "$(fingerprint "$out")" "$first"
is "every class has a name" "$(wc -l <run/labels.txt) $(tail -n 1 run/labels.txt)" "2000 class 1999"
run "$LOCKSTEP" eval run --metrics metrics.json
like "and is evaluated" "$out" '200 samples'
ok "with counts of all" json metrics.json "len(o['classes']) == 2000 and o['classes'][1999]['name'] == 'class 1999'"
mkdir "many/test/class 2000"
cp "many/test/class 0000/0.png" "many/test/class 2000/"
fails_with "a class that training does not have" 1 "many/test has a class 'class 2000'" "$LOCKSTEP" eval run

# ---- memory
# Images of 106 MB each, of some 400 kB in the file: threads wait until others have decoded theirs.
python3 - "$SOURCE_DIR" <<'EOF'
import os, shutil, struct, sys, zlib
sys.path.insert(0, sys.argv[1] + "/tests/cli")
from image_folder import chunk, png
SIDE = 4200
rows = zlib.compress(bytes(SIDE * (1 + SIDE * 6)), 1)
for folder in ("train/a", "train/b", "test/a"):
    os.makedirs("large/" + folder)
with open("large/train/a/0.png", "wb") as out: # 16 bits, RGB
    out.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 16, 2, 0, 0, 0)) + chunk(b"IDAT", rows) + chunk(b"IEND", b""))
for name in ("a/1", "b/0", "b/1"):
    shutil.copyfile("large/train/a/0.png", "large/train/%s.png" % name)
with open("large/test/a/0.png", "wb") as out:
    out.write(png(bytes(64), 8, 8))
EOF
peak=$(ASAN_OPTIONS=${ASAN_OPTIONS:-}:quarantine_size_mb=1 python3 - "$LOCKSTEP" data check large --image-size 8 --threads 4 <<'EOF'
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
EOF
)
ok "four threads decode large images two at a time (${peak:-no} MB at most)" test "${peak:-9999}" -lt 350
test_end

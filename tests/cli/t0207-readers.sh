#!/bin/bash
# The same images as IDX files, as a folder, in tar shards and in NumPy arrays train to the same bits, on any devices and threads, with and without
# the cache; and such files that are wrong.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
export LOCKSTEP_DATA=$PWD/data PYTHONDONTWRITEBYTECODE=1

ok "digits as IDX files" "$LOCKSTEP" data make glyphs --samples 300 --out made --quiet
ok "and in every other form" python3 "$SOURCE_DIR/tests/cli/image_formats.py" made .

fingerprint() { # ARGUMENT...: of a training
	"$LOCKSTEP" train --model cnn --epochs 1 --batch 60 --micro-batch 15 "$@" 2>err | tail -n 1
}
first=$(fingerprint --data idx --devices 1 --threads 1)
like "IDX files train" "$first" '^parameters xxh64 [0-9a-f]{16}$'
is "an .npz" "$(fingerprint --data digits.npz --devices 2 --threads 1)" "$first"
is "a compressed one" "$(fingerprint --data packed.npz --devices 1 --threads 2)" "$first"
is "a directory of .npy" "$(fingerprint --data arrays --devices 4 --threads 1)" "$first"
is "floats that are pixels / 255, channels last" "$(fingerprint --data floats.npz)" "$first"
like "and a message reports it" "$(cat err)" 'floats.npz: x_train.npy: 300 images of 28x28 pixels and 1 channel, taken as \(N, H, W, C\)'
is "a folder without a cache" "$(fingerprint --data folder --cache off --devices 2 --threads 1)" "$first"
is "a folder that fills the cache" "$(fingerprint --data folder --devices 1 --threads 2)" "$first"
is "and from it" "$(fingerprint --data folder --devices 4)" "$first"
is "shards without a cache" "$(fingerprint --data shards --cache off --devices 1 --threads 1)" "$first"
is "shards that fill the cache" "$(fingerprint --data shards --devices 2 --threads 1)" "$first"
is "and from it" "$(fingerprint --data shards --devices 1 --threads 2)" "$first"

# Mean and deviation are those of all images, of however many.
ok "more digits" "$LOCKSTEP" data make glyphs --samples 1500 --out more-made --quiet
ok "in every form" python3 "$SOURCE_DIR/tests/cli/image_formats.py" more-made more 1500
ordered=$(fingerprint --data more/idx --model mlp)
like "1,500 images train" "$ordered" '^parameters xxh64 [0-9a-f]{16}$'
for form in digits.npz packed.npz arrays floats.npz shards folder folder; do # the folder once more, from what is kept
	is "the same as more/$form" "$(fingerprint --data more/$form --model mlp)" "$ordered"
done
is "without a cache" "$(fingerprint --data more/folder --model mlp --cache off)" "$ordered"
core=$(grep -oE '[0-9]+$' <<<"$(taskset -cp $$)")
is "measured by one thread" "$(taskset -c "$core" "$LOCKSTEP" train --model mlp --epochs 1 --batch 60 --micro-batch 15 --data more/folder --cache off | tail -n 1)" \
	"$ordered"

run "$LOCKSTEP" train --model cnn --data digits.npz --steps 4 --batch 60 --schedule constant --run run --quiet
is "a run on arrays" "$status" 0
run "$LOCKSTEP" eval run
is "is evaluated" "$status" 0
accuracy=${out% in *}
run "$LOCKSTEP" eval run --data shards
is "also on shards" "${out% in *}" "$accuracy"
run "$LOCKSTEP" predict run arrays/x_test.npy
is "predictions of an array" "$status" 0
predicted=$(sed 's/^[^,]*,//' <<<"$out") # without the name of the file
run "$LOCKSTEP" predict run idx/t10k-images-idx3-ubyte
is "are those of the IDX file" "$(sed 's/^[^,]*,//' <<<"$out")" "$predicted"
for archive in digits.npz packed.npz floats.npz; do
	run "$LOCKSTEP" predict run $archive
	is "and those of $archive" "$(sed 's/^[^,]*,//' <<<"$out")" "$predicted"
done
run "$LOCKSTEP" predict run shards/test-*.tar
is "and those of shards" "$(tail -n +2 <<<"$out" | cut -d, -f3-)" "$(tail -n +2 <<<"$predicted" | cut -d, -f2-)"
head -c 30000 shards/test-000000.tar >cut.tar
fails_with "a truncated shard to predict" 1 'cut.tar: truncated: it ends inside of' "$LOCKSTEP" predict run cut.tar
python3 - <<'EOF'
import io, tarfile
with tarfile.open("shards/test-000000.tar") as source, tarfile.open("spoiled.tar", "w") as out:
    for member in source:
        data = source.extractfile(member).read()
        if member.name.endswith(".png") and not any(m.name.endswith(".png") for m in out.getmembers()):
            data = b"no image" + bytes(len(data) - 8)
        out.addfile(member, io.BytesIO(data))
with tarfile.open("texts.tar", "w") as out:
    out.addfile(tarfile.TarInfo("a.txt"), io.BytesIO(b""))
EOF
fails_with "a member that is no image is named" 1 'spoiled.tar/[^ ]+.png is neither a PNG nor a JPEG image' "$LOCKSTEP" predict run spoiled.tar
run "$LOCKSTEP" predict run shards/test-000000.tar --quiet
whole=$(tail -n +3 <<<"$out" | cut -d, -f2-)
run "$LOCKSTEP" predict run spoiled.tar --skip-bad
is "--skip-bad leaves it out alone" "$(tail -n +2 <<<"$out" | cut -d, -f2-)" "$whole"
fails_with "a tar file without images" 1 'texts.tar has no images' "$LOCKSTEP" predict run texts.tar
gzip -k cut.tar
fails_with "a compressed one" 1 'cut.tar.gz is a compressed tar archive; decompress it first' "$LOCKSTEP" predict run cut.tar.gz
run "$LOCKSTEP" predict run - <cut.tar
like "or one from a pipe" "$err" 'standard input is a tar archive, which is not read from a pipe'
run "$LOCKSTEP" data info shards
like "data info" "$out" 'train: 300 samples of 1 x 28 x 28, 10 classes'
run "$LOCKSTEP" data check shards
is "data check" "$status" 0
like "reads all" "$out" 'train: 300 samples, 0 bad; read in .* samples/s'

# bad files in a folder: all nodes leave out the same, with and without a cache
cp -a folder spoiled
: >spoiled/train/0/-empty.png
echo "no image" >spoiled/train/3/text.png
head -c 100 folder/train/5/"$(ls folder/train/5 | head -n 1)" >spoiled/train/5/cut.png
mkdir -p blank/cat blank/dog alone hollow/cat hollow/dog
for i in 0 1 2 3 4 5 6 7 8 9; do
	: >blank/cat/$i.png
	cp folder/train/0/"$(ls folder/train/0 | head -n 1)" blank/dog/$i.png
done
cp -a blank/dog alone/dog
fails_with "an empty file is called so, with a way on" 1 'blank/cat/[0-9].png is an empty file, not an image; --skip-bad N leaves out' \
	"$LOCKSTEP" train --model cnn --data blank --cache off
fails_with "one class is named" 1 "alone: all samples are of class 'dog'; training needs at least two classes" "$LOCKSTEP" train --model cnn --data alone
fails_with "folders without images" 1 'hollow contains no dataset: found no class folders with images \(hollow/cat/1.png\)' "$LOCKSTEP" train --model cnn --data hollow
fails_with "a bad file ends a run" 1 'spoiled/train/[035]/[a-z-]+.png' "$LOCKSTEP" train --model cnn --data spoiled --cache off
is "left out, the bits are those without it" "$(fingerprint --data spoiled --skip-bad 3 --cache off --devices 2 --threads 1)" "$first"
is "each is named once" "$(grep -c 'left out: ' err)" 3
is "the same while the cache is filled" "$(fingerprint --data spoiled --skip-bad 3 --devices 1 --threads 2)" "$first"
is "and from it" "$(fingerprint --data spoiled --skip-bad 7 --devices 4)" "$first"
is "and named again" "$(grep -c 'left out: ' err)" 3
fails_with "more than allowed" 1 'more than --skip-bad 2 images cannot be read' "$LOCKSTEP" train --model cnn --data spoiled --skip-bad 2
run "$LOCKSTEP" data check spoiled
is "data check fails" "$status" 1
like "and counts them" "$out" 'train: 300 samples, 3 bad; read in'
like "and says what to do" "$err" '3 samples of spoiled cannot be read; --skip-bad leaves them out'
cp -a folder tested
echo "no image" >tested/test/3/text.png
fails_with "a bad test image ends a run and says what to do" 1 'tested/test/3/text.png is neither .*; --skip-bad N leaves out up to N images that cannot be read' \
	"$LOCKSTEP" train --model cnn --data tested --cache off --steps 4
is "left out of the test part, it changes no bits" "$(fingerprint --data tested --skip-bad 1 --devices 2)" "$first"
is "and is named" "$(grep -c 'left out: tested/test/3/text.png' err)" 1
run "$LOCKSTEP" train --model cnn --data tested --skip-bad 1 --steps 4 --batch 60 --run tested-run --quiet
run "$LOCKSTEP" eval tested-run
is "eval of the run leaves it out, too" "$status" 0
fails_with "eval of another run says what to do" 1 'tested/test/3/text.png is neither .*; --skip-bad N leaves out up to N' "$LOCKSTEP" eval run --data tested
run "$LOCKSTEP" eval run --data tested --skip-bad 1
is "which it does" "$status" 0
like "and names it" "$err" 'left out: tested/test/3/text.png'
fails_with "more than that is too much" 1 'more than --skip-bad 1 images cannot be read' \
	sh -c "echo 'no image' >tested/test/4/text.png; '$LOCKSTEP' eval run --data tested --skip-bad 1"
cp -a folder mixed
cp -a folder/test mixed/val
: >mixed/train/3/a.webp
is "images of other kinds are left out" "$(fingerprint --data mixed)" "$first"
like "and a message reports it" "$(cat err)" 'warning: mixed/train: 1 file such as 3/a\.webp is not read: images are PNG and JPEG, convert others'
like "and that there is a second folder of test images" "$(cat err)" 'mixed has test/ and val/: tests are on test/, and val/ is not read'
fails_with "a negative number" 2 'skip-bad' "$LOCKSTEP" train --model mlp --data idx --skip-bad -1

# a folder of other images is scaled to what the weights take
mkdir -p larger/test
cp -a folder/train larger/train
python3 - "$SOURCE_DIR" <<'EOF'
import os, sys
sys.path.insert(0, sys.argv[1] + "/tests/cli")
from image_folder import png
for split in ("train", "test"):
    for label in range(10):
        os.makedirs("larger/%s/%d" % (split, label), exist_ok=True)
        open("larger/%s/%d/-first.png" % (split, label), "wb").write(png(bytes(40 * 40), 40, 40))
EOF
run "$LOCKSTEP" eval run --data larger
is "eval on images of another size" "$status" 0
like "of all test images" "$out" '10 samples'

# wrong arrays
python3 - "$SOURCE_DIR" <<'EOF'
import pathlib, shutil, sys
sys.path.insert(0, sys.argv[1] + "/tests/cli")
from image_formats import npy
def variant(name, **files):
    shutil.copytree("arrays", name)
    for key, data in files.items():
        (pathlib.Path(name) / (key + ".npy")).write_bytes(data)
good = pathlib.Path("arrays/x_train.npy").read_bytes()
variant("objects", x_train=good.replace(b"'|u1'", b"'|O'  "))
variant("fortran", x_train=good.replace(b"False", b"True "))
variant("big", y_train=pathlib.Path("arrays/y_train.npy").read_bytes().replace(b"<i8", b">i8"))
variant("cut", x_train=good[:-1])
variant("few", y_train=npy("|u1", (299,), bytes(299)))
variant("flat", x_train=npy("|u1", (300, 784), bytes(300 * 784)))
variant("negative", y_train=npy("|i1", (300,), b"\xff" + bytes(299)))
EOF
fails_with "object dtype" 1 "objects/x_train.npy: an array of Python objects" "$LOCKSTEP" train --data objects
fails_with "Fortran order" 1 "fortran/x_train.npy: elements in Fortran order" "$LOCKSTEP" train --data fortran
fails_with "big-endian" 1 "big/y_train.npy: big-endian" "$LOCKSTEP" train --data big
fails_with "truncated" 1 "cut/x_train.npy: truncated: " "$LOCKSTEP" train --data cut
fails_with "fewer labels" 1 "few/x_train.npy has 300 images, but few/y_train.npy has 299 labels" "$LOCKSTEP" train --data few
fails_with "flat images" 1 'flat/x_train.npy has shape \(300, 784\); images are \(N, H, W\)' "$LOCKSTEP" train --data flat
fails_with "a negative label" 1 "negative/y_train.npy: label -1 at index 0" "$LOCKSTEP" train --data negative
fails_with "an array alone" 1 "x_train.npy" "$LOCKSTEP" train --data arrays/x_train.npy

# 100,000 classes
python3 - "$SOURCE_DIR" <<'EOF'
import os, struct, sys
sys.path.insert(0, sys.argv[1] + "/tests/cli")
from image_formats import npy
COUNT = 100000
os.makedirs("wide")
os.makedirs("names")
for part, labels in (("train", range(COUNT)), ("test", range(0, COUNT, 5000))):
    labels = list(labels)
    with open("wide/x_%s.npy" % part, "wb") as out:
        out.write(npy("|u1", (len(labels), 2, 2), b"".join(struct.pack(">I", 40000 * label + 7) for label in labels)))
    with open("wide/y_%s.npy" % part, "wb") as out:
        out.write(npy("<i4", (len(labels),), struct.pack("<%di" % len(labels), *labels)))
    with open("names/%s.csv" % part, "w") as out:
        out.write("x,label\n" + "".join("%d,name %d\n" % (label % 100, label) for label in labels))
EOF
run "$LOCKSTEP" data info wide
like "100,000 classes are counted" "$out" '^train: 100000 samples of 1 x 2 x 2, 100000 classes'
run "$LOCKSTEP" train --model mlp --data wide --steps 2 --batch 64 --run wide-run --quiet
is "and trained on" "$status" 0
run "$LOCKSTEP" eval wide-run
like "and evaluated" "$out" '20 samples'
fails_with "of a table they are too many" 1 "names/train.csv: column 'label' has more than 65536 different values, too many for classes" \
	"$LOCKSTEP" train --model mlp --data names

# a file that may not be read; root may read all, and others may not look into this directory
as_other=()
open=$PWD
if [ "$(id -u)" = 0 ]; then
	as_other=(setpriv --reuid nobody --regid nogroup --clear-groups --inh-caps=-all)
	open=$(mktemp -d /tmp/lockstep-test-open.XXXXXX) || exit 1
	trap 'rm -rf "$open"; test_clean' EXIT
	chmod 755 "$open"
fi
if ! (cd "$open" && "${as_other[@]}" "$LOCKSTEP" --version) >/dev/null 2>&1; then
	skip "a file that may not be read" "the command cannot be started as another user"
else
	cp -a folder "$open/locked"
	secret=locked/train/3/$(ls folder/train/3 | head -n 1)
	chmod 000 "$open/$secret"
	mkdir -m 777 "$open/data"
	as_nobody() { (cd "$open" && LOCKSTEP_DATA=$open/data "${as_other[@]}" "$LOCKSTEP" train --model cnn --data locked --batch 300 --steps 1 "$@"); }
	fails_with "a file that may not be read ends the run" 1 "cannot read $secret: Permission denied; --skip-bad N leaves out" as_nobody
	run as_nobody --skip-bad 1
	is "--skip-bad leaves it out" "$status" 0
	like "and names it" "$err" "left out: cannot read $secret: Permission denied"
	chmod 000 "$open/locked/train/4"
	fails_with "a folder that may not be read is named" 1 "cannot read the folder locked/train/4: Permission denied" as_nobody
	chmod 755 "$open/locked/train/4"
fi

# wrong shards
mkdir cut-shards
head -c 20000 shards/train-000000.tar >cut-shards/train-000000.tar
fails_with "a truncated shard" 1 "cut-shards/train-000000.tar: truncated: it ends inside of" "$LOCKSTEP" train --data cut-shards
python3 - <<'EOF'
import io, os, tarfile
os.mkdir("hostile")
with tarfile.open("shards/train-000000.tar") as source, tarfile.open("hostile/train-000000.tar", "w") as out:
    for member in source:
        out.addfile(member, source.extractfile(member))
    for name, kind in (("../../evil.png", None), ("/etc/evil.png", None), ("link.png", tarfile.SYMTYPE)):
        member = tarfile.TarInfo(name)
        if kind:
            member.type, member.linkname = kind, "/etc/passwd"
        out.addfile(member, io.BytesIO(b""))
    for name, data in (("unlabelled.png", b"x"), ("a.cls", b"\n"), ("a.png", b"x"), ("notes.txt", b"fine")):
        member = tarfile.TarInfo(name)
        member.size = len(data)
        out.addfile(member, io.BytesIO(data))
EOF
fails_with "a name that leads out of the archive" 1 'hostile/train-000000.tar: member .\.\./\.\./evil.png. has a name that leads out of the archive: it is refused; --skip-bad N leaves out' "$LOCKSTEP" train --data hostile
run "$LOCKSTEP" train --model mlp --data hostile --skip-bad 5 --steps 1
is "five that are wrong are left out" "$status" 0
is "each named once" "$(grep -c 'left out: hostile/train' <<<"$err")" 5
fails_with "but no more than that" 1 "5 samples cannot be read, more than --skip-bad 4" "$LOCKSTEP" train --data hostile --skip-bad 4
python3 - <<'EOF'
import io, tarfile
with tarfile.open("shards/train-000000.tar") as source:
    image = next(source.extractfile(m).read() for m in source if m.name.endswith(".png"))
with tarfile.open("rare.tar", "w") as out:
    for name, data in [("%d.%s" % (i, end), data) for i in range(20) for end, data in (("png", image), ("cls", b"%d" % (i % 2)))] + \
            [("%d.%s" % (i, end), data) for i in (73,) for end, data in (("png", image), ("cls", b"rare"))]:
        member = tarfile.TarInfo(name)
        member.size = len(data)
        out.addfile(member, io.BytesIO(data))
EOF
fails_with "a class whose one image is for tests" 1 "rare.tar: all images of class 'rare' are for tests, by the hash of their names; add images, or a shard named test-" \
	"$LOCKSTEP" train --data rare.tar
ok "nothing was unpacked" test ! -e evil.png -a ! -e ../evil.png

test_end

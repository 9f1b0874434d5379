#!/bin/bash
# lockstep predict: every kind of input gives the same bits for the same sample, whatever is predicted with it, on any
# devices; bad inputs are named or skipped; a million lines take no more memory than a thousand.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

predict() { "$LOCKSTEP" predict "$@"; }
run "$LOCKSTEP" train --model cnn --data glyphs --samples 2000 --test-samples 64 --steps 20 --run cnn --quiet
is "a run to predict with" "$status" 0
run "$LOCKSTEP" data make glyphs --out glyphs --samples 300 --quiet
is "and images" "$status" 0

# ---- the same samples in every form ----

cat >forms.py <<'P'
import gzip, struct, zlib

def png(path, width, height, depth, colour, rows):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows))
    open(path, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b""))

images = open("glyphs/t10k-images-idx3-ubyte", "rb").read()
count, = struct.unpack(">I", images[4:8])
pixels = [images[16 + i * 784:16 + (i + 1) * 784] for i in range(count)]
rows = lambda p: [p[y * 28:(y + 1) * 28] for y in range(28)]
for i, p in enumerate(pixels[:40]):
    png(f"{i}.png", 28, 28, 8, 0, rows(p))
png("rgb.png", 28, 28, 8, 2, [bytes(v for x in r for v in (x, x, x)) for r in rows(pixels[0])])
png("rgba.png", 28, 28, 16, 6, [b"".join(struct.pack(">HHHH", x * 257, x * 257, x * 257, 7) for x in r) for r in rows(pixels[0])])
png("tall.png", 28, 56, 8, 0, [bytes(28)] * 14 + rows(pixels[0]) + [bytes(28)] * 14)
png("large.png", 112, 112, 8, 0, [bytes(v for x in r for v in [x] * 4) for r in rows(pixels[0]) for _ in range(4)])
with open("all.csv", "w") as out:
    print(*(f"pixel{i}" for i in range(784)), sep=",", file=out)
    for p in pixels:
        print(*p, sep=",", file=out)
with open("normalised.csv", "w") as out:
    f = lambda x: struct.unpack("f", struct.pack("f", x))[0]
    print(*(repr(f(f(f(x / 255.0) - f(0.1307)) / f(0.3081))) for x in pixels[0]), sep=",", file=out)
gzip.open("all.csv.gz", "wb").write(open("all.csv", "rb").read())
gzip.open("idx.gz", "wb").write(images)
open("cut.idx", "wb").write(images[:16 + 784 * 3 + 10])
open("labels.txt", "w").write("".join(f"the {i}, drawn\n" for i in range(10)))
P
python3 forms.py
base64 -d >a.jpg <<'B'
/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5aYVpQYEpRUk//wAALCAAIAAgBAREA/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/9oACAEBAAA/APPaKK//2Q==
B
if predict cnn 0.png a.jpg --skip-bad 2>&1 | grep -q 'made without lib'; then
	skip "predictions" "this build reads no PNG or JPEG images"
	test_end
fi

run predict cnn glyphs/t10k-images-idx3-ubyte
is "an IDX file is predicted" "$status$err" 0
is "a header" "$(head -n 1 <<<"$out")" "input,row,label,probability"
count=$(($(wc -l <<<"$out") - 1))
ok "and a line per image" test $count -ge 40
values() { tail -n +2 | sed 's/^[^,]*,[^,]*,//'; } # without where they come from
values <<<"$out" >expected
for form in all.csv all.csv.gz idx.gz; do
	run predict cnn $form
	is "$form gives the same" "$(values <<<"$out" | md5sum)" "$(md5sum <expected)"
done
is "rows are lines of the file" "$(predict cnn all.csv | sed -n '2s/.*csv,\([0-9]*\),.*/\1/p')" 2
is "standard input: CSV" "$(predict cnn - <all.csv | values | md5sum)" "$(md5sum <expected)"
is "standard input: IDX, gzip" "$(predict cnn - <idx.gz | values | md5sum)" "$(md5sum <expected)"
is "standard input: an image" "$(predict cnn - <0.png | values)" "$(head -n 1 expected)"
is "its name is -" "$(predict cnn - <0.png | tail -n 1 | cut -d, -f1)" "-"
run predict cnn {0..39}.png
is "forty PNG files give the same" "$(values <<<"$out" | md5sum)" "$(head -n 40 expected | md5sum)"
for form in rgb.png rgba.png tall.png; do
	is "$form is the same image" "$(predict cnn $form | values)" "$(head -n 1 expected)"
done
is "a larger one is predicted, too" "$(predict cnn large.png | values | cut -d, -f1)" "$(head -n 1 expected | cut -d, -f1)"
ok "stretched, the tall one is another" test "$(predict cnn tall.png --resize stretch | values)" != "$(head -n 1 expected)"
is "numbers that are normalised already" "$(predict cnn normalised.csv --values normalised | values)" "$(head -n 1 expected)"
like "a JPEG image" "$(predict cnn a.jpg | tail -n 1)" '^a.jpg,1,[0-9],0\.[0-9]+$'

# ---- bits do not depend on what is predicted together, nor on devices and threads ----

for layout in "--devices 1" "--devices 3" "--devices 2 --threads 2" "--batch 1" "--batch 7" "--batch 1000"; do
	# shellcheck disable=SC2086 # words
	is "the same with $layout" "$(predict cnn all.csv $layout | values | md5sum)" "$(md5sum <expected)"
done
run "$LOCKSTEP" eval cnn --data glyphs --data-dir glyphs --samples 300
accuracy=$("$LOCKSTEP" eval cnn --data "$PWD/glyphs" | sed -nE 's/test accuracy: ([0-9.]+).*/\1/p')
is "labels are right as often as eval says" "$(cut -d, -f1 expected | python3 -c '
import sys
labels = open("glyphs/t10k-labels-idx1-ubyte", "rb").read()[8:]
predicted = [int(line) for line in sys.stdin]
print("%.4f" % (sum(a == b for a, b in zip(labels, predicted)) / len(labels)))')" "$accuracy"

# ---- output ----

run predict cnn 0.png 1.png --top 3 --format jsonl
echo "$out" >top.jsonl
ok "JSON lines have the most probable first" json top.jsonl 'len(o) == 2 and all(
	len(r["top"]) == 3 and r["top"][0]["label"] == r["label"] and r["top"][0]["probability"] == r["probability"] >=
	r["top"][1]["probability"] >= r["top"][2]["probability"] and r["row"] == 1 for r in o)'
is "of all classes probabilities sum to 1" "$(predict cnn 0.png --top 99 --format jsonl | python3 -c '
import json, sys
r = json.loads(sys.stdin.read())
print(len(r["top"]), round(sum(c["probability"] for c in r["top"]), 5), sorted(c["label"] for c in r["top"]) == list(range(10)))')" "10 1.0 True"
run predict cnn 0.png --top 2 --labels labels.txt
like "names of classes" "$out" '^0.png,1,([0-9]),"the \1, drawn",0.[0-9]+,([0-9]),"the \2, drawn",'
like "in the header" "$out" '^input,row,label,name,probability,label_2,name_2,probability_2$'
run predict cnn 0.png --out first.csv
is "a file is written in silence" "$status$out$err" 0
is "with the same lines" "$(values <first.csv)" "$(head -n 1 expected)"
cp 0.png 'odd,"name'$'\n''.png'
is "an odd name is quoted" "$(predict cnn odd* | python3 -c 'import csv, sys; print(list(csv.reader(sys.stdin))[1][0] == "odd,\"name\n.png")')" True
cp 0.png $'bad\xff.png'
ok "a name that is no UTF-8 is still JSON" eval 'predict cnn $'"'bad\\xff.png'"' --format jsonl >odd.jsonl && json odd.jsonl "o[0][\"input\"] == \"bad\\ufffd.png\""'

# ---- bad input ----

fails_with "no inputs" 2 'INPUT... is missing' predict cnn
fails_with "a file that is not there" 1 'cannot open none.png' predict cnn none.png
fails_with "a directory" 1 'glyphs is a directory' predict cnn glyphs
head -c 100 0.png >cut.png
fails_with "an image that is cut short" 1 'cut.png: not a PNG image' predict cnn cut.png
fails_with "a label file" 1 'is a label file' predict cnn glyphs/t10k-labels-idx1-ubyte
fails_with "an IDX file that is cut short" 1 'cut.idx: cut short in image 4 of' predict cnn cut.idx
is "what came before is predicted" "$(predict cnn cut.idx 2>/dev/null | values)" "$(head -n 3 expected)"
printf '1,2,3\n' >few.csv
fails_with "too few numbers" 1 'few.csv:1: 3 values; an image of 1x28x28 has 784' predict cnn few.csv
{ sed -n 2,3p all.csv; sed -n 4p all.csv | sed 's/^[0-9]*/x/'; sed -n 5p all.csv | sed 's/^[0-9]*/256/'; sed -n 6p all.csv | sed 's/^[0-9]*/nan/'; sed -n 7p all.csv; } >bad.csv
fails_with "what is no number" 1 "bad.csv:3: 'x' in column 1 is not a number" predict cnn bad.csv
run predict cnn none.png bad.csv cut.png 5.png --skip-bad
is "--skip-bad goes on" "$status" 0
is "and predicts the rest" "$(values <<<"$out")" "$(sed -n '1,2p;6p;6p' expected)"
for text in 'none.png' "bad.csv:3: 'x'" 'bad.csv:4: value 1 of the image is 256; pixels are numbers from 0 to 255' "bad.csv:5: 'nan'" 'cut.png' '^5 inputs skipped'; do
	like "saying so: $text" "$err" "$text"
done
sed -n 2p all.csv | sed 's/[^,]*/nan/g' >wrong.csv
sed -n 3p all.csv >>wrong.csv
fails_with "a first line of nan is no header" 1 "wrong.csv:1: 'nan' in column 1 is not a number" predict cnn wrong.csv
is "and is skipped on request" "$(predict cnn wrong.csv --skip-bad --quiet | values)" "$(sed -n 2p expected)"
for word in -inf 1e999 ''; do
	sed -n 2p all.csv | sed "s/[^,]*/$word/g" >wrong.csv
	fails_with "nor is one of '$word'" 1 "wrong.csv:1: '$word' in column 1 is not a number" predict cnn wrong.csv
done
run predict cnn all.csv
is "a header is noted" "$status $err" "0 all.csv:1: taken for a header, it begins with 'pixel0'"
is "unless all is to be quiet" "$(predict cnn all.csv --quiet 2>&1 >quiet.csv)" ""
head -n 1 all.csv >header.csv
fails_with "a header and nothing else" 1 'header.csv has a header and no rows' predict cnn header.csv
is "prints nothing" "$(predict cnn header.csv 2>/dev/null; predict cnn none.png 2>/dev/null)" ""
run predict cnn header.csv 0.png --skip-bad
is "and can be skipped" "$status $(values <<<"$out")" "0 $(head -n 1 expected)"
{ cat normalised.csv; sed 's/[^,]*/3e38/g' normalised.csv; cat normalised.csv; } >large.csv
for format in csv jsonl; do
	run predict cnn large.csv --values normalised --format $format
	like "outputs that are not finite are an error, $format" "$status $err" '^1 .*large.csv:2: output 0 of the model is NaN: the values of the input are too large'
	unlike "and not printed" "$out" 'nan|null|csv,[23]|row":[23]'
	run predict cnn large.csv --values normalised --format $format --skip-bad
	is "--skip-bad leaves them out, $format" "$status $(grep -cE 'csv,[13],|row":[13],' <<<"$out") $(grep -c 'skipped: large.csv:2' <<<"$err")" "0 2 1"
done
run bash -c '"$0" predict cnn all.csv all.csv all.csv all.csv --batch 1 | head -n 1; echo "${PIPESTATUS[0]}"' "$LOCKSTEP"
is "a reader that has enough ends it in silence" "$(tail -n 1 <<<"$out") $(grep -v header <<<"$err")" "141 "
fails_with "when all is bad" 1 'nothing was predicted' predict cnn none.png cut.png --skip-bad
: >empty
fails_with "an empty file" 1 'empty:1: nothing is in it' predict cnn empty
fails_with "an unknown format" 2 "format is 'xml'; it can be csv, jsonl" predict cnn 0.png --format xml
fails_with "an unknown kind of input" 2 "it can be auto, image, idx, csv, text" predict cnn 0.png --input-format gif
fails_with "text for a model of images" 1 'takes images' predict cnn all.csv --input-format text
fails_with "labels of another model" 1 'has 1 line; the model has 10 classes' predict cnn 0.png --labels few.csv
fails_with "a place that cannot be written" 1 'nowhere/x.csv' predict cnn 0.png --out nowhere/x.csv
fails_with "a full disk" 1 '/dev/full' predict cnn all.csv --out /dev/full
run bash -c '"$0" predict cnn all.csv all.csv all.csv >/dev/full' "$LOCKSTEP"
is "a full standard output" "$status" 1
is "is reported once" "$(grep -c 'standard output' <<<"$err")" 1
ok "nothing is left of what failed" test ! -e x.csv

# ---- weights that others made: they say nothing but numbers ----

python3 - cnn/ckpt/step-*/model.safetensors <<'P'
import json, struct, sys
data = open(sys.argv[-1], "rb").read()  # the newest
length, = struct.unpack("<Q", data[:8])
header = json.loads(data[8:8 + length])
del header["__metadata__"]
text = json.dumps(header).encode()
open("bare.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data[8 + length:])
P
fails_with "which model?" 2 'does not say' predict bare.safetensors 0.png
fails_with "of which shape?" 2 'does not say what the model.s input is; add --input' predict bare.safetensors 0.png --model cnn
fails_with "normalised how?" 2 'do not say how images were normalised; give --mean and --deviation' \
	predict bare.safetensors 0.png --model cnn --input 1x28x28
is "with all options given it gives the same" "$(predict bare.safetensors {0..39}.png --model cnn --input 1x28x28 --mean 0.1307 --deviation 0.3081 | values | md5sum)" \
	"$(head -n 40 expected | md5sum)"

# ---- text ----

mkdir trees
awk 'BEGIN { split("good bad film plot acting great dull", w, " "); for (i = 0; i < 200; i++) printf "(%d (%d %s) (2 (2 %s) (2 .)))\n", i % 5, (i * 3) % 5, w[i % 7 + 1], w[int(i / 7) % 7 + 1] }' >trees/train.txt
echo '(2 (2 good) (2 bad) (2 film) (2 plot) (2 acting) (2 great) (2 dull) (2 .) (2 good) (2 bad))' >>trees/train.txt
cp trees/train.txt trees/test.txt
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' good bad film plot acting great dull . , '##s' >trees/vocab.txt
run "$LOCKSTEP" train --model transformer --layers 1 --width 32 --heads 2 --data sst5 --data-dir trees --seq-len 12 --steps 5 --batch 16 --run text --quiet
is "a run on text" "$status$err" 0
printf 'good film.\nbad plot, dull acting\n\nGreat films\n' >lines.txt
run predict text lines.txt
is "lines are predicted" "$status" 0
is "each of them" "$(tail -n +2 <<<"$out" | cut -d, -f1,2 | xargs)" "lines.txt,1 lines.txt,2 lines.txt,3 lines.txt,4"
like "with the names of the dataset" "$out" '^lines.txt,1,[0-4],(very )?(negative|neutral|positive),0\.'
values <<<"$out" >expected-text
printf 'id,text\n1,good film.\n2,"bad plot, dull acting"\n3,\n4,Great films\n' >lines.csv
for form in "lines.csv" "lines.csv --column text" "lines.csv --column text --batch 1" "lines.csv --devices 1 --threads 2" "- --input-format csv"; do
	# shellcheck disable=SC2086 # words
	is "$form gives the same" "$(predict text $form <lines.csv | values)" "$(cat expected-text)"
done
tail -n +2 lines.csv >bare.csv
is "a column by its number" "$(predict text bare.csv --column 2 | values)" "$(cat expected-text)"
fails_with "which column?" 2 "bare.csv has 2 columns, none of them named 'text'; choose one with --column" predict text bare.csv
fails_with "a column that is not there" 2 "has no column 'body'" predict text lines.csv --column body
fails_with "columns count from 1" 2 "columns are counted from 1" predict text lines.csv --column 0
printf 'good\n\xff\xfe\nbad\n' >bytes.txt
fails_with "what is no UTF-8, with its line" 1 'bytes.txt:2: ' predict text bytes.txt
is "--skip-bad leaves it out" "$(predict text bytes.txt --skip-bad --quiet | tail -n +2 | cut -d, -f2 | xargs)" "1 3"
is "--replace-invalid keeps it" "$(predict text bytes.txt --replace-invalid | tail -n +2 | cut -d, -f2 | xargs)" "1 2 3"
fails_with "images for a model of text" 1 '0.png holds images, and the model takes text' predict text 0.png
printf 'good %.0s' {1..50} >long.txt
run predict text long.txt
like "a text that is too long is cut" "$err" '^1 text had more than [0-9]+ tokens and was cut'
mv trees gone
is "without its data the run's own vocabulary serves" "$(predict text lines.txt --seq-len 12 | values)" "$(cat expected-text)"
run "$LOCKSTEP" train --model transformer --layers 1 --width 32 --heads 2 --data babble --seq-len 12 --samples 50 --steps 1 --run babble --quiet
fails_with "generated text has no vocabulary" 1 'generated text, which has no vocabulary' predict babble lines.txt

# ---- memory ----

for ((i = 0; i < 1000; i++)); do echo "good film number $i"; done >thousand.txt
peak() { # LINES: kB
	yes "$(cat thousand.txt)" | head -n "$1" | python3 -c '
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)' "$LOCKSTEP" predict text - --seq-len 12
}
if [ -z "${SANITIZER:-}" ]; then
	small=$(peak 1000) large=$(peak 1000000)
	ok "a million lines take the memory of a thousand ($small kB, $large kB)" test "$large" -lt $((small + 8192))
else
	skip "memory of a million lines" "sanitizers keep freed memory"
fi

test_end

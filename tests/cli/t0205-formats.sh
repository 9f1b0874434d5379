#!/bin/bash
# Data in formats that are not read: what was found, and what is read. Text and IDX files stay what they are.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

refuses() { # NAME PATTERN PATH: by train, with any model, and by data info
	fails_with "$1: train" 1 "$2" "$LOCKSTEP" train --data "$3" --steps 1
	fails_with "$1: train of text" 1 "$2" "$LOCKSTEP" train --model bert-tiny --data "$3" --steps 1
	fails_with "$1: data info" 1 "$2" "$LOCKSTEP" data info "$3"
	like "$1: what is read" "$err" "tar shards .*IDX files named as MNIST's .*plain text .*lockstep data list"
	unlike "$1: nobody asks for a vocabulary" "$err" "no vocabulary"
}

printf 'PAR1\0' >train.parquet
refuses "a Parquet file" "dataset 'train.parquet' is a file of kind 'table \(Parquet" train.parquet
printf '[{"text": "a", "label": 1}]\n' >train.json
refuses "a JSON file" "'train.json' is a file of kind 'table" train.json
mkdir -p loose shapes/train/square
for i in 1 2 3 4 5; do
	printf '\211PNG\r\n\032\n' >"loose/$i.png"
	printf 'GIF8' >"shapes/train/square/$i.gif"
done
run "$LOCKSTEP" train --data loose --steps 1
like "images without classes" "$err" "dataset 'loose': found 5 image files \([1-5].png\), but no folder per class"
refuses "images of another kind" "dataset 'shapes': found 5 image files \([1-5].gif\)" shapes
echo "circles and squares" >shapes/README.txt
refuses "with a text beside them" "dataset 'shapes': found 5 image files" shapes
mkdir tables
printf 'label,a,b\n1,2,3\n0,4,5\n' >tables/a.csv
run "$LOCKSTEP" train --data tables --steps 1
like "a folder with a table that is not train.csv" "$err" "dataset 'tables': found 1 table \(CSV, TSV, JSONL\) file \(a.csv\), but no train.csv"
like "what to do" "$err" "name the file itself, as tables/a.csv"
cp loose/1.png picture
refuses "a picture by any name" "dataset 'picture' is a file of kind 'image'" picture
printf '\223NUMPY\001\000' >x.npy
refuses "an array" "'x.npy' is a file of kind 'array" x.npy
printf 'PK\003\004' >x.zip
refuses "an archive" "'x.zip' is a file of kind 'archive'" x.zip
printf 'a\000b' >blob
refuses "anything binary" "'blob' is a file of kind 'binary'" blob

printf 'x,y,label\n1,2,a\n3,4,b\n5,6,a\n' >t.dat
for model in mlp bert-tiny gpt-nano; do
	fails_with "a table by another name, model $model" 1 "dataset 't.dat' looks like a table of 3 columns: rename it so that its name ends with .csv" \
		"$LOCKSTEP" train --model $model --data t.dat
done
fails_with "data info" 1 "'t.dat' looks like a table of 3 columns" "$LOCKSTEP" data info t.dat
printf 'one, two\nthree, four\nfive, six\nseven, eight\n' >poem.txt
fails_with "a text with commas is a text" 1 "there is no vocabulary" "$LOCKSTEP" data info poem.txt
for text in 'one, two' 'Sep 1 10:00:00 started; pid 7'; do # four lines of verse, or of a log
	printf '%s\n' "$text" "$text" "$text" "$text" >no-ending
	unlike "one separator and a space is no table" "$("$LOCKSTEP" data info no-ending --vocab bytes 2>&1)" 'looks like a table'
done
printf '%s\n' 'a,b' 'c,d' 'e,f' 'g,h' 'and no more' >no-ending
unlike "nor are a few lines of a text" "$("$LOCKSTEP" data info no-ending 2>&1)" 'looks like a table'

# What is read stays what it was.
printf 'One sentence. Another one.\n\nA second text.\n' >prose.txt
fails_with "text still wants a vocabulary" 1 "there is no vocabulary" "$LOCKSTEP" data info prose.txt
fails_with "text for a model of images" 1 "model mlp takes images, and prose.txt is text" "$LOCKSTEP" train --model mlp --data prose.txt
mkdir texts
cp prose.txt texts/a.txt
cp prose.txt texts/b.txt
cp loose/1.png texts/cover.png
mkdir -p texts/figures
cp loose/1.png texts/figures/1.png
fails_with "pictures among texts do no harm" 1 "there is no vocabulary" "$LOCKSTEP" data info texts
fails_with "a picture among texts does no harm" 1 "there is no vocabulary" "$LOCKSTEP" data info texts
mkdir empty
fails_with "a folder of nothing" 1 "empty contains no dataset" "$LOCKSTEP" train --model mlp --data empty
ok "IDX files" "$LOCKSTEP" data make glyphs --samples 64 --out idx --quiet
cp loose/*.png idx
run "$LOCKSTEP" train --model mlp --data idx --steps 1 --devices 1
is "pictures beside IDX files do no harm" "$status" 0
fails_with "one of the IDX files" 2 "give the directory of the IDX files" "$LOCKSTEP" train --model mlp --data idx/train-images-idx3-ubyte

test_end

#!/bin/bash
# Datasets of text: got, described; what is wrong with a text is reported, with its place.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

run "$LOCKSTEP" data list
for name in babble babble-pairs sst5 sotu; do
	like "data list names $name" "$out" "^$name "
done
run "$LOCKSTEP" data info babble
is "data info of the toy language succeeds" "$status" 0
like "it tells samples, lengths and vocabulary" "$out" "^train: 60000 samples of up to 64 tokens, 5 classes, a vocabulary of 4061"
like "it tells lengths" "$out" "lengths 4 to 64"
run "$LOCKSTEP" data info babble-pairs --seq-len 32
like "pairs have the length asked for" "$out" "^train: 60000 samples of up to 32 tokens, 2 classes"
fails_with "samples of too few tokens" 2 "samples of 5 tokens \(--seq-len\)" "$LOCKSTEP" data info babble --seq-len 5

fails_with "sotu without npm: what to install" 1 "npm is not installed; install it" \
	env PATH=/nowhere "$LOCKSTEP" data get sotu --quiet
like "and what else to do" "$err" "--from, or use .--data babble-pairs"
like "help says that sotu needs npm" "$("$LOCKSTEP" data get --help)" "sotu needs npm"

# A treebank has 8,544 + 1,101 + 2,210 trees; these are as many.
mkdir trees
words=(good bad film plot acting great dull)
make_trees() { # COUNT
	awk -v n="$1" -v list="${words[*]}" 'BEGIN {
		count = split(list, w, " ")
		for (i = 0; i < n; i++)
			printf "(%d (%d %s) (2 (2 %s) (2 -LRB-)))\n", i % 5, (i * 3) % 5, w[i % count + 1], w[int(i / 7) % count + 1]
	}'
}
make_trees 8544 >trees/train.txt
make_trees 1101 >trees/dev.txt
make_trees 2209 >trees/test.txt
fails_with "a treebank that lacks a tree" 1 "test.txt holds 2209 trees, test.txt of SST-5 has 2210" \
	"$LOCKSTEP" data get sst5 --from trees --quiet
fails_with "a dataset that was not got" 1 "lockstep data get sst5" "$LOCKSTEP" data info sst5
make_trees 2210 >trees/test.txt
run "$LOCKSTEP" data get sst5 --from trees
is "data get sst5 --from succeeds" "$status" 0
like "it learns a vocabulary" "$out" "vocab.txt: [0-9]+ pieces"
run "$LOCKSTEP" data get sst5 --from trees
like "got again, it is found" "$out" "already"
run "$LOCKSTEP" data info sst5
is "data info sst5 succeeds" "$status" 0
like "it tells sentences" "$out" "8544 sentences, 25632 tokens, .* \[UNK\] 0.000 %"
like "and both splits" "$out" "^test: 2210 samples of up to 5 tokens, 5 classes"
run "$LOCKSTEP" data info sst5 --phrases
like "phrases are more" "$out" "^train: 42720 samples"
like "but not to test on" "$out" "^test: 2210 samples"
fails_with "other data has no phrases" 2 "--phrases needs sst5.*'babble' has no trees" "$LOCKSTEP" data info babble --phrases
fails_with "nor to train on" 2 "--phrases needs sst5.*'glyphs' has no trees" \
	"$LOCKSTEP" train --model mlp --data glyphs --samples 64 --steps 1 --phrases
run "$LOCKSTEP" data info sst5 --cased
is "capitals that the vocabulary has none of are told of, once" \
	"$(grep -c -- '--cased: the vocabulary .*vocab.txt has no capital letters' <<<"$err")" 1
cp cache/sst5/vocab.txt trees/
run "$LOCKSTEP" data info trees
like "a directory of trees is one" "$out" "^train: 8544 samples"
sed -i '7s/)$//' trees/train.txt
fails_with "a tree that is not closed" 1 "trees/train.txt:7:[0-9]+: .*missing" "$LOCKSTEP" data info trees

# A corpus of three documents.
mkdir corpus
printf 'The first text. It has three sentences! The end.\n' >corpus/a.txt
printf 'The second text\nis wrapped. Its sentences\ngo on.\n\nIt has a paragraph. Yes.\n' >corpus/b.txt
printf 'Here is the third. It is the last one. Goodbye.\n' >corpus/c.txt
fails_with "a corpus without a vocabulary" 1 "no vocabulary corpus/vocab.txt; .lockstep data make vocab" \
	"$LOCKSTEP" data info corpus
run "$LOCKSTEP" data make vocab corpus --out corpus/vocab.txt --size 200 --quiet
run "$LOCKSTEP" data info corpus
is "data info of a corpus succeeds" "$status" 0
like "it counts documents" "$out" "^corpus: 3 files, 3 documents"
like "and sentences" "$out" "10 sentences"
like "of which the last is for testing" "$out" "^test: 1 sample of up to 128 tokens, 2 classes"
is "nothing half made is left" "$(find cache/corpus -name "*.draft")" ""
is "one file is in the cache" "$(find cache/corpus -name "*.tokens" | wc -l)" 1
first=$out
run "$LOCKSTEP" data info corpus
is "looked at again, it is the same" "$out" "$first"
is "and not tokenized again" "$(find cache/corpus -name "*.tokens" | wc -l)" 1
run "$LOCKSTEP" data info corpus/a.txt
like "a file alone is a corpus" "$out" "^corpus: 1 file, 1 document"
head -c 64 "$(find cache/corpus -name "*.tokens" | head -1)" >half
for file in cache/corpus/*.tokens; do cp half "$file"; done
run "$LOCKSTEP" data info corpus
is "half a cache file is made anew" "$out" "$first"

mkdir lopsided
cp corpus/vocab.txt lopsided/
cp corpus/a.txt lopsided/
for _ in {1..40}; do cat corpus/b.txt; done | tr '\n' ' ' >lopsided/b.txt
run "$LOCKSTEP" data info lopsided
like "more text to test than to train on is warned of" "$err" \
	"lopsided: the test part \([0-9]+ tokens\) is larger than the training part \([0-9]+\): 1 of 2 documents is kept for testing"
run "$LOCKSTEP" data info corpus
unlike "and less is not" "$err" "larger than the training part"

printf 'good\nbad \377\376 bytes\n' >corpus/d.txt
fails_with "bytes that are not UTF-8" 1 "corpus/d.txt: byte 9 \(0xff\) is not UTF-8.*--replace-invalid" \
	"$LOCKSTEP" data info corpus
run "$LOCKSTEP" data info corpus --replace-invalid
is "can be replaced" "$status" 0
rm corpus/d.txt
mkdir blank
printf '\n \n' >blank/x.txt
cp corpus/vocab.txt blank/
fails_with "an empty corpus" 1 "the corpus is empty" "$LOCKSTEP" data info blank
if [ "$(id -u)" != 0 ]; then
	chmod 0 corpus/b.txt
	fails_with "a file that cannot be read" 1 "cannot open corpus/b.txt" "$LOCKSTEP" data info corpus --cased
fi
ln -s nowhere corpus/e.txt
fails_with "a link to nowhere" 1 "cannot read corpus/e.txt" "$LOCKSTEP" data info corpus

test_end

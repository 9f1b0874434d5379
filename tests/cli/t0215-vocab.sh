#!/bin/bash
# Vocabularies: learnt from files and directories, the same each time; what is wrong with a text is reported.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

mkdir -p corpus/below
printf 'The lower the newer, the newest the lowest.\nNew low!\n' >corpus/a.txt
printf 'Caf\xc3\xa9 \xe4\xbd\xa0\xe5\xa5\xbd lowest low low\n' >corpus/below/b.txt
printf 'zzz zzz zzz\n' >corpus/notes.md
printf 'zzz zzz zzz\n' >corpus/.hidden.txt

run "$LOCKSTEP" data make vocab corpus --size 100 --out vocab.txt
is "data make vocab succeeds" "$status" 0
like "it tells what it made" "$out" '^vocab.txt: [0-9]+ pieces from 19 words, 0\.0 MB of text$'
is "special pieces come first" "$(head -n 5 vocab.txt | paste -sd' ')" "[PAD] [UNK] [CLS] [SEP] [MASK]"
for piece in low the new '##est' '!'; do
	ok "it has $piece" grep -qxF -- "$piece" vocab.txt
done
ok "what occurs once is not joined" bash -c '! grep -qx cafe vocab.txt'
ok "other files are left out" bash -c '! grep -q z vocab.txt'
is "no piece is there twice" "$(sort vocab.txt | uniq -d)" ""

run "$LOCKSTEP" data make vocab corpus/below/b.txt corpus/a.txt --size 100 --out again.txt --quiet
is "files may be named" "$status" 0
is "--quiet says nothing" "$out$err" ""
ok "files in another order give the same bytes" cmp vocab.txt again.txt
cp vocab.txt corpus/vocab.txt
run "$LOCKSTEP" data make vocab corpus --size 100 --out corpus/vocab.txt
ok "a vocabulary among the texts is not read" cmp vocab.txt corpus/vocab.txt

run "$LOCKSTEP" data make vocab corpus --out small.txt --size 46 --min-count 1 --quiet
is "--size bounds it" "$(wc -l <small.txt)" 46
run "$LOCKSTEP" data make vocab corpus --out once.txt --min-count 1 --quiet
ok "--min-count 1 joins what occurs once" grep -qx cafe once.txt
run "$LOCKSTEP" data make vocab corpus --out cased.txt --min-count 1 --cased --quiet
ok "--cased keeps capitals and accents" grep -qx $'Caf\xc3\xa9' cased.txt

vocab() { # NAME STATUS PATTERN ARGUMENT...
	local name=$1 status=$2 pattern=$3
	shift 3
	fails_with "$name" "$status" "$pattern" "$LOCKSTEP" data make vocab "$@"
	ok "$name: nothing is written" bash -c '! ls new.txt* 2>/dev/null'
}
printf 'good\nbad \xff byte\n' >bad.txt
vocab "a text that is not UTF-8" 1 'bad.txt: byte 9 \(line 2\) is not UTF-8: 0xff; --replace-invalid' bad.txt --out new.txt
run "$LOCKSTEP" data make vocab bad.txt --replace-invalid --min-count 1 --out replaced.txt
is "--replace-invalid takes it" "$status" 0
ok "and learns from the rest" grep -qx byte replaced.txt
printf ' \n\n' >blank.txt
vocab "a text without a word" 1 'blank.txt: no words in 3 bytes' blank.txt --out new.txt
mkdir empty
vocab "a directory without a text" 1 'empty' empty --out new.txt
vocab "a file that is not there" 1 'absent.txt' absent.txt --out new.txt
vocab "a size without room for the characters" 2 'a vocabulary of 20 pieces.*at least [0-9]+' corpus --size 20 --out new.txt
vocab "a size of 0" 2 '--size' corpus --size 0 --out new.txt
vocab "no text" 2 'FILE\|DIR\.\.\. is missing' --out new.txt
vocab "no output" 2 '--out FILE is missing' corpus
vocab "a place that is not there" 1 'no/such/new.txt' corpus --out no/such/new.txt
vocab "a directory as output" 2 'corpus is a directory' corpus --out corpus
fails_with "vocab behind an option" 2 "behind 'vocab'" "$LOCKSTEP" data make --out new.txt vocab
ln -s /dev/full full.txt
fails_with "a file that cannot be written" 1 'full.txt' "$LOCKSTEP" data make vocab corpus --out full.txt

test_end

#!/bin/bash
# Tables of text with labels for models of text, and weights of classes.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# Reviews: good words or bad ones; nine in ten are good.
awk 'BEGIN {
	srand(11)
	split("great lovely fine superb", good, " "); split("dull awful poor bad", bad, " ")
	print "id,review,sentiment"
	for (i = 0; i < 300; i++) {
		p = i % 10 > 0
		printf "%d,\"the film is %s, %s\",%s\n", i, (p ? good[int(rand() * 4) + 1] : bad[int(rand() * 4) + 1]),
			(p ? good[int(rand() * 4) + 1] : bad[int(rand() * 4) + 1]), (p ? "positive" : "negative")
	}
}' >reviews.csv
cut -d'"' -f2 reviews.csv >words.txt
run "$LOCKSTEP" train --model bert-tiny --data reviews.csv --text-column review --target sentiment
like "without a vocabulary there is the command to learn one" "$err" \
	"there is no vocabulary .*'?lockstep data make vocab reviews\.csv --text-column review --out vocab\.txt.? learns one"
mkdir elsewhere
cp reviews.csv elsewhere/train.csv
run "$LOCKSTEP" train --model bert-tiny --data elsewhere --text-column review --target sentiment
like "also of a folder" "$err" "data make vocab elsewhere --text-column review --out elsewhere/vocab\.txt"
ok "a vocabulary is learned" "$LOCKSTEP" data make vocab words.txt --size 120 --out vocab.txt
ok "also from the table itself" "$LOCKSTEP" data make vocab reviews.csv --text-column review --out table.txt --quiet
like "with the words of its text" "$(cat table.txt)" 'superb'
unlike "and none of other columns" "$(cat table.txt)" 'sentiment|positive'
fails_with "the column must be there" 2 "reviews.csv has no column 'text' with text; name it with --text-column" \
	"$LOCKSTEP" data make vocab reviews.csv --out none.txt
train() { "$LOCKSTEP" train --layers 1 --width 32 --heads 2 --batch 32 --epochs 12 --lr 0.003 --seed 5 "$@"; }

run train --model transformer --data reviews.csv --text-column review --target sentiment --run reviews
is "a transformer trains on a column of text" "$status" 0
like "and learns it" "$out" 'test accuracy: (0\.9[5-9][0-9]*|1\.0000)'
is "labels have their names" "$(cat reviews/labels.txt)" $'negative\npositive'
bits=$(grep -o 'xxh64 [0-9a-f]*' <<<"$out")
like "the run has a fingerprint" "$bits" 'xxh64 [0-9a-f]{16}'
run "$LOCKSTEP" eval reviews
like "eval reads the column that the weights name" "$out" 'test accuracy: (0\.9[5-9]|1\.0)'

# The same rows as JSONL, under the default names.
python3 - <<'END'
import csv, json
with open("reviews.jsonl", "w") as to:
    for row in csv.DictReader(open("reviews.csv")):
        to.write(json.dumps({"text": row["review"], "label": row["sentiment"]}) + "\n")
END
run train --model transformer --data reviews.jsonl --run lines
like "JSONL with text and label needs no names" "$out" 'test accuracy: (0\.9[0-9]*|1\.0000)'
sed 's/"label"/"meta": {"source": ["web"]}, "label"/' reviews.jsonl >nested.jsonl
run train --model transformer --data nested.jsonl --epochs 1
is "other columns may be objects" "$status" 0
printf 'review\nthe film is awful and dull\n"the film is great, superb"\n' >new.csv
run "$LOCKSTEP" predict reviews new.csv
like "predict reads the same column" "$out" 'new.csv,2,0,negative'
like "and line" "$out" 'new.csv,3,1,positive'
run "$LOCKSTEP" data info reviews.csv --text-column review --target sentiment
like "data info describes it" "$out" "^train: [0-9]+ rows of text in column 'review', up to 128 tokens"

run train --model transformer --data reviews.csv --target sentiment
like "the column of text must be named" "$err" "has no column 'text' with text; name it with --text-column; its columns are id, review, sentiment"
run "$LOCKSTEP" train --model mlp --data reviews.csv --target sentiment --text-column review --epochs 1
like "a model of numbers takes no text" "$err" '--text-column has no effect with --model mlp'

# Weights of classes: 1 in 10 is negative.
run train --model transformer --data reviews.csv --text-column review --target sentiment --class-weights auto --run weighed
is "classes are weighed" "$status" 0
ok "by how often they occur, as scikit-learn does" python3 - <<'END'
import json
text = json.load(open("weighed/run.json"))
def find(o):
    if isinstance(o, dict):
        if "class-weights" in o: return o["class-weights"]
        for v in o.values():
            r = find(v)
            if r: return r
w = [float(x) for x in find(text).split(",")]
n = 2 / (1 / w[0] + 1 / w[1]) # samples / (classes * count) makes the mean of inverses 1
assert len(w) == 2 and 4 < w[0] < 7 and 0.5 < w[1] < 0.6 and abs(n - 1) < 1e-4, w
END
unlike "that changes the bits" "$out" "$bits"
run "$LOCKSTEP" eval weighed
is "a weighed run is evaluated" "$status" 0
run train --model transformer --data reviews.csv --text-column review --target sentiment --class-weights 1,2,3
like "a weight for every class" "$err" "--class-weights is '1,2,3'; it is auto, none, or a number of 0 or more for each of the 2 classes"
run train --model transformer --data reviews.csv --text-column review --target sentiment --loss mse --steps 3
is "another loss is possible" "$status" 0
run train --model transformer --data reviews.csv --text-column review --target sentiment --loss msee
like "and has a name" "$err" "did you mean 'mse'"
run "$LOCKSTEP" train --model mlp --data reviews.csv --target id --task regression --class-weights auto
like "numbers have no classes" "$err" '--class-weights is for classes, and dataset reviews.csv is for regression'

test_end

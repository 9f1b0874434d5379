#!/bin/bash
# Tables: train, evaluate and predict on CSV, TSV and JSONL; regression, classes, labels; bad rows.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# Houses: price = 1000 area + 50000 in Oslo - 200 age, with gaps; a name that differs in every row.
awk 'BEGIN {
	srand(7)
	print "id,area,city,age,price"
	for (i = 0; i < 400; i++) {
		a = int(rand() * 150) + 30; y = int(rand() * 60); o = rand() < 0.5
		printf "house %d,%s,%s,%s,%d.5\n", i, (i % 23 ? a : ""), (o ? "Oslo" : "Lyon"), (i % 31 ? y : "NA"),
			1000 * a + 50000 * o - 200 * y
	}
}' >houses.csv
train() { "$LOCKSTEP" train --model mlp --batch 32 --lr 0.003 --seed 5 "$@"; }
fingerprint() { grep -o 'xxh64 [0-9a-f]*' <<<"$1"; }

run train --data houses.csv --target price --epochs 30 --run houses
is "a CSV file is trained on" "$status" 0
like "columns without a value are reported" "$err" "column 'area': [0-9]+ of [0-9]+ training rows have no value"
like "a column of names is left out" "$err" "column 'id' has texts of more than 256 different values: it is left out"
like "the split is reported" "$err" "one row in ten, by a hash of its fields, is for tests"
like "regression has its own metrics" "$out" 'test MAE [0-9.]+, RMSE [0-9.]+, R2: 0\.9[0-9]+'
unlike "and no accuracy" "$out" 'accuracy'
like "the number to predict is a target, not a class" "$out" 'samples of [0-9]+x1x1, 1 target$'
ok "metrics.jsonl has them" grep -Eq '"r2": ?0\.9' houses/metrics.jsonl
bits=$(fingerprint "$out")

for layout in "--devices 1 --threads 1" "--devices 1 --threads 2" "--devices 2 --threads 1"; do
	# shellcheck disable=SC2086
	run train --data houses.csv --target price --epochs 30 $layout
	is "the same bits with $layout" "$(fingerprint "$out")" "$bits"
done
run train --data houses.csv --target price --schedule constant --steps 80
whole=$(fingerprint "$out")
like "a run has a fingerprint" "$whole" 'xxh64 [0-9a-f]{16}'
run train --data houses.csv --target price --schedule constant --steps 40 --run half
run "$LOCKSTEP" train --run half --resume --steps 80
is "a resumed run has the bits of one that was not stopped" "$(fingerprint "$out")" "$whole"
sed -i '7s/0\.5$/7.5/' houses.csv
run "$LOCKSTEP" train --run half --resume --steps 90
like "rows that have changed are noticed" "$err" 'the training data has different samples than before'
sed -i '7s/7\.5$/0.5/' houses.csv

run "$LOCKSTEP" eval houses
like "eval prints errors in the units of the target" "$out" '^MAE [0-9]{3,5}(\.[0-9]+)?, RMSE [0-9.]+, R2 0\.9'
run "$LOCKSTEP" eval houses --per-class --metrics scores.json
like "eval prints a line per target" "$out" 'price +[0-9.]+ +[0-9.]+ +0\.9'
ok "and writes them" python3 -c '
import json
s = json.load(open("scores.json"))
assert s["task"] == "regression" and s["r2"] > 0.9 and s["targets"][0]["name"] == "price", s'

printf 'age,city,area\n10,Oslo,100\n20,Lyon,60\n5,Paris,\n' >new.csv
run "$LOCKSTEP" predict houses new.csv
is "predict takes rows without the target" "$status" 0
like "predictions have the name of the target" "$out" '^input,row,price'
# shellcheck disable=SC2016 # awk's fields
ok "and its units" awk -F, 'NR == 2 { exit !($3 > 130000 && $3 < 165000) }' <<<"$out"
# shellcheck disable=SC2016
ok "of every row" awk -F, 'NR == 3 { exit !($3 > 40000 && $3 < 72000) }' <<<"$out"
like "a new category is reported" "$err" "1 value was not in the training part, such as 'Paris' of column 'city'"
printf '{"age": 10, "city": "Oslo", "area": 100}\n' >new.jsonl
run "$LOCKSTEP" predict houses new.jsonl --format jsonl
echo "$out" >new.out
like "JSONL in and out" "$out" '"values":\{"price":1[3-6][0-9]{4}'
run "$LOCKSTEP" predict houses houses/checkpoints 2>&1
is "a directory is no table" "$status" 1
printf 'age,area\n10,100\n' >less.csv
run "$LOCKSTEP" predict houses less.csv
like "a missing column is named" "$err" "less.csv has no column 'city', which the model was trained with"

# Classes and labels.
awk 'BEGIN { srand(3); print "x;y;class;big;left"
	for (i = 0; i < 300; i++) { x = rand() * 2 - 1; y = rand() * 2 - 1
		printf "%.4f;%.4f;%s;%d;%d\n", x, y, (x + y > 0 ? "up" : "down"), (x * x + y * y > 0.5), (x < 0) } }' >points.csv
run train --data points.csv --target class --epochs 20 --run classes
like "classes are learned" "$out" 'test accuracy: (0\.9[0-9]+|1\.0000)'
is "by their names" "$(cat classes/labels.txt)" $'down\nup'
printf 'x;y;big;left\n0.5;0.5;1;0\n' >one.csv
run "$LOCKSTEP" predict classes one.csv
like "and predicted by them" "$out" ',1,up,(0\.|1$)'
run train --data points.csv --target big,left --epochs 20 --run labels
like "several labels have F1" "$out" 'test micro F1 0\.[89][0-9]+, macro F1 0\.[0-9]+, subset accuracy: 0\.[0-9]+'
run "$LOCKSTEP" eval labels --per-class
like "a line per label" "$out" 'left +[0-9]+ +[01]\.[0-9]+ +[01]\.[0-9]+'
printf 'x;y;class\n0.5;0.5;up\n' >labelled.csv
run "$LOCKSTEP" predict labels labelled.csv
like "a probability per label" "$(xargs <<<"$out")" '^input,row,big,left labelled.csv,2,[01][.0-9e-]*,[01][.0-9e-]*$'
head -n 1 labelled.csv >header.csv
run "$LOCKSTEP" predict labels header.csv
is "a table without rows is an error" "$status $err" "1 lockstep predict: header.csv has no rows"

ok "a page of a regression and of labels" "$LOCKSTEP" report houses labels --out page.html
ok "draws the error" grep -q 'Mean absolute error on test data of mlp' page.html
ok "and R2" grep -q 'R2 on test data of mlp' page.html
ok "and the labels' F1" grep -q 'Macro F1 on test data of mlp' page.html

# Bad rows.
sed '5s/.*/ragged/; 9s/^[^,]*,[^,]*/x,inf/' houses.csv >bad.csv
run train --data bad.csv --target price
like "a bad row has a place, and a way on" "$err" 'bad\.csv:5: 1 field; the table has 5 columns; --skip-bad N leaves out up to N rows'
sed '5s/^\([^,]*\),[^,]*/\1,abc/' houses.csv >word.csv
run train --data word.csv --target price --epochs 1
like "a word among numbers is warned of, with its line" "$err" \
	"warning: word\.csv:5: column 'area' is 'abc', and [0-9]+ of its [0-9]+ values are numbers: all are taken for texts"
run train --data houses.csv --target price --epochs 1
unlike "categories are not" "$err" 'taken for texts'
{ printf '\377\376'; sed 's/./&\x00/g; s/$/\r\x00/' houses.csv; } >wide.csv
run train --data wide.csv --target price
like "UTF-16 is called so" "$err" 'wide\.csv:1: the file is UTF-16; convert it to UTF-8'
sed '5s/^house/h\xf6use/' houses.csv >latin.csv
run train --data latin.csv --target price
like "Latin-1 is named by its line" "$err" "latin\.csv:5: column 'id' is not UTF-8; convert the file"
sed '5s/[^,]*$/cheap/' houses.csv >cheap.csv
run train --data cheap.csv --target price --task regression
like "a target that is no number is named by its line" "$err" "cheap\.csv:5: column 'price' is 'cheap', not a number, for regression"
run train --data bad.csv --target price --skip-bad 2 --epochs 1
is "--skip-bad goes on" "$status" 0
is "and says how many of each part" "$(grep -c 'bad\.csv: 1 row could not be read and was left out' <<<"$err")" 2
is "and names each, once" "$(grep -o 'left out: bad.csv:[0-9]*' <<<"$err")" $'left out: bad.csv:5\nleft out: bad.csv:9'
run "$LOCKSTEP" data check bad.csv --target price
is "data check fails" "$status" 1
is "and counts them" "$(grep -c 'samples, 1 bad; read' <<<"$out")" 2
is "and names them" "$(grep -o 'left out: bad.csv:[0-9]*' <<<"$err")" $'left out: bad.csv:5\nleft out: bad.csv:9'
run train --data houses.csv
like "the target must be named" "$err" 'name the column of houses.csv that is to be predicted with --target; its columns are id, area'
tail -n +2 houses.csv >bare.csv
run train --data bare.csv
like "a file without names is suspected" "$err" 'its columns are house 0, .*; does the file begin with a row\? Its first line must have the names'
printf '1,1\n2,3\n' >bare.csv
run train --data bare.csv
like "also where two columns have the same" "$err" "bare\.csv:1: two columns are named '1'; names must differ; does the file begin with a row"
run train --data houses.csv --target price --epochs 1 --label-smoothing 0.1
like "a warning that numbers are not smoothed" "$err" 'warning: --label-smoothing has no effect: dataset houses\.csv is for regression'
run train --data houses.csv --target price --task sorting
like "a task has a name" "$err" "--task is 'sorting'; it is classification, multi-label or regression"
sed '5s/,/,"/' houses.csv >quote.csv
run train --data quote.csv --target price
like "a quote that is never closed is named by its line, with what it swallows" "$err" \
	'quote\.csv:5: the quote that a field begins with is never closed; 396 more lines would belong to the field'
run train --data quote.csv --target price --skip-bad 1 --epochs 1
like "it is one bad row" "$err" 'quote\.csv: 1 row could not be read and was left out; the last begins at line 5'
like "and the others are trained on" "$out" 'data quote.csv: 3[0-9]+ training'
# shellcheck disable=SC2016 # awk's fields
awk -F, -v OFS=, 'NR > 1 { $5 = (NR % 2 ? (NR % 3 ? "0" : "0.0") : (NR % 3 ? " 1" : "1.0")) } { print }' houses.csv >spelled.csv
run train --data spelled.csv --target price --epochs 1 --run spelled
is "0 and 0.0 are one class" "$(cat spelled/labels.txt)" $'0\n1'
sed 's/,/;/g; s/\./,/g' houses.csv >commas.csv
run train --data commas.csv --target price --epochs 30 --run commas
like "decimal commas between semicolons are numbers, and it says so" "$err" "column 'price' has decimal commas: '[0-9]+,5' is a number"
like "they are learned as such" "$out" 'R2: 0\.9[0-9]+'
printf 'age;city;area\n10,0;Oslo;100,0\n' >new-commas.csv
run "$LOCKSTEP" predict commas new-commas.csv
like "and predicted from" "$out" 'new-commas.csv,2,1[3-6][0-9]{4}'
sed -E '2,$s/,([0-9.]+)$/,"\1"/; 2,$s/\.5"$/,5"/' houses.csv >quoted.csv
run train --data quoted.csv --target price --epochs 1
like "elsewhere they are warned of" "$err" "warning: column 'price' has values such as '[0-9]+,5': they are taken for texts, not for numbers; write decimal points, or separate the fields by semicolons"
sed '5s/^[^,]*,[^,]*/x,1e308/; 9s/^[^,]*,[^,]*/x,-1e308/' houses.csv >large.csv
run train --data large.csv --target price
like "numbers too large for a mean are named by column" "$err" "large\.csv: column 'area' has numbers that are too large"
# JSONL: columns are the keys of the first row; lists and objects are for columns that nobody reads.
awk 'BEGIN { for (i = 0; i < 200; i++) printf "{\"x\": %d, \"meta\": {\"id\": [%d]}, \"label\": \"%s\"%s}\n", i % 7, i,
	(i % 7 > 3 ? "up" : "down"), (i == 6 ? ", \"late\": 1" : "") }' >nested.jsonl
run train --data nested.jsonl --epochs 1 --run nested
is "a column of objects does not stop a training" "$status" 0
like "it is left out, and the message names its line" "$err" "column 'meta' has lists or objects \(nested\.jsonl:1\): it is left out"
like "a key that comes later is reported, too" "$err" \
	"warning: nested\.jsonl:7: the key 'late' is not read: columns are the keys of the first row, and 1 row has others"
unlike "once" "$(grep 'late' <<<"$err" | sed 1d)" .
printf '{"x": 5, "meta": [1]}\n' >nested-new.jsonl
run "$LOCKSTEP" predict nested nested-new.jsonl
like "predictions do not read it either" "$out" 'nested-new\.jsonl,1,[01],'
printf '{"x": [5]}\n' >nested-new.jsonl
run "$LOCKSTEP" predict nested nested-new.jsonl
like "a list for a number is a bad row" "$err" "nested-new\.jsonl:1: 'x' is a list; columns have numbers, texts, true and false"
run train --data nested.jsonl --target meta
like "and nothing to predict" "$err" "nested\.jsonl:1: 'meta' is an object; columns have numbers, texts, true and false"

mkfifo pipe.csv
timeout -s KILL 20 "$LOCKSTEP" train --data pipe.csv --target price >pipe.out 2>pipe.err
like "a pipe is refused, not waited for" "$(cat pipe.err)" 'pipe\.csv is a pipe or a device'

fails_with "a model of images on a table" 2 'model cnn takes images; for rows of [0-9]+ numbers use --model mlp' \
	train --model cnn --data houses.csv --target price
fails_with "also the default one" 2 'model resnet18 takes images; for rows of [0-9]+ numbers use --model mlp' \
	"$LOCKSTEP" train --data houses.csv --target price
fails_with "transforms of images on a table" 2 'flip is for images' train --data houses.csv --target price --augment flip

# Served rows have the values that predict writes.
if command -v curl >/dev/null && ! timeout 60 "$LOCKSTEP" serve houses --listen 127.0.0.1:99999 2>&1 </dev/null | grep -q 'without libmicrohttpd'; then
	"$LOCKSTEP" serve houses --listen 127.0.0.1:0 >listening 2>serve.err &
	server=$!
	wait_for 60 grep -q '^listening on' listening
	url=$(sed -n 's/^listening on //p' listening)
	curl -s -m 60 -o answer "$url/"
	ok "a served table describes its columns and targets" python3 -c '
import json
o = json.load(open("answer"))
assert o["input"] == {"kind": "table", "columns": [
    {"name": "area", "kind": "number"}, {"name": "city", "kind": "category", "values": ["Lyon", "Oslo"]},
    {"name": "age", "kind": "number"}]}, o["input"]
assert o["targets"] == 1 and o["names"] == ["price"] and "classes" not in o, o
assert "rows" in o["paths"]["POST /predict"] and "images" not in o["paths"]["POST /predict"], o["paths"]'
	curl -s -m 60 -o answer -H 'Content-Type: application/json' -d '{"rows": [{"age": 10, "city": "Oslo", "area": 100}, {}]}' "$url/predict"
	ok "rows of columns are served" python3 -c '
import json
served = [p["values"]["price"] for p in json.load(open("answer"))["predictions"]]
written = json.loads(open("new.out").readline())["values"]["price"]
assert len(served) == 2 and abs(served[0] - written) < 1e-6 * abs(written), (served, written)'
	curl -s -m 60 -o answer -H 'Content-Type: application/json' -d '{"rows": [{"age": "old"}]}' "$url/predict"
	like "a bad value is refused" "$(cat answer)" "rows\[0\].*column 'age' is 'old', not a number"
	curl -s -m 60 -o answer -d '{"inputs": [[1, 2, 3, 4]]}' "$url/predict"
	like "numbers are refused, as the model takes rows" "$(cat answer)" 'the model takes rows of a table; expected ..rows.., not ..inputs'
	curl -s -m 60 -o answer -d '{}' "$url/predict"
	like "a request without rows gets to know the columns" "$(cat answer)" 'no ..rows..: a list of objects with values of the columns area, city, age'
	printf '\211PNG' | curl -s -m 60 -o answer --data-binary @- "$url/predict"
	like "an image is refused" "$(cat answer)" 'the model takes rows of a table, not images'
	is "nothing is warned of" "$(cat serve.err)" ""
	kill -TERM "$server"
	wait "$server"
fi

test_end

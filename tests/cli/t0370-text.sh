#!/bin/bash
# Models of text: the same bits on any devices and threads, stopped or not; evaluation of what was trained; one task's
# weights for another; and what does not go together.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

accuracy() { sed -nE 's/.*accuracy: ([0-9.]+).*/\1/p' <<<"$1" | tail -n 1; }
masked() { sed -nE 's/.*(masked loss [0-9.]+, masked accuracy [0-9.]+).*/\1/p' <<<"$1" | tail -n 1; }
# 12 steps an epoch of 4 leaves of 4, the last step 3 leaves and a short one
job=(--samples 190 --test-samples 50 --batch 16 --micro-batch 4 --devices 1 --schedule constant --dropout 0.1)
text_train() { "$LOCKSTEP" train "${job[@]}" "$@"; }
classify=(--model transformer --data babble --layers 2 --width 64 --heads 2 --ffn 96 --seq-len 40)
pretrain=(--model bert-tiny --data babble-pairs --seq-len 40 --optimizer adamw --weight-decay 0.01 --clip-norm 1)

same() { # NAME OPTIONS...
	local name=$1 first layout
	shift
	run text_train --steps 14 "$@"
	first=$(fingerprint "$out")
	like "$name trains" "$first" '^[0-9a-f]{16}$'
	for layout in "--devices 2" "--devices 4" "--threads 2"; do
		# shellcheck disable=SC2086 # words
		run text_train --steps 14 "$@" $layout
		is "$name: $layout" "$(fingerprint "$out")" "$first"
	done
	run text_train --steps 14 "$@" --dropout 0
	ok "$name: dropout matters" test "$(fingerprint "$out")" != "$first"
}
same transformer "${classify[@]}"
same bert-tiny "${pretrain[@]}"

stopped() { # NAME OPTIONS...
	local name=$1 whole
	shift
	run text_train --steps 20 "$@"
	whole=$(fingerprint "$out")
	run text_train --steps 9 "$@" --run "runs/$name"
	run text_train --steps 20 "$@" --run "runs/$name" --resume --devices 3
	is "$name: stopped inside an epoch and resumed" "$(fingerprint "$out")" "$whole"

	"$LOCKSTEP" train "${job[@]}" --steps 20 "$@" --run "runs/$name-killed" --ckpt-every 1 --keep 20 --eval-every 0 \
		>/dev/null 2>&1 &
	pid=$!
	ok "$name: a run to be killed" wait_for 60 test -d "runs/$name-killed/ckpt/step-000000003"
	kill -9 $pid
	wait $pid 2>/dev/null
	run text_train --steps 20 "$@" --run "runs/$name-killed" --resume --eval-every 0
	is "$name: killed and resumed" "$(fingerprint "$out")" "$whole"
}
stopped transformer "${classify[@]}"
stopped bert "${pretrain[@]}"
run text_train --steps 30 "${classify[@]}" --run runs/transformer --resume --heads 4
like "another number of heads is refused" "$err" "--heads was 2, now 4"
run text_train --steps 30 "${classify[@]}" --run runs/transformer --resume --seq-len 32
like "and so is another length" "$err" "--seq-len was 40, now 32"

# Evaluation: everything the run knows it says itself.
evaluated() { # NAME DATA OPTIONS...
	local name=$1 data=$2 trained first file
	shift 2
	run text_train --epochs 1 --data "$data" "$@" --run "runs/$name-whole"
	trained=$out
	file=$(echo "runs/$name-whole"/ckpt/step-*12)/model.safetensors
	run "$LOCKSTEP" eval "runs/$name-whole" --logits one
	is "$name: eval succeeds" "$status" 0
	like "$name: on as many samples" "$out" ", 50 samples in"
	is "$name: with the fingerprint of the run" "$(fingerprint "$out")" "$(fingerprint "$trained")"
	is "$name: and its accuracy" "$(accuracy "${out%%,*}")" "$(accuracy "$trained")"
	is "$name: and what came of masked words" "$(masked "$out")" "$(masked "$trained")"
	first=${out% in *}
	run "$LOCKSTEP" eval "runs/$name-whole" --batch 7 --devices 3 --threads 2 --logits other
	is "$name: whatever the batch, devices and threads" "${out% in *}" "$first"
	ok "$name: and the outputs are the same bytes" cmp one other
	run "$LOCKSTEP" eval "$file" --data "$data" --samples 50
	is "$name: the file alone tells the same" "${out% in *}" "$first"
	run "$LOCKSTEP" eval "$file"
	is "$name: and on which data" "${out% in *}" "$first"
	run "$LOCKSTEP" eval "$(dirname "$file")"
	is "$name: and so does the checkpoint" "${out% in *}" "$first"
}
evaluated transformer babble "${classify[@]}"
evaluated bert babble-pairs "${pretrain[@]}"
like "the accuracy of pretraining is that of the next sentence" "$out" \
	'^next-sentence accuracy: [0-9.]+, loss [0-9.]+, masked loss [0-9.]+, masked accuracy [0-9.]+, 50'

# What --logits writes is enough to check us: samples end to end, and what was to be predicted.
outputs() { # FILE EXPRESSION on t, the tensors as lists of numbers, and s, their shapes
	python3 - "$@" <<'END'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + size])
t, s = {}, {}
for name, e in header.items():
    if name != "__metadata__":
        begin, end = (8 + size + o for o in e["data_offsets"])
        kind = {"F32": "f", "I32": "i", "I64": "q"}[e["dtype"]]
        t[name] = [v[0] for v in struct.iter_unpack("<" + kind, data[begin:end])]
        s[name] = e["shape"]
sys.exit(not eval(sys.argv[2]))
END
}
ok "outputs of pretraining: shapes" outputs one \
	's["logits"] == [50, 2] and s["starts"] == [51] and s["tokens"] == s["segments"] == [t["starts"][-1]]'
ok "every sample begins with [CLS]" outputs one 'all(t["tokens"][i] == 2 for i in t["starts"][:-1])'
ok "places are in order and their targets are words" outputs one \
	'sorted(set(t["masked_positions"])) == t["masked_positions"] and len(t["masked_positions"]) == len(t["targets"]) > 50 and min(t["targets"]) >= 5'
ok "most of them are masked" outputs one \
	'0.6 < sum(t["tokens"][i] == 4 for i in t["masked_positions"]) / len(t["masked_positions"]) < 0.95'
"$LOCKSTEP" eval runs/transformer-whole --logits one >.out
ok "the accuracy can be computed from a classifier's" outputs one \
	"abs(sum(max(range(5), key=lambda c: t['logits'][5 * i + c]) == t['labels'][i] for i in range(50)) / 50 - $(accuracy "$(cat .out)")) < 1e-4"

# Fine-tuning: the body of one task's model, a new head.
tune=(--model bert-tiny --data babble --seq-len 40)
pretrained=$(echo runs/bert-whole/ckpt/step-*12)/model.safetensors
run text_train --steps 3 "${tune[@]}" --init runs/bert-whole --run runs/tuned
is "a classifier starts from a pretrained run" "$status" 0
tuned=$(fingerprint "$out")
is "its head is newly initialised, which one line says" "$(grep -c "has no classifier.\*: this head is newly initialised" <<<"$err")" 1
is "the old heads are not used, which another says" "$(grep -c "cls.\* of .*not used" <<<"$err")" 1
run text_train --steps 3 "${tune[@]}" --init "$pretrained" --devices 2
is "from its file to the same bits" "$(fingerprint "$out")" "$tuned"
python3 - "$pretrained" theirs.safetensors <<'END'
# As Hugging Face has written such files: old names of norms, the shared words and a bias twice, places as numbers.
import json, struct, sys
data = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
old, new, body = json.loads(data[8:8 + size]), {}, b""
def add(name, dtype, shape, raw):
    global body
    new[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(raw)]}
    body += raw
for name, e in old.items():
    if name == "__metadata__":
        continue
    begin, end = (8 + size + o for o in e["data_offsets"])
    raw = data[begin:end]
    twins = {"bert.embeddings.word_embeddings.weight": "weight", "cls.predictions.bias": "bias"}
    if name in twins:
        add("cls.predictions.decoder." + twins[name], e["dtype"], e["shape"], raw)
    name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
    add(name, e["dtype"], e["shape"], raw)
add("bert.embeddings.position_ids", "I64", [1, 512], struct.pack("<512q", *range(512)))
text = json.dumps(new).encode()
open(sys.argv[2], "wb").write(struct.pack("<Q", len(text)) + text + body)
END
run text_train --steps 3 "${tune[@]}" --init theirs.safetensors
is "and from one with Hugging Face's other names" "$(fingerprint "$out")" "$tuned"
run "$LOCKSTEP" eval theirs.safetensors --model bert-tiny --data babble-pairs --seq-len 40 --samples 50
is "which is evaluated like ours" "$(masked "$out")" "$(masked "$("$LOCKSTEP" eval runs/bert-whole)")"
run text_train --steps 3 "${tune[@]}"
ok "they are others than without it" test "$(fingerprint "$out")" != "$tuned"
run text_train --steps 3 "${tune[@]}" --init runs/tuned
is "a classifier goes on from a classifier" "$status" 0
unlike "with its head" "$err" "newly initialised"
run text_train --steps 2 "${pretrain[@]}" --init runs/bert-whole
is "pretraining goes on from pretraining" "$status$(grep -c "newly initialised" <<<"$err")" 00
fails_with "the head of another task is not evaluated" 1 "'classifier.weight' \(5, 128\) is missing" \
	"$LOCKSTEP" eval runs/bert-whole --data babble
fails_with "a body of another size" 1 "word_embeddings.weight' has shape \(4061, 128\), the model needs \(4061, 256\)" \
	text_train --steps 1 --model bert-mini --data babble --init runs/bert-whole
fails_with "a run that is not there" 1 "nowhere" text_train --steps 1 "${tune[@]}" --init nowhere

# Vocabularies. A corpus of eleven documents, and two vocabularies of the same size for it.
mkdir corpus
for document in {1..11}; do
	for paragraph in {1..8}; do
		echo "The fox of house $document went out to see $paragraph hens. It saw them all, and they saw the fox."
		echo "Nobody spoke for a while. Then the hens began to speak of winter and of snow."
		echo
	done >"corpus/$document.txt"
done
run "$LOCKSTEP" data make vocab corpus --out corpus/vocab.txt --size 200
is "a vocabulary of the corpus" "$status" 0
sed -n '1,5p' corpus/vocab.txt >other.txt
sed -n '6,$p' corpus/vocab.txt | tac >>other.txt
again=(--model bert-tiny --seq-len 40 --steps 3 --data corpus)
run text_train "${again[@]}" --run runs/corpus
is "pretraining on it" "$status" 0
ok "keeps its vocabulary" cmp corpus/vocab.txt runs/corpus/vocab.txt
ok "and its hash in run.json" json runs/corpus/run.json 'len(o["settings"]["vocabulary"]) == 16'
run "$LOCKSTEP" eval runs/corpus
first=${out% in *}
mv corpus/vocab.txt away.txt
run "$LOCKSTEP" eval runs/corpus
is "eval goes on with the run's own when the original is gone" "${out% in *}" "$first"
fails_with "a file knows that its vocabulary is another" 1 "was trained with another vocabulary" \
	"$LOCKSTEP" eval runs/corpus/ckpt/step-*3/model.safetensors --data corpus --vocab other.txt
fails_with "a run may not go on with another" 1 "the vocabulary \(--vocab\) had xxh64 [0-9a-f]{16}, now" \
	text_train "${again[@]}" --vocab other.txt --steps 5 --run runs/corpus --resume
run text_train "${again[@]}" --vocab away.txt --steps 5 --run runs/corpus --resume
is "with the same from elsewhere it may" "$status" 0
fails_with "nor start from weights of another" 1 "another vocabulary .* give the one .* --vocab runs/corpus/vocab.txt" \
	text_train "${again[@]}" --vocab other.txt --init runs/corpus
run text_train "${again[@]}" --init runs/corpus --run runs/heir
echo "$out" >heir.out
echo "$err" >heir.err
is "without --vocab, that of the weights is taken" "$status" 0
like "which is told" "$err" "text is read with the vocabulary of the weights, .*runs/corpus/vocab.txt"
ok "and kept" cmp runs/corpus/vocab.txt runs/heir/vocab.txt
cp other.txt corpus/vocab.txt
run text_train "${again[@]}" --init runs/corpus --run runs/heir-2
is "also beside another one" "$(fingerprint "$out")" "$(fingerprint "$(cat heir.out)")"
run text_train "${again[@]}" --steps 5 --run runs/heir --resume
is "a run goes on with its own" "$status" 0
rm corpus/vocab.txt
run text_train "${again[@]}" --init runs/corpus --cased
like "weights of lower case, and a run that keeps capitals" "$err" \
	'was trained on text in lower case, and this run reads it with capitals \(--cased\): leave --cased out'
unlike "the same case is not told of" "$(cat heir.err)" 'lower case'
head -n 100 away.txt >short.txt
fails_with "of another size, told with both" 1 "vocabulary of $(wc -l <away.txt) tokens, the data is read with one of 100" \
	text_train "${again[@]}" --vocab short.txt --init runs/corpus

# What does not go together.
fails_with "a model of images on text" 1 "model cnn takes images, and dataset babble is text" \
	text_train --model cnn --data babble
fails_with "a model of text on images" 1 "model bert-tiny takes text, and dataset glyphs is images" \
	text_train --model bert-tiny --data glyphs
fails_with "the transformer on pairs" 2 "transformer classifies sentences; to pretrain on a corpus use a bert" \
	text_train --model transformer --data babble-pairs
fails_with "samples longer than positions" 2 "positions|512" text_train --model bert-tiny --data babble-pairs --seq-len 600
fails_with "evaluated longer than positions" 2 "positions|512" "$LOCKSTEP" eval runs/bert-whole --seq-len 600

run "$LOCKSTEP" train --model bert-tiny --data babble --layers 4
like "a size that a model does not have a choice of is refused" "$err" '--layers is for models whose size can be chosen.*bert-tiny'

test_end

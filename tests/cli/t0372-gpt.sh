#!/bin/bash
# Language models: the same bits on any devices and threads, stopped or not; vocabularies; perplexity; text that does not
# depend on how it is computed; and what does not go together.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

export LOCKSTEP_DATA=$PWD/cache
python3 - <<'END_PYTHON'
words = "the quick brown fox jumps over a lazy dog and then it's gone while Zoë sleeps".split()
x, lines = 7, []
for i in range(1500):
    line = []
    for _ in range(4 + i % 7):
        x = (x * 1103515245 + 12345) % 2**31
        line.append(words[x // 65536 % len(words)])
    lines.append(" ".join(line) + ".")
open("text.txt", "w").write("\n".join(lines) + "\n")
END_PYTHON
job=(--data text.txt --model gpt-nano --seq-len 40 --batch 16 --micro-batch 4 --devices 1 --optimizer adamw --lr 3e-3
	--weight-decay 0.01 --clip-norm 1 --schedule constant --dropout 0.1)
gpt() { "$LOCKSTEP" train "${job[@]}" "$@"; }

# ---- the same bits
run gpt --steps 14
first=$(fingerprint "$out")
like "it trains" "$first" '^[0-9a-f]{16}$'
for layout in "--devices 2" "--devices 4" "--threads 2"; do
	# shellcheck disable=SC2086 # words
	run gpt --steps 14 $layout
	is "the same bits with $layout" "$(fingerprint "$out")" "$first"
done
run gpt --steps 14 --dropout 0
ok "dropout matters" test "$(fingerprint "$out")" != "$first"
for file in cache/corpus/*.tokens; do printf 'xxxx' | dd of="$file" bs=1 seek=400 conv=notrunc 2>/dev/null; done
run gpt --steps 14
is "a damaged cache of tokens is made again" "$(fingerprint "$out")" "$first"
run gpt --steps 6 --run runs/stopped
run gpt --steps 14 --run runs/stopped --resume --devices 3
is "stopped and resumed" "$(fingerprint "$out")" "$first"
run "$LOCKSTEP" train --data babble --model gpt-nano --samples 200 --test-samples 20 --seq-len 32 --steps 5
like "generated text will do" "$(fingerprint "$out")" '^[0-9a-f]{16}$'

# ---- learning
run gpt --steps 150 --run runs/bytes --log-every 50
like "steps say tokens and accuracy" "$out" '^Step50: [0-9.]+ data/sec, loss [0-9.]+, [0-9]+ tokens/sec, accuracy 0\.[0-9]+'
like "it ends with perplexity" "$out" 'loss [0-9.]+, perplexity [0-9.]+, next-token accuracy: 0\.[0-9]+'
perplexity() { sed -nE 's/.*perplexity ([0-9.]+).*/\1/p' <<<"$1" | tail -n 1; }
trained=$(perplexity "$out")
ok "which is far below that of chance, 257" awk -v p="$trained" 'BEGIN { exit !(p > 1 && p < 12) }'
run "$LOCKSTEP" eval runs/bytes
is "eval finds the same" "$(perplexity "$out")" "$trained"
like "in its own words" "$out" '^next-token accuracy: 0\.[0-9]+, loss [0-9.]+, perplexity'
is "the loss is that of the perplexity" "$(sed -nE 's/.*loss ([0-9.]+), perplexity ([0-9.]+).*/\1 \2/p' <<<"$out" |
	awk '{ print (exp($1) / $2 - 1 < 0.01 && exp($1) / $2 - 1 > -0.01) }')" 1
ok "the run keeps its vocabulary" test -s runs/bytes/vocab.json -a -s runs/bytes/merges.txt
ok "metrics have it" grep -q '"perplexity":' runs/bytes/metrics.jsonl

# ---- text
generate() { "$LOCKSTEP" generate "$@" --quiet; }
run generate runs/bytes "the quick" --max-new-tokens 120 --temperature 0.7 --seed 5
is "text is generated" "$status" 0
text=$out
like "which begins with the prompt" "$text" '^the quick'
ok "and has the length that was asked for" test "$(printf %s "$text" | wc -c)" -ge 120
ok "words of the language" test "$(grep -oE '\b(the|quick|brown|fox|jumps|over|lazy|dog|and|then|gone|while)\b' <<<"$text" | wc -l)" -gt 5
for threads in 1 2 3; do
	run generate runs/bytes "the quick" --max-new-tokens 120 --temperature 0.7 --seed 5 --threads $threads
	is "the same text with --threads $threads" "$out" "$text"
done
run generate runs/bytes "the quick" --max-new-tokens 120 --temperature 0.7 --seed 5 --num-samples 3
is "the first of three texts is the same" "$(sed -n '/^--- 1 ---$/,/^--- 2 ---$/p' <<<"$out" | sed '1d;$d')" "$text"
ok "the others are not" test "$(sed -n '/^--- 2 ---$/,/^--- 3 ---$/p' <<<"$out" | sed '1d;$d')" != "$text"
run generate runs/bytes "the quick" --max-new-tokens 120 --temperature 0.7 --seed 6
ok "another seed gives another text" test "$out" != "$text"
run generate runs/bytes - --max-new-tokens 120 --temperature 0.7 --seed 5 < <(printf 'the quick')
is "a prompt from standard input" "$out" "$text"
run generate runs/bytes "the quick" --max-new-tokens 30 --temperature 0 --seed 1
greedy=$out
run generate runs/bytes "the quick" --max-new-tokens 30 --top-k 1 --seed 9
is "the most probable token is that of --top-k 1" "$out" "$greedy"
run generate runs/bytes "the quick" --max-new-tokens 30 --top-p 0.0001 --seed 9
is "and of a tiny --top-p" "$out" "$greedy"
run generate runs/bytes "the quick" --max-new-tokens 3 --temperature 0 --no-prompt
is "without the prompt" "the quick$out" "${greedy:0:12}"
run generate runs/bytes --max-new-tokens 20
is "no prompt is needed" "$status" 0
for lookup in 0 1 2 7 15 31; do # 300 tokens: beyond the context of 40
	run "$LOCKSTEP" generate runs/bytes "the quick" --max-new-tokens 300 --temperature 0.3 --seed 5 --lookup $lookup
	test $lookup -gt 0 || plain=$out plain_err=$err
	is "the same text with --lookup $lookup" "$out" "$plain"
done
unlike "guesses are not counted where there are none" "$plain_err" 'guesses'
like "and counted where there are" "$err" 'tokens/sec; [1-9][0-9]* of [0-9]+ guesses right$'
fails_with "there are not more than 31 at a time" 2 "lookup" "$LOCKSTEP" generate runs/bytes x --lookup 32
run "$LOCKSTEP" generate runs/bytes x --max-new-tokens 5
like "the speed is printed" "$err" '^prompt: 1 token in [0-9.]+ sec; generated [0-9]+ in [0-9.]+ sec, [0-9.]+ tokens/sec'
mv text.txt away.txt
run generate runs/bytes "the quick" --max-new-tokens 120 --temperature 0.7 --seed 5
is "the data is not needed" "$out" "$text"
mv away.txt text.txt

# ---- vocabularies
run "$LOCKSTEP" data make vocab text.txt --bpe --size 300 --out bpe
like "byte pairs are learnt" "$out$err" '^bpe: 300 pieces from [0-9]+ words'
is "merges are as many as pieces" "$(grep -vc '^#' bpe/merges.txt)" 43
run gpt --vocab bpe --steps 60 --run runs/bpe
is "and trained with" "$status" 0
run generate runs/bpe "the quick" --max-new-tokens 40 --temperature 0.7
like "and generated with" "$out" '^the quick.'
run "$LOCKSTEP" data make vocab text.txt --chars --out chars
like "so are characters" "$out$err" '^chars: (2[0-9]|3[0-9]) pieces from [0-9]+ characters'
fails_with "at most so many" 2 "the texts have [0-9]+ characters, the end of a text included, and --size is 9: give at least [0-9]+, or use --bpe" \
	"$LOCKSTEP" data make vocab text.txt --chars --size 9 --out few
ok "of which nothing is written" test ! -e few/vocab.json
fails_with "a least count of pairs" 2 "--min-count is about joining pairs; --chars joins none" \
	"$LOCKSTEP" data make vocab text.txt --chars --min-count 5 --out few
run gpt --vocab chars --steps 20 --run runs/chars
is "and trained with, too" "$status" 0
fails_with "a prompt with others is refused" 1 "character U\+0021 is not in the vocabulary" "$LOCKSTEP" generate runs/chars "ab!" --max-new-tokens 3
cp -r bpe other
sed -i '$d' other/merges.txt
fails_with "another vocabulary is refused" 1 "vocabulary" "$LOCKSTEP" train "${job[@]}" --vocab other --steps 70 --run runs/bpe --resume
cp bpe/vocab.json bpe/merges.txt .
run gpt --steps 5 --run runs/beside
is "one beside the data is used" "$(cmp vocab.json runs/beside/vocab.json && echo same)" same
run gpt --steps 5 --vocab bytes --run runs/plain
ok "unless bytes are asked for" cmp runs/bytes/vocab.json runs/plain/vocab.json
rm vocab.json merges.txt

# ---- several documents
mkdir -p corpus
for i in 1 2 3; do
	for _ in {1..400}; do echo "document $i"; done >"corpus/$i.txt"
done
run "$LOCKSTEP" data make vocab corpus --bpe --size 290 --out corpus
first=$(cat corpus/merges.txt)
run "$LOCKSTEP" data make vocab corpus --bpe --size 290 --out corpus
is "a vocabulary beside the texts is no text" "$(cat corpus/merges.txt)" "$first"
run "$LOCKSTEP" data info corpus
like "data info reads it as GPT does" "$out" '^corpus: 3 files, 3 documents$'
like "and has a line about samples" "$out" '^train: [0-9]+ samples of up to 256 tokens'
mkdir -p shorts
for i in {10..99}; do echo "short" >"shorts/$i.txt"; done
run "$LOCKSTEP" train "${job[@]}" --data shorts --seq-len 12 --steps 120 --run runs/short
is "short documents are trained on" "$status" 0
run generate runs/short "short" --max-new-tokens 30 --temperature 0
is "the end of a text ends it" "$out" "$(printf 'short\n')"
run generate runs/short "short" --max-new-tokens 30 --temperature 0 --ignore-eos
like "unless it is ignored" "$(tr '\n' ' ' <<<"$out")" 'short .*short'
both=$out
run generate runs/short "short" --max-new-tokens 30 --temperature 0 --ignore-eos --lookup 0
is "with guesses or without" "$out" "$both"
run generate runs/short "shortshort" --max-new-tokens 30 --temperature 0
both=$out
run generate runs/short "shortshort" --max-new-tokens 30 --temperature 0 --lookup 0
is "an end that was guessed ends it as well" "$out" "$both"
run generate runs/short "short" --max-new-tokens 30 --temperature 1.5 --num-samples 5 --seed 2
is "all samples are printed, however early they end" "$(grep -c '^--- [1-5] ---$' <<<"$out")" 5
run generate runs/short "short" --max-new-tokens 30 --temperature 1.5 --num-samples 3 --seed 2 --threads 1
is "beside others that end" "$(sed -n '/^--- 2 ---$/,$p' <<<"$out" | sed '/^--- 3/,$d')" "$("$LOCKSTEP" generate runs/short short --max-new-tokens 30 --temperature 1.5 --num-samples 2 --seed 2 --quiet | sed -n '/^--- 2 ---$/,$p')"

mkdir -p runs/occupied
cp chars/vocab.json runs/occupied/
run gpt --vocab bpe --steps 5 --run runs/occupied
ok "a vocabulary that lies in the run's directory is replaced" cmp bpe/vocab.json runs/occupied/vocab.json

# ---- weights
checkpoint=$(ls -d runs/bytes/ckpt/step-* | tail -n 1)
run generate "$checkpoint/model.safetensors" "the quick" --vocab runs/bytes --max-new-tokens 120 --temperature 0.7 --seed 5
is "weights and a vocabulary are enough" "$out" "$text"
mkdir saved
cp "$checkpoint/model.safetensors" saved/
run generate saved "the quick" --vocab runs/bytes --max-new-tokens 120 --temperature 0.7 --seed 5
is "also in a directory, as transformers saves them" "$out" "$text"
mkdir empty
fails_with "a directory without a vocabulary is named" 2 'empty is no vocabulary for a language model: name a directory with vocab.json' \
	"$LOCKSTEP" generate saved "the quick" --vocab empty
cp runs/bytes/vocab.json runs/bytes/merges.txt saved/
run generate saved "the quick" --max-new-tokens 120 --temperature 0.7 --seed 5
is "whose vocabulary is beside them" "$out" "$text"
run gpt --steps 3 --init saved --lr 1e-9
is "which starts a run, too" "$status" 0
run gpt --steps 3 --init runs/bytes --lr 1e-9
is "a run starts another" "$status" 0

# ---- LoRA
run gpt --steps 12 --init runs/bytes --lora 4 --run runs/lora
like "adapters are trained, the rest is frozen" "$out" '148[0-9]+ parameters from runs/bytes, 146400 of them frozen'
lora=$(fingerprint "$out")
run gpt --steps 12 --init runs/bytes --lora 4 --devices 2
is "to the same bits on two devices" "$(fingerprint "$out")" "$lora"
cat >compare.py <<'END_PYTHON'
import json, sys
def tensors(path):
    data = open(path, "rb").read()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    return {name: data[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]] for name, t in header.items() if name != "__metadata__"}
before, after = (tensors(path) for path in sys.argv[1:])
adapters = {name for name in after if ".lora_" in name}
assert len(adapters) == 6 and set(after) - adapters == set(before), sorted(set(after) ^ set(before))
assert all(after[name] == before[name] for name in before)
assert all(any(after[name]) for name in adapters)
END_PYTHON
ok "only adapters have changed" python3 compare.py "$checkpoint/model.safetensors" "$(ls -d runs/lora/ckpt/step-* | tail -n 1)/model.safetensors"
run generate runs/lora "the quick" --max-new-tokens 20
is "and are generated with" "$status" 0
run gpt --steps 1 --init runs/bytes --lora 4 --lr 1e-9 --run runs/fresh
run generate runs/fresh "the quick" --max-new-tokens 120 --temperature 0.7 --seed 5
is "adapters begin where the model was" "$out" "$text"
run gpt --steps 40 --init runs/bytes --lora 4 --lr 0.03 --run runs/strong
cat >merge.py <<'END_PYTHON'
import glob, json, struct, sys
(path,) = glob.glob("runs/strong/ckpt/step-*40/model.safetensors")
data = open(path, "rb").read()
size = int.from_bytes(data[:8], "little")
header, merged, out = json.loads(data[8:8 + size]), {}, {}
for name, t in header.items():
    if name != "__metadata__":
        begin, end = t["data_offsets"]
        merged[name] = list(struct.unpack(f"<{(end - begin) // 4}f", data[8 + size + begin:8 + size + end]))
for name in [name for name in merged if name.endswith("lora_A.weight")]:
    a, b = merged.pop(name), merged.pop(name.replace("lora_A", "lora_B"))  # (rank, in), (out, rank)
    weight = merged[name.replace("lora_A.", "")]  # (in, out)
    rank = 4
    inputs, outputs = len(a) // rank, len(b) // rank
    sums = [0.0] * len(weight)
    for i in range(inputs):
        for o in range(outputs):
            for added in [b[o * rank + r] * a[r * inputs + i] for r in range(rank)]:
                sums[i * outputs + o] += added
    for i, added in enumerate(sums):
        weight[i] += added
blob = b""
for name, values in merged.items():
    out[name] = dict(header[name], data_offsets=[len(blob), len(blob) + 4 * len(values)])
    blob += struct.pack(f"<{len(values)}f", *values)
text = json.dumps(out).encode()
open("merged.safetensors", "wb").write(len(text).to_bytes(8, "little") + text + blob)
END_PYTHON
ok "adapters can be added to the weights" python3 merge.py
run "$LOCKSTEP" eval runs/strong
strong=$(perplexity "$out")
run "$LOCKSTEP" eval merged.safetensors --model gpt-nano --data text.txt --vocab bytes --seq-len 40
is "y + x A B is x (W + A B)" "$(perplexity "$out")" "$strong"
ok "and not what it was" test "$strong" != "$trained"
run "$LOCKSTEP" export runs/strong --safetensors exported.safetensors
is "export adds them" "$status" 0
cat >same.py <<'END_PYTHON'
import json
def tensors(path):
    data = open(path, "rb").read()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    notes = header.pop("__metadata__", {})
    return {name: (t["shape"], data[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]]) for name, t in header.items()}, notes
(by_hand, _), (exported, notes) = tensors("merged.safetensors"), tensors("exported.safetensors")
assert set(by_hand) == set(exported), sorted(set(by_hand) ^ set(exported))
assert all(by_hand[name] == exported[name] for name in by_hand), [name for name in by_hand if by_hand[name] != exported[name]]
assert notes["format"] == "pt" and notes["model"] == "gpt-nano" and "lora" not in notes, notes
END_PYTHON
ok "to the bits of W + B A, under Hugging Face's names" python3 same.py
run "$LOCKSTEP" eval exported.safetensors --data text.txt --vocab bytes
is "whose file says what it is" "$(perplexity "$out")" "$strong"
run gpt --steps 2 --init exported.safetensors --lr 1e-9
is "and starts a run without adapters" "$status" 0
run "$LOCKSTEP" export runs/bytes --safetensors plain.safetensors
ok "without adapters it is the checkpoint" python3 - "$checkpoint/model.safetensors" plain.safetensors <<'END_PYTHON'
import json, sys
def data(path):
    whole = open(path, "rb").read()
    size = int.from_bytes(whole[:8], "little")
    return [json.loads(whole[8:8 + size]).get("transformer.wte.weight"), whole[8 + size:]]
assert data(sys.argv[1]) == data(sys.argv[2])
END_PYTHON
fails_with "what was trained is not replaced" 2 "cannot export to plain.safetensors: the weights are read from it" \
	"$LOCKSTEP" export plain.safetensors --safetensors plain.safetensors
fails_with "nothing to write" 2 "give --onnx FILE or --safetensors FILE" "$LOCKSTEP" export runs/strong
fails_with "adapters are not dropped" 1 "runs/strong/ckpt/.*/model.safetensors has LoRA adapters \(rank 4\), which a model without adapters would drop: set --lora to 4, or merge them first with .lockstep export --safetensors.$" \
	gpt --steps 2 --init runs/strong
run gpt --steps 2 --init runs/strong --lora 4 --lr 1e-9
is "they go on with --lora" "$status" 0
fails_with "of their rank" 1 "lora_A.weight' has shape" gpt --steps 2 --init runs/strong --lora 8
fails_with "other models have none" 2 "adapters are for gpt models" "$LOCKSTEP" train --model cnn --data glyphs --samples 64 --steps 1 --lora 4

# ---- what does not go together
fails_with "BERT does not generate" 1 "does not predict the next token" sh -c \
	"'$LOCKSTEP' train --model bert-tiny --data babble-pairs --samples 20 --test-samples 5 --seq-len 16 --batch 4 --steps 1 --run runs/bert --quiet >/dev/null && '$LOCKSTEP' generate runs/bert x"
fails_with "sentence pairs are for other models" 1 "a language model takes" "$LOCKSTEP" train --model gpt-nano --data babble-pairs --steps 1
fails_with "GPT does not classify" 1 "lockstep generate" "$LOCKSTEP" predict runs/bytes text.txt
run "$LOCKSTEP" eval runs/bytes --save
ok "but keep its perplexity" json runs/bytes/eval.json "o['perplexity'] > 1 and 'classes' not in o"
fails_with "nor count classes" 1 "predicts the next token" "$LOCKSTEP" eval runs/bytes --per-class
fails_with "images are no text" 1 "takes text" "$LOCKSTEP" train --model gpt-nano --data glyphs --steps 1
fails_with "a length beyond the model's is refused" 2 "positions for 1024 tokens" "$LOCKSTEP" train --model gpt-nano --data text.txt --seq-len 1025 --steps 1
fails_with "another vocabulary does not generate" 1 "another vocabulary" "$LOCKSTEP" generate runs/bytes x --vocab bpe
run "$LOCKSTEP" generate runs/bert x
is "nothing is printed before it fails" "$out" ""
fails_with "a file that is not there is named" 1 "there is no file 'nope.txt'" "$LOCKSTEP" train --model gpt-nano --data nope.txt --steps 1
timeout -s INT 20 "$LOCKSTEP" generate runs/bytes x --max-new-tokens 100000000 --num-samples 2 --quiet >out.txt 2>err.txt &
pid=$!
sleep 1
kill -INT $pid
wait $pid
is "Ctrl-C ends it" "$?" 1
ok "and what was generated is printed" grep -q '^--- 2 ---$' out.txt
like "with a word about that" "$(cat err.txt)" 'stopped after [0-9]+ of 100000000 tokens'
fails_with "a vocab.txt is refused" 2 "no vocabulary for a language model" sh -c "echo x >vocab.txt; '$LOCKSTEP' train --model gpt-nano --data text.txt --vocab vocab.txt --steps 1"
fails_with "a share of 0 is refused" 2 "top-p" "$LOCKSTEP" generate runs/bytes x --top-p 0
fails_with "and a negative temperature" 2 "temperature" "$LOCKSTEP" generate runs/bytes x --temperature -1
test_end

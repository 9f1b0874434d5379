#!/bin/bash
# lockstep serve: answers have the bits of `lockstep predict` however requests were batched; what is wrong, too large, too slow
# or too much is refused; a stop answers what was accepted and leaves nothing behind. All on loopback.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

if ! command -v curl >/dev/null; then
	echo "1..0 # SKIP there is no curl"
	exit 0
fi
run "$LOCKSTEP" train --model cnn --data glyphs --samples 2000 --test-samples 64 --steps 20 --run cnn --quiet
is "a run to serve" "$status" 0
if timeout 60 "$LOCKSTEP" serve cnn --listen 127.0.0.1:99999 2>&1 </dev/null | grep -q 'without libmicrohttpd'; then
	skip "serving" "this build cannot serve"
	test_end
fi
"$LOCKSTEP" data make glyphs --out glyphs --samples 300 --quiet
"$LOCKSTEP" predict cnn glyphs/t10k-images-idx3-ubyte --top 10 --format jsonl >expected.jsonl
ok "expected answers" test -s expected.jsonl

with=() # words before the command
start() { # OPTIONS...: a server; $url and $server
	: >listening
	"${with[@]}" "$LOCKSTEP" serve cnn --listen 127.0.0.1:0 "$@" >listening 2>serve.err &
	server=$!
	wait_for 60 grep -q '^listening on' listening || cat serve.err
	url=$(sed -n 's/^listening on //p' listening)
}
stop() { # exit status of the server, which is asked to stop
	kill -TERM "$server"
	wait "$server"
}
client() { timeout 120 python3 "$SOURCE_DIR/tests/cli/serve_client.py" "$url" "$@"; }
ask() { curl -s -m 60 -o answer -w '%{http_code}' "$@"; } # status; the file has the body
header='Content-Type: application/json'

# ---- paths and answers ----

start
like "it says where it listens" "$url" '^http://127\.0\.0\.1:[0-9]+$'
port=${url##*:}
is "GET /healthz" "$(ask "$url/healthz") $(cat answer)" '200 {"status":"ok"}'
is "HEAD works" "$(curl -s -m 60 -I "$url/healthz" | head -n 1 | tr -d '\r')" "HTTP/1.1 200 OK"
is "GET / describes the model" "$(ask "$url/")" 200
mv answer description.json
ok "with its name, input and classes" json description.json 'o["model"] == "cnn" and o["input"]["shape"] == [1, 28, 28] and o["classes"] == 10'
fingerprint=$("$LOCKSTEP" eval cnn | sed -n 's/^parameters xxh64 //p')
ok "and the fingerprint of its weights" json description.json "o['fingerprint'] == '$fingerprint'"

python3 - <<'P'
import base64, json, struct, zlib
data = open("glyphs/t10k-images-idx3-ubyte", "rb").read()[16:]
image = lambda i: list(data[i * 784:(i + 1) * 784])
rows = lambda p: [p[y * 28:(y + 1) * 28] for y in range(28)]
def chunk(kind, d):
    return struct.pack(">I", len(d)) + kind + d + struct.pack(">I", zlib.crc32(kind + d))
png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 28, 28, 8, 0, 0, 0, 0)) + chunk(
    b"IDAT", zlib.compress(b"".join(b"\0" + bytes(r) for r in rows(image(0))))) + chunk(b"IEND", b"")
open("0.png", "wb").write(png)
write = lambda name, o: json.dump(o, open(name, "w"))
write("forms.json", {"inputs": [image(0), rows(image(1)), [rows(image(2))]], "top": 10})
write("images.json", {"images": [base64.b64encode(png).decode()] * 2})
f = lambda x: struct.unpack("f", struct.pack("f", x))[0]
write("normalised.json", {"inputs": [[f(f(f(x / 255.0) - f(0.1307)) / f(0.3081)) for x in image(0)]], "values": "normalised"})
bad = {"few": [[1, 2]], "rows": [rows(image(0))[:27]], "range": [image(1), [256] + image(0)[1:]], "word": [["x"] + image(0)[1:]],
       "null": [[None] + image(0)[1:]], "none": [], "flat": image(0)}
for name, inputs in bad.items():
    write(f"bad-{name}.json", {"inputs": inputs})
write("bad-large.json", {"inputs": [[1e300] * 784], "values": "normalised"})
write("bad-infinite.json", {"inputs": [image(0), [3e38] * 784], "values": "normalised"})
write("bad-both.json", {"inputs": [image(0)], "images": ["x"]})
write("bad-field.json", {"inputs": [image(0)], "topp": 3})
write("bad-top.json", {"inputs": [image(0)], "top": 0})
write("bad-base64.json", {"images": ["a"]})
write("bad-file.json", {"images": [base64.b64encode(b"not an image").decode()]})
write("bad-text.json", {"text": ["good"]})
write("bad-many.json", {"images": ["x"] * 5000})
open("bad-nan.json", "w").write('{"inputs": [[NaN' + ", 0" * 783 + "]]}")
open("bad-json.json", "w").write('{"inputs": [[0, 1')
open("bad-empty.json", "w").write("")
open("bad-deep.json", "w").write("[" * 100000)
open("bad-list.json", "w").write("[]")
P
same() { # FILE COUNT: predictions are those of predict
	python3 -c '
import json, sys
found = json.load(open("answer"))["predictions"]
truth = [json.loads(line) for line in open("expected.jsonl")]
same = [(p["label"], p["probability"]) == (t["label"], t["probability"]) and p.get("top", t["top"]) == t["top"] for p, t in zip(found, truth)]
sys.exit(not (all(same) and len(found) == int(sys.argv[1])))' "$1"
}
is "numbers, flat and nested" "$(ask -H "$header" -d @forms.json "$url/predict")" 200
ok "give the bits of predict" same 3
is "an image file as it is" "$(ask -H 'Content-Type: image/png' --data-binary @0.png "$url/predict?top=10")" 200
ok "gives the same" same 1
is "images in base64" "$(ask -d @images.json "$url/predict")" 200
ok "both of them" python3 -c 'import json; p = json.load(open("answer"))["predictions"]; assert len(p) == 2 and p[0] == p[1]'
is "numbers that are normalised" "$(ask -d @normalised.json "$url/predict")" 200
ok "give the same, too" same 1

# ---- bad requests ----

bad() { # NAME STATUS PATTERN
	local code
	code=$(ask -H "$header" --data-binary "@bad-$1.json" "$url/predict")
	like "bad request: $1" "$code $(cat answer)" "^$2 \{\"error\":\"$3"
}
bad few 400 'inputs\[0\] has 2 numbers; expected 784, 1x28x28'
bad rows 400 'inputs\[0\] has 27 rows; expected 28'
bad range 400 'inputs\[1\]: value 1 of the image is 256; pixels are numbers from 0 to 255'
bad word 400 'inputs\[0\]\[0\] is not a number'
bad null 400 'inputs\[0\]\[0\] is not a number'
bad none 400 '..inputs.. is not a list with at least one element'
bad flat 400 'inputs\[0\] is not a list; expected 784 numbers'
bad large 400 'inputs\[0\]\[0\] is larger than a float can be'
bad infinite 422 'inputs\[1\]: output 0 of the model is NaN: the values of the input are too large'
bad both 400 'the request has both'
bad field 400 '..topp.. is not a field of a request'
bad top 400 '..top.. is not a whole number'
bad base64 400 'images\[0\]: base64 that is cut short'
bad file 400 'images\[0\] is neither a PNG nor a JPEG'
bad text 400 'the model takes images; expected ..inputs.. or ..images.., not ..text..'
bad many 400 '..images.. has 5000 elements; at most 4096'
bad nan 400 'request:1: not acceptable JSON'
bad json 400 'request:1: not acceptable JSON'
bad empty 400 'request:1: not acceptable JSON'
bad deep 400 'request:1: not acceptable JSON'
bad list 400 'the request is not a JSON object'
is "an unknown path" "$(ask "$url/nowhere")" 404
is "a wrong method" "$(ask "$url/predict") $(ask -X DELETE "$url/") $(ask -d x "$url/healthz")" "405 405 405"
like "says which is right" "$(curl -s -m 60 -D - -o answer "$url/predict")" '^Allow: POST'
is "a cut PNG" "$(head -c 80 0.png | ask --data-binary @- "$url/predict")" 400
like "no HTTP at all" "$(client raw 'hello\r\n\r\n')" '^(400|None)$' # libmicrohttpd closes
is "a length that is none" "$(client raw 'POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n')" 400
for lengths in 'Content-Length: 0\r\nContent-Length: 5' 'Content-Length: 5\r\nTransfer-Encoding: chunked'; do
	is "two lengths" "$(client raw "GET /healthz HTTP/1.1\r\nHost: localhost\r\n$lengths\r\n\r\n0\r\n\r\n")" 400
done
for name in 'Content-Length ' 'Content-Length\x0b' 'Content-Length\t' 'X(Y)'; do
	is "a header name that is none hides no second request: '$name'" \
		"$(client answers "POST /predict HTTP/1.1\r\nHost: localhost\r\n$name: 42\r\n\r\nGET /metrics HTTP/1.1\r\nHost: smuggled\r\n\r\n  ")" 400
done
is "no Host, or two" "$(client raw 'GET /healthz HTTP/1.1\r\n\r\n') $(client raw 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: y\r\n\r\n')" "400 400"
is "before HTTP/1.1 none is needed" "$(client raw 'GET /healthz HTTP/1.0\r\n\r\n')" 200
for host in localhost localhost:1 LOCALHOST. 127.0.0.1 "127.0.0.5:$port" '[::1]:80'; do
	is "a request for $host, which is this machine" "$(ask -H "Host: $host" "$url/")" 200
done
# A web page whose name was made to lead to 127.0.0.1 sends that name.
for host in evil.example "evil.example:$port" localhost.evil.example 127.0.0.1.evil.example 192.168.0.1 '[::2]' "''"; do
	is "a request for $host, which is another" "$(ask -H "Host: $host" "$url/") $(ask -H "Host: $host" -d @forms.json "$url/predict") $(ask -H "Host: $host" "$url/healthz")" "421 421 421"
done
says_host() { # NAME SHOWN: of the last answer
	is "$1" "$(cat answer)" "{\"error\":\"Host '$2' is not this machine; use localhost, or start the server with a token file to accept any host name\"}"
}
says_host "says why" "??"
ask -H 'Host: evil.example:80' "$url/" >/dev/null
says_host "with the name" evil.example:80
ask -H "$(printf 'Host: a\xff\xc3\xa9\x01\x1b[2J"\\<b>%%s b')" "$url/" >/dev/null
says_host "but for what no name has" 'a?????[2J???b??s?b'
ask -H "Host: $(printf 'x%.0s' {1..1000})" "$url/" >/dev/null
says_host "and for the end of a long one" "$(printf 'x%.0s' {1..60})..."
for coding in gzip xchunked 'gzip, chunked' identity; do
	is "Transfer-Encoding: $coding is answered at once" "$(client prompt "POST /predict HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: $coding\r\n\r\n{}")" 501
done
head -c 9000000 /dev/zero >large
is "a body that is too large" "$(ask --data-binary @large "$url/predict")" 413
is "also when it does not say so before" "$(ask -H 'Transfer-Encoding: chunked' --data-binary @large "$url/predict")" 413
is "and one that nobody would read" "$(client raw 'POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n')" 413
is "a token that nobody asked for does no harm" "$(ask -H 'Authorization: Bearer x' "$url/healthz")" 200

# ---- metrics ----

is "GET /metrics" "$(ask "$url/metrics")" 200
for line in 'lockstep_requests_total\{code="413"\} 3' 'lockstep_requests_total\{code="404"\} 1' 'lockstep_samples_total 9' \
	'lockstep_batch_samples_count [1-9]' 'lockstep_request_seconds_count 4' 'lockstep_connections [1-9]'; do
	like "has $line" "$(cat answer)" "^$line"
done
errors=$(sed -n 's/^lockstep_errors_total //p' answer)
ok "counts errors: $errors" test "$errors" -ge 25
is "every line is a comment or a sample" "$(grep -vE '^(# (HELP|TYPE) [a-z_]+ .+|[a-z_]+(\{[a-z]+="[^"]+"\})? [0-9.e+-]+)$' answer)" ""

# ---- the port, and the end ----

fails_with "a port that is in use" 1 "port $port of 127.0.0.1 is in use.*choose another port with --listen" \
	"$LOCKSTEP" serve cnn --listen "127.0.0.1:$port"
stop
is "SIGTERM ends it with success" "$?" 0
is "and silence but for a note" "$(grep -v '^$' serve.err)" "answering the requests that are here; again to stop at once"
ok "nobody listens any more" eval '! curl -s -m 5 "$url/healthz"'
# The shell starts background jobs with SIGINT ignored, and what is ignored stays so.
with=(python3 -c 'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])')
start
with=()
kill -INT "$server"
wait "$server"
is "SIGINT, too" "$?" 0

# ---- one hash per input, however requests were batched ----

for how in "--max-batch 64" "--max-batch 1 --max-wait-ms 0" "--max-batch 7 --max-wait-ms 5 --devices 1 --threads 2" "--max-batch 256 --max-wait-ms 50 --devices 3"; do
	# shellcheck disable=SC2086 # words
	start $how --max-connections 1100
	is "1000 concurrent requests with $how: every answer has the bits of predict" "$(client many 1000)" "1000 right"
	batches=$(curl -s "$url/metrics" | sed -n 's/^lockstep_batch_samples_count //p')
	samples=$(curl -s "$url/metrics" | sed -n 's/^lockstep_samples_total //p')
	case $how in
	"--max-batch 1 "*) is "each sample alone" "$batches" "$samples" ;;
	*wait*) ok "in $batches batches of $samples samples" test "$batches" -lt $((samples / 2)) ;;
	*) ok "in $batches batches of $samples samples" test "$batches" -lt "$samples" ;;
	esac
	stop
	is "and it ends" "$?" 0
done

# ---- slow clients, many clients ----

start --timeout 1.5 --max-connections 20
is "connections that complete no request are closed" "$(client slow 6 | xargs)" "silent closed head closed body 408 idle closed"
like "and counted" "$(curl -s "$url/metrics")" '^lockstep_timeouts_total [4-9]'
like "with their answers" "$(curl -s "$url/metrics")" '^lockstep_requests_total\{code="408"\} 1'
is "more connections than allowed get 503, until some are closed" "$(client crowd 30 | xargs)" "503 200"
is "the server is well" "$(ask "$url/healthz")" 200
stop
is "and ends" "$?" 0

# ---- a stop under load ----

start
client load 20 >load.out &
loading=$!
asked_of() { test "$(curl -s "$url/metrics" | sed -n 's/^lockstep_samples_total //p')" -gt "$1"; }
wait_for 60 asked_of 20
stop
is "stopped under load it ends with success" "$?" 0
wait "$loading"
results=$(cat load.out)
like "requests were answered" "$results" right
is "and none wrongly or in part" "$(tr ' ' '\n' <<<"$results" | grep -vxE 'right|busy|refused')" ""
start
mkfifo go
client half <go >half.out &
halving=$!
exec 9>go
wait_for 20 grep -q ready half.out
kill -TERM "$server"
echo >&9
exec 9>&-
wait "$halving"
is "what had begun is answered, what is new is refused" "$(xargs <half.out)" "ready new refused old right"
wait "$server"
is "then it ends" "$?" 0

# ---- tokens ----

printf 'correct-horse-battery\n' >token
chmod 600 token
fails_with "beyond this machine a token is needed" 2 '0.0.0.0:0 can be reached from other machines, which needs --token-file' \
	"$LOCKSTEP" serve cnn --listen 0.0.0.0:0
fails_with "a token file that is not there" 1 'none' "$LOCKSTEP" serve cnn --token-file none
printf 'short\n' >short
fails_with "a token that is too short" 1 'short: the first line must be a token of 8' "$LOCKSTEP" serve cnn --token-file short
start --token-file token
is "without it" "$(ask "$url/") $(ask "$url/metrics") $(ask -d @forms.json "$url/predict")" "401 401 401"
is "with another" "$(ask -H 'Authorization: Bearer correct-horse-batterx' "$url/") $(ask -H 'Authorization: Bearer correct' "$url/") $(ask -H 'Authorization: correct-horse-battery' "$url/")" "401 401 401"
is "with it" "$(ask -H 'Authorization: Bearer correct-horse-battery' -d @forms.json "$url/predict")" 200
is "health needs none" "$(ask "$url/healthz")" 200
is "whatever the server is called: a proxy may stand in front" \
	"$(ask -H 'Host: ai.example' -H 'Authorization: Bearer correct-horse-battery' "$url/") $(ask -H 'Host: ai.example' "$url/")" "200 401"
is "nothing about it is printed" "$(grep -v '^$' serve.err)" ""
stop
is "it ends" "$?" 0
for mode in 640 604; do
	chmod $mode token
	start --token-file token
	like "a file of mode $mode is warned of" "$(cat serve.err)" 'token holds the token, and its group or others may read or change it; try chmod 600'
	stop
done
: >listening # before the server's shell does it
"$LOCKSTEP" serve cnn --listen 0.0.0.0:0 --token-file token >listening 2>/dev/null &
server=$!
wait_for 60 grep -q '^listening on' listening
port=$(sed -n 's/.*://p' listening)
is "with a token it listens to all" "$(ask -H 'Authorization: Bearer correct-horse-battery' "http://127.0.0.1:$port/")" 200
stop

for address in 8080 localhost: 127.0.0.1:99999 '[::1]' '::1:80' 'no.such.host.invalid:80'; do
	fails_with "an address that is none: $address" 2 "--listen" "$LOCKSTEP" serve cnn --listen "$address"
done
fails_with "a limit that is none" 2 'max-batch' "$LOCKSTEP" serve cnn --max-batch 0
fails_with "no run" 1 'none' "$LOCKSTEP" serve none

# ---- weights that do not say how images are normalised ----

python3 - cnn/ckpt/*/model.safetensors <<'P'
import json, struct, sys
data = open(sys.argv[-1], "rb").read()
length = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + length])
del header["__metadata__"]
text = json.dumps(header).encode()
open("bare.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data[8 + length:])
P
: >listening
"$LOCKSTEP" serve bare.safetensors --model cnn --input 1x28x28 --listen 127.0.0.1:0 >listening 2>/dev/null &
server=$!
wait_for 60 grep -q '^listening on' listening
url=$(sed -n 's/^listening on //p' listening)
is "an image for a model without normalisation is a bad request" "$(ask --data-binary @0.png "$url/predict")" 400
like "which says what to do" "$(cat answer)" 'does not record how its images are normalised.*with the mean and deviation'
is "numbers that are normalised are answered" "$(ask -d @normalised.json "$url/predict")" 200
stop

# ---- text ----

run "$LOCKSTEP" train --model transformer --layers 1 --width 32 --heads 2 --data babble --seq-len 12 --samples 50 --steps 1 --run babble --quiet
fails_with "generated text has no vocabulary" 1 'generated text, which has no vocabulary' "$LOCKSTEP" serve babble --listen 127.0.0.1:0
mkdir trees
awk 'BEGIN { split("good bad film plot acting great dull", w, " "); for (i = 0; i < 200; i++) printf "(%d (%d %s) (2 (2 %s) (2 .)))\n", i % 5, (i * 3) % 5, w[i % 7 + 1], w[int(i / 7) % 7 + 1] }' >trees/train.txt
cp trees/train.txt trees/test.txt
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' good bad film plot acting great dull . , '##s' >trees/vocab.txt
"$LOCKSTEP" train --model transformer --layers 1 --width 32 --heads 2 --data sst5 --data-dir trees --seq-len 12 --steps 5 --batch 16 --run text --quiet
printf 'good film\n\nbad plot.\n' >lines.txt
"$LOCKSTEP" predict text lines.txt --top 5 --format jsonl >expected.jsonl
: >listening
"$LOCKSTEP" serve text --listen '[::1]:0' >listening 2>serve.err &
server=$!
wait_for 60 grep -qE '^listening on' listening
url=$(sed -n 's/^listening on //p' listening)
like "IPv6" "$url" '^http://\[::1\]:[0-9]+$'
is "texts" "$(ask -g -d '{"text": ["good film", "", "bad plot."], "top": 5}' "$url/predict")" 200
ok "give the bits of predict" same 3
ok "with names" grep -q '"name":"\(very \)\?\(negative\|neutral\|positive\)"' answer
is "images are refused" "$(ask -g --data-binary @0.png "$url/predict") $(ask -g -d @forms.json "$url/predict")" "400 400"
is "text that is no string" "$(ask -g -d '{"text": [1]}' "$url/predict") $(cat answer)" '400 {"error":"text[0] is not a string"}'
is "text that is no UTF-8" "$(printf '{"text": ["\xff"]}' | ask -g --data-binary @- "$url/predict")" 400
stop
is "it ends" "$?" 0

# Texts of 0 to 40 words, some of which are cut: tokens of different samples lie beside each other in a batch.
awk 'BEGIN { srand(440); split("good bad film plot acting great dull .", w, " "); for (i = 0; i < 200; i++) {
	line = ""; for (k = int(rand() * 41); k > 0; k--) line = line " " w[int(rand() * 8) + 1]; print line } }' >many.txt
"$LOCKSTEP" predict text many.txt --top 10 --format jsonl >expected.jsonl 2>predict.err
is "texts of mixed lengths" "$(wc -l <expected.jsonl)" 200
for how in "--max-batch 64" "--max-batch 7 --max-wait-ms 5 --devices 1 --threads 2"; do
	: >listening
	# shellcheck disable=SC2086 # words
	"$LOCKSTEP" serve text --listen 127.0.0.1:0 $how --max-connections 400 >listening 2>serve.err &
	server=$!
	wait_for 60 grep -q '^listening on' listening
	url=$(sed -n 's/^listening on //p' listening)
	is "300 concurrent requests of texts with $how: every answer has the bits of predict" "$(client texts 300)" "300 right"
	batches=$(curl -s "$url/metrics" | sed -n 's/^lockstep_batch_samples_count //p')
	samples=$(curl -s "$url/metrics" | sed -n 's/^lockstep_samples_total //p')
	ok "in $batches batches of $samples samples" test "$batches" -lt "$samples"
	stop
	is "and it ends" "$?" 0
done

is "no server is left behind" "$(jobs -rp)" ""
test_end

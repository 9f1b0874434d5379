#!/bin/bash
# bench/serve with a stand-in for PyTorch: its points, its verdict, and that it leaves nothing behind.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# In the place of serve_torch.py: Lockstep itself on the same weights; WRONG: a server that says 99 of everything.
cat >torch <<'END'
#!/bin/bash
for word; do
	[ "$word" = --probe ] && exec echo '{"torch": "9.9", "torchvision": "9.9", "onednn": "none", "capability": "none"}'
done
while [ "$1" != --weights ]; do shift; done
echo $$ >>"$PIDS"
[ -n "$WRONG" ] || exec "$LOCKSTEP" serve "$2" --listen 127.0.0.1:0
exec python3 -c '
import http.server, json
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        inputs = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["inputs"]
        body = json.dumps({"predictions": [{"label": 99} for _ in inputs]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(f"listening on http://127.0.0.1:{server.server_address[1]}", flush=True)
server.serve_forever()'
END
chmod +x torch
export PIDS=$PWD/pids LOCKSTEP
measure() { "$SOURCE_DIR/bench/serve" --lockstep "$LOCKSTEP" --torch "$PWD/torch" --model mlp --rounds 2 --seconds 0.3 "$@"; }
gone() { ! kill -0 "$(tail -n 1 pids)" 2>/dev/null; }

run measure --clients 1,3 --images 2 --json
is "two points are measured" "$status" 0
echo "$out" >points.json
ok "with both sides, and labels that agree" json points.json 'len(o["points"]) == 2 and all(
	p["different_labels"] == 0 and p["labels"] == 128 and p["ratio_min"] <= p["ratio"] <= p["ratio_max"] and
	all(0 < s["p50_ms"] <= s["p99_ms"] and s["requests_per_s"] > 0 for s in p["sides"].values()) for p in o["points"])'
ok "the other server is gone" gone
run measure --clients 1 --images 1
like "a table" "$out" '^clients +images +lockstep/s +torch/s +ratio +range +lockstep p50 ms'
WRONG=1 run measure --clients 1 --images 1
is "labels that differ are a failure" "$status" 1
like "and counted" "$err" '^64 labels differ'
ok "nothing is left behind" gone
run "$SOURCE_DIR/bench/serve" --lockstep "$LOCKSTEP" --torch /nowhere/python
is "without PyTorch nothing is measured" "$status" 2
like "and it says why" "$err" '^bench/serve: /nowhere/python'

test_end

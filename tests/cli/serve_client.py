"""Clients of a server, for t0440-serve.sh: serve_client.py URL WHAT [ARGUMENT]..."""

import json
import random
import re
import resource
import socket
import sys
import threading
import time

url, what, arguments = sys.argv[1], sys.argv[2], sys.argv[3:]
host, port = re.fullmatch(r"http://\[?([^\]]*)\]?:(\d+)", url).groups()


def connect():
    return socket.create_connection((host, int(port)), timeout=60)


def head(method="POST", path="/predict", length=None, headers=""):
    body = "" if length is None else f"Content-Length: {length}\r\n"
    return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{body}{headers}\r\n".encode()


def answer(s):
    """The status and the body of a response; (None, bytes) when the connection ended before it was whole."""
    data = b""
    try:
        while True:
            m = re.match(rb"HTTP/1\.1 (\d+) .*?\r\n\r\n", data, re.S)
            if m:
                length = int(re.search(rb"Content-Length: (\d+)", m[0], re.I)[1])
                if len(data) >= m.end() + length:
                    return int(m[1]), data[m.end() :]
            part = s.recv(65536)
            if not part:
                return None, data
            data += part
    except (ConnectionError, socket.timeout):
        return None, data


def post(body, headers=""):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    with connect() as s:
        s.sendall(head(length=len(body), headers=headers) + body)
        return answer(s)


def images():
    data = open("glyphs/t10k-images-idx3-ubyte", "rb").read()[16:]
    return [list(data[i : i + 784]) for i in range(0, len(data), 784)]


def texts():
    """Lines of 0 to 40 words."""
    return open("many.txt").read().split("\n")[:-1]


def expected():
    """What `lockstep predict --top 10` said of each image or text."""
    lines = [json.loads(line) for line in open("expected.jsonl")]
    return [[(c["label"], c["probability"]) for c in line["top"]] for line in lines]


def read(prediction):
    return [(c["label"], c["probability"]) for c in prediction["top"]]


def make(seed, most):
    """A request of a random number of random samples, and which they are."""
    r = random.Random(seed)
    chosen = [r.randrange(len(samples)) for _ in range(r.choice([1, 1, 1, 2, 3, most]))]
    return json.dumps({field: [samples[i] for i in chosen], "top": 10}).encode(), chosen


def check(status, body, chosen):
    """'right', 'wrong', 'busy' (503) or 'cut'."""
    if status is None:
        return "cut" if body else "refused"
    if status == 503:
        return "busy"
    found = [read(p) for p in json.loads(body)["predictions"]] if status == 200 else None
    return "right" if found == [truth[i] for i in chosen] else "wrong"


def many(count):
    """All connections are open and have sent their requests before the first answer is read."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
    results = {}
    open_ones = []
    for i in range(count):
        body, chosen = make(i, 8)
        s = connect()
        s.sendall(head(length=len(body)) + body)
        open_ones.append((s, chosen))
    for s, chosen in open_ones:
        result = check(*answer(s), chosen)
        results[result] = results.get(result, 0) + 1
        s.close()
    print(*(f"{n} {k}" for k, n in sorted(results.items())))


def load(seconds):
    """Eight clients that ask again and again, and count what comes of it until the server is gone."""
    results, lock, end = {}, threading.Lock(), time.time() + seconds

    def client(seed):
        while time.time() < end:
            seed += 8
            body, chosen = make(seed, 4)
            try:
                with connect() as s:
                    s.sendall(head(length=len(body)) + body)
                    result = check(*answer(s), chosen)
            except OSError:
                result = "refused"
            with lock:
                results[result] = results.get(result, 0) + 1
            if result == "refused":
                break

    threads = [threading.Thread(target=client, args=(i,)) for i in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    print(*(k for k in sorted(results)))


def slow(seconds):
    """Connections that never complete a request: how long the server lets them."""
    whole = json.dumps({"inputs": [samples[0]]}).encode()
    kinds = {
        "silent": b"",
        "head": b"POST /predict HTTP/1.1\r\nHost: localhost\r\nX: ",
        "body": head(length=len(whole)),
        "idle": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    }
    for name, first in kinds.items():
        s = connect()
        s.sendall(first)
        if name == "idle":
            answer(s)
        begin, closed, last = time.time(), False, b""
        s.settimeout(0.2)
        while time.time() - begin < seconds and not closed:
            try:
                if name in ("head", "body"):
                    s.sendall(b"[")
                part = s.recv(1000)
                closed, last = part == b"", last + part
            except socket.timeout:
                pass
            except OSError:
                closed = True
        said = re.match(rb"HTTP/1\.1 (\d+) .*?Content-Length: (\d+)\r\n\r\n(\{.*\})$", last, re.S)
        assert not said or int(said[2]) == len(said[3]), last
        print(name, "open" if not closed else said[1].decode() if said else "closed")


def half():
    """A request that is half there when the server is asked to stop is answered; new ones are not."""
    body, chosen = make(1, 3)
    s = connect()
    s.sendall(head(length=len(body)) + body[:100])
    time.sleep(0.3)
    print("ready", flush=True)
    sys.stdin.readline()  # the server has been signalled
    time.sleep(0.5)
    try:
        with connect() as new:
            new.sendall(head("GET", "/healthz"))
            print("new", answer(new)[0])
    except OSError:
        print("new refused")
    s.sendall(body[100:])
    print("old", check(*answer(s), chosen))


def crowd(count):
    """Connections beyond the limit are told so."""
    open_ones = [connect() for _ in range(count)]
    time.sleep(0.5)
    with connect() as s:
        s.sendall(head("GET", "/healthz"))
        print(answer(s)[0])
    [s.close() for s in open_ones]
    for _ in range(100):
        with connect() as s:
            s.sendall(head("GET", "/healthz"))
            status = answer(s)[0]
        if status == 200:
            break
        time.sleep(0.1)
    print(status)


def raw(text):
    """Bytes as they are, and the status of the answer."""
    with connect() as s:
        s.sendall(text.encode().decode("unicode_escape").encode("latin-1"))
        s.shutdown(socket.SHUT_WR)
        print(answer(s)[0])


def answers(text):
    """The statuses of all answers to bytes as they are, until the server closes or says nothing for a second."""
    with connect() as s:
        s.sendall(text.encode().decode("unicode_escape").encode("latin-1"))
        s.settimeout(1)
        data = b""
        try:
            while part := s.recv(65536):
                data += part
        except (ConnectionError, socket.timeout):
            pass
        print(*(m.decode() for m in re.findall(rb"HTTP/1\.1 (\d+) ", data)))


def prompt(text):
    """The status of an answer that comes long before the server gives a connection up."""
    with connect() as s:
        s.settimeout(10)
        s.sendall(text.encode().decode("unicode_escape").encode("latin-1"))
        print(answer(s)[0])


field, samples = ("text", texts()) if what == "texts" else ("inputs", images())
truth = expected()
{
    "many": lambda: many(int(arguments[0])),
    "texts": lambda: many(int(arguments[0])),
    "load": lambda: load(float(arguments[0])),
    "slow": lambda: slow(float(arguments[0])),
    "half": half,
    "crowd": lambda: crowd(int(arguments[0])),
    "raw": lambda: raw(arguments[0]),
    "answers": lambda: answers(arguments[0]),
    "prompt": lambda: prompt(arguments[0]),
}[what]()

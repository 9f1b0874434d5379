"""devtools.py - headless Chromium driven over its debugging protocol, with Python's standard library alone.

    with Browser() as browser:
        page = browser.open("file:///tmp/report.html")
        page.evaluate("document.title")

A WebSocket client of 60 lines is enough: one connection, text frames, no extensions (RFC 6455).
"""
import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_browser():
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Socket:
    """The client's end of a WebSocket."""

    def __init__(self, url, timeout):
        host, path = url.removeprefix("ws://").split("/", 1)
        name, port = host.split(":")
        self.stream = socket.create_connection((name, int(port)), timeout)
        key = base64.b64encode(os.urandom(16)).decode()
        self.stream.sendall((f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        self.rest = b""
        while b"\r\n\r\n" not in self.rest:
            self._more()
        head, self.rest = self.rest.split(b"\r\n\r\n", 1)
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise ConnectionError(head.decode(errors="replace"))

    def _more(self):
        part = self.stream.recv(1 << 16)
        if not part:
            raise ConnectionError("the browser has closed the connection")
        self.rest += part

    def _take(self, count):
        while len(self.rest) < count:
            self._more()
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def send(self, text):
        data = text.encode()
        mask = os.urandom(4)
        size = len(data)
        if size < 126:
            head = struct.pack(">BB", 0x81, 0x80 | size)
        elif size < 1 << 16:
            head = struct.pack(">BBH", 0x81, 0xFE, size)
        else:
            head = struct.pack(">BBQ", 0x81, 0xFF, size)
        masked = bytes(b ^ mask[i % 4] for i, b in enumerate(data))
        self.stream.sendall(head + mask + masked)

    def receive(self):
        message = b""
        while True:
            first, size = self._take(2)
            if size == 126:
                size = struct.unpack(">H", self._take(2))[0]
            elif size == 127:
                size = struct.unpack(">Q", self._take(8))[0]
            data = self._take(size)
            if first & 0x0F in (0, 1):
                message += data
                if first & 0x80:
                    return message.decode()
            elif first & 0x0F == 8:
                raise ConnectionError("the browser has ended the connection")

    def close(self):
        self.stream.close()


class Page:
    """One tab. `errors` are the script errors and the messages of level error that it had."""

    def __init__(self, url, timeout=60):
        self.socket = Socket(url, timeout)
        self.number = 0
        self.errors = []
        self.requests = []
        self.loaded = False
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def _note(self, message):
        method, given = message["method"], message["params"]
        if method == "Runtime.exceptionThrown":
            self.errors.append(given["exceptionDetails"].get("text", "") + " " +
                               given["exceptionDetails"].get("exception", {}).get("description", ""))
        elif method == "Log.entryAdded" and given["entry"]["level"] == "error":
            self.errors.append(given["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "assert"):
            self.errors.append(json.dumps(given["args"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loaded = True

    def call(self, method, **given):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": given}))
        while True:
            message = json.loads(self.socket.receive())
            if "method" in message:
                self._note(message)
            elif message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]

    def go(self, url):
        self.loaded = False
        self.call("Page.navigate", url=url)
        deadline = time.monotonic() + 60
        while not self.loaded and time.monotonic() < deadline:
            self.evaluate("1")
            time.sleep(0.02)
        if not self.loaded:
            raise TimeoutError(url)
        return self

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"]["description"])
        return result["result"].get("value")

    def move(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def dark(self, on):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if on else "light"}])

    def script(self, on):
        self.call("Emulation.setScriptExecutionDisabled", value=not on)

    def screenshot(self, path, clip=None):
        given = {"clip": {**clip, "scale": 1}} if clip else {}
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, **given)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def pdf(self, path):
        data = self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))


class Browser:
    """A browser with a directory of its own, both gone at the end."""

    def __init__(self):
        self.process = None
        self.directory = tempfile.mkdtemp(prefix="lockstep-browser.")

    def __enter__(self):
        self.process = subprocess.Popen(
            [find_browser(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", "--disable-extensions", "--mute-audio",
             "--remote-debugging-port=0", f"--user-data-dir={self.directory}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.port = self._wait_for_port()
        return self

    def _wait_for_port(self):
        path = os.path.join(self.directory, "DevToolsActivePort")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"the browser has ended with status {self.process.returncode}")
            try:
                with open(path) as file:
                    return int(file.readline())
            except (FileNotFoundError, ValueError):
                time.sleep(0.05)
        raise TimeoutError("the browser has not said where it listens")

    def open(self, url):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/json/new?about:blank", method="PUT")
        with opener.open(request, timeout=60) as answer:
            return Page(json.load(answer)["webSocketDebuggerUrl"]).go(url)

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

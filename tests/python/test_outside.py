"""What comes from outside: downloads, progress bars, notebooks."""

import http.server
import re
import sys
import threading
import types

import pytest

import lockstep
from lockstep import _download, _progress

CONTENT = bytes(range(256)) * 40


class Server(http.server.BaseHTTPRequestHandler):
    """Serves CONTENT: /ranges understands ranges, /plain does not, /missing is not there."""

    asked = []

    def do_GET(self):
        first = int(self.headers["Range"][6:-1]) if self.headers["Range"] and self.path == "/ranges" else 0
        Server.asked.append(first)
        if self.path == "/missing" or first >= len(CONTENT):
            self.send_error(404 if self.path == "/missing" else 416)
            return
        self.send_response(206 if first else 200)
        self.end_headers()
        self.wfile.write(CONTENT[first:])

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("have", [0, 1000, len(CONTENT)])
@pytest.mark.parametrize("path", ["/ranges", "/plain"])
def test_downloads_are_continued(tmp_path, address, path, have):
    part = tmp_path / "part"
    part.write_bytes(CONTENT[:have])
    _download._transfer(address + path, str(part), have, len(CONTENT))
    assert part.read_bytes() == CONTENT
    assert Server.asked[-1] == (have if path == "/ranges" else 0)


def test_bad_downloads(tmp_path, address):
    part = tmp_path / "part"
    part.write_bytes(b"")
    with pytest.raises(OSError, match="404"):
        _download._transfer(address + "/missing", str(part), 0, 10)
    with pytest.raises(ValueError, match="larger than the 100 bytes"):
        _download._transfer(address + "/plain", str(part), 0, 100)
    with pytest.raises(ValueError, match="only http"):
        _download._transfer("file:///etc/hostname", str(part), 0, 100)


def test_a_dataset_that_cannot_be_fetched(tmp_path, monkeypatch):
    """The library asks Python for every mirror, and its error says where they are; Ctrl-C is not one of them."""
    asked = []

    def fail(url, part, have, limit):
        asked.append(url)
        raise OSError("no network")

    monkeypatch.setenv("PATH", str(tmp_path))  # no npm
    monkeypatch.setattr(_download, "_transfer", fail)
    with pytest.raises(lockstep.Error) as caught:
        lockstep.download("mnist", dir=tmp_path)
    assert len(asked) >= 2 and "could not be downloaded" in str(caught.value)
    assert str(caught.value.__cause__) == "no network"

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(_download, "_transfer", interrupt)
    with pytest.raises(KeyboardInterrupt):
        lockstep.download("mnist", dir=tmp_path)


def test_files_that_are_there_are_taken(tmp_path):
    with pytest.raises(lockstep.Error, match="none"):
        lockstep.download("mnist", source=tmp_path / "none", dir=tmp_path / "to")
    with pytest.raises(lockstep.Error, match="mnsit"):
        lockstep.download("mnsit")


def test_notebooks_are_known(monkeypatch):
    class ZMQInteractiveShell:
        pass

    class TerminalInteractiveShell:
        pass

    for shell, expected in ((ZMQInteractiveShell, True), (TerminalInteractiveShell, False)):
        monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=shell))
        assert _progress.in_notebook() is expected
    monkeypatch.delitem(sys.modules, "IPython")
    assert not _progress.in_notebook()


CELLS = [
    "import lockstep\nresult = lockstep.train('mlp', 'glyphs', samples=640, test_samples=64, batch=64, run='run')\nprint(result.fingerprint)",
    "%matplotlib inline\nfigure = lockstep.plot('run')\nfigure",
    "lockstep.train('mlp', 'glyphs', samples=640, test_samples=64, epochs=10**6, eval_every=0)  # until it is interrupted",
    "print(lockstep.train('mlp', 'glyphs', samples=640, test_samples=64, batch=64, progress=False).fingerprint == result.fingerprint)",
]


def test_in_a_real_notebook(tmp_path, monkeypatch):
    """A Jupyter kernel runs cells: the bar, a picture, the Interrupt button, and all goes on behind it."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    for name in ("ipykernel", "matplotlib"):
        pytest.importorskip(name)
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "MPLCONFIGDIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    nbclient.NotebookClient(book, timeout_func=lambda cell: 2 if "10**6" in cell.source else 200, interrupt_on_timeout=True, allow_errors=True,
                            kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()  # fmt: skip
    printed, drawn = (["".join(out.text for out in cell.outputs if out.get("name") == name) for cell in book.cells] for name in ("stdout", "stderr"))
    assert re.fullmatch(r"[0-9a-f]{16}\n", printed[0]) and ("step 10 of 10" in drawn[0] or "10/10" in str(book.cells[0].outputs))
    assert any("image/png" in out.get("data", {}) for out in book.cells[1].outputs)
    assert [out.ename for out in book.cells[2].outputs if out.output_type == "error"] == ["KeyboardInterrupt"]
    assert printed[3] == "True\n"


def test_tqdm_is_used_where_it_is(monkeypatch):
    drawn = []

    class Bar:
        n = 0

        def __init__(self, total, **_):
            drawn.append(("total", total))

        def set_postfix_str(self, words, refresh):
            drawn.append(("words", words))

        def update(self, steps):
            self.n += steps
            drawn.append(("at", self.n))

        def close(self):
            drawn.append(("closed", self.n))

    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", types.SimpleNamespace(tqdm=Bar))
    lockstep.train("mlp", "glyphs", samples=320, test_samples=64, batch=64, progress=True)
    assert drawn[0] == ("total", 5) and ("at", 5) in drawn and drawn[-1] == ("closed", 5)

"""Fetch the files of a dataset. Python's urllib transfers them, with Python's proxies and certificates; the C library knows
the addresses, checks sizes and checksums, and puts files in place."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from typing import Any, List, Optional

from lockstep._binding import ffi
from lockstep._library import Options, Path, error_of, lib, text, version_text

STALL_S = 20.0
BLOCK = 1 << 18

_lock = threading.Lock()  # the library has one downloader


def download(name: str, *, source: Optional[Path] = None, dir: Optional[Path] = None) -> None:
    """Fetch a dataset of datasets() that needs it, "mnist", into the cache or `dir`. What is there and correct is not fetched
    again. `source` is a directory that already has the files."""
    options = Options("ls_data_get_options")
    options.set(name=name, dir=dir, quiet=1, **{"from": source})
    last: List[BaseException] = []

    def fetch(_: Any, url: Any, part: Any, have: int, limit: int) -> int:
        try:
            _transfer(text(url), text(part), have, limit)
        except BaseException as error:
            last[:] = [error]
            return int(lib.LS_EIO)
        return int(lib.LS_OK)

    with _lock:
        function = ffi.callback("ls_downloader", fetch, error=lib.LS_EIO)
        lib.ls_set_downloader(function, ffi.NULL)
        try:
            status = lib.ls_data_get(options.pointer)
        finally:
            lib.ls_set_downloader(ffi.NULL, ffi.NULL)
    if status != lib.LS_OK and last and not isinstance(last[0], Exception):
        raise last[0]  # Ctrl-C
    if status != lib.LS_OK:
        raise error_of(status) from (last[0] if last else None)


def _transfer(url: str, part: str, have: int, limit: int) -> None:
    """Append what is missing. A server that does not know ranges sends all."""
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{url}: only http and https")
    request = urllib.request.Request(url, headers={"User-Agent": f"lockstep/{version_text()}"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        answer = urllib.request.urlopen(request, timeout=STALL_S)
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:
            return  # there is no more
        raise
    with answer, open(part, "ab") as file:
        if have and answer.status != 206:
            file.truncate(0)
            have = 0
        while True:
            block = answer.read(BLOCK)
            if not block:
                return
            have += len(block)
            if have > limit:
                raise ValueError(f"{url} is larger than the {limit} bytes it may have")
            file.write(block)

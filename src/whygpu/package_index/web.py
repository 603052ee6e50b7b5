"""Polite reading from the web: ranges, a cache on disk, retries with back-off."""

from __future__ import annotations

import hashlib
import http.client
import os
import pathlib
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

CONNECTIONS = 4
_ATTEMPTS = 6
_TIMEOUT_SECONDS = 60
_PERMANENT = frozenset({400, 401, 403, 404, 410, 416})


class Unreadable(Exception):
    """The web server did not give what was asked for, and asking again will not help."""


def configured_index() -> str:
    """The package index that pip is configured for."""
    url = (
        os.environ.get("PIP_INDEX_URL")
        or _said("-m", "pip", "config", "get", "global.index-url")
        or _said("-c", "from pip._internal.models.index import PyPI; print(PyPI.simple_url)")
    )
    if not url:
        raise Unreadable("pip names no package index; set PIP_INDEX_URL")
    return url.rstrip("/")


def _said(*words: str) -> str:
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    return done.stdout.strip()


class Web:
    """Answers are kept in `cache` for ever, but for pages, which change: those are kept for a day.

    At most CONNECTIONS requests are under way at a time, however many threads ask.
    """

    def __init__(
        self,
        cache: pathlib.Path,
        page_age_seconds: float = 86_400,
        first_pause_seconds: float = 1,
    ) -> None:
        self._cache = cache
        self._page_age_seconds = page_age_seconds
        self._first_pause_seconds = first_pause_seconds
        self._slots = threading.BoundedSemaphore(CONNECTIONS)
        self._lock = threading.Lock()
        self.requests = 0
        self.bytes_read = 0

    def page(self, url: str) -> str:
        path = self._path(url, "")
        if path.is_file() and time.time() - path.stat().st_mtime < self._page_age_seconds:
            return path.read_text(encoding="utf-8")
        body, _ = self._ask(url, {})
        self._keep(path, body)
        return body.decode("utf-8")

    def range(self, url: str, start: int, end: int) -> bytes:
        """Bytes from start up to, and without, end."""
        return self._part(url, f"{start}-{end - 1}")[0]

    def tail(self, url: str, length: int) -> tuple[bytes, int]:
        """The last bytes of a file, and the size of all of it."""
        return self._part(url, f"-{length}")

    def _part(self, url: str, span: str) -> tuple[bytes, int]:
        path = self._path(url, span)
        if path.is_file():
            total, _, body = path.read_bytes().partition(b"\n")
            return body, int(total)
        body, content_range = self._ask(url, {"Range": f"bytes={span}"})
        total_text = content_range.rpartition("/")[2]
        if not total_text.isdigit():
            raise Unreadable(f"{url}: the server does not answer range requests")
        self._keep(path, total_text.encode() + b"\n" + body)
        return body, int(total_text)

    def _path(self, url: str, span: str) -> pathlib.Path:
        name = hashlib.sha256(f"{url} {span}".encode()).hexdigest()
        return self._cache / name[:2] / name[2:]

    def _keep(self, path: pathlib.Path, content: bytes) -> None:
        """An interrupted write leaves no half answer behind."""
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{threading.get_ident()}")
        partial.write_bytes(content)
        partial.replace(path)

    def _ask(self, url: str, headers: dict[str, str]) -> tuple[bytes, str]:
        """The body, and which part of the file it is."""
        request = urllib.request.Request(url, headers={"User-Agent": "whygpu-harvest", **headers})
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(self._first_pause_seconds * 2 ** (attempt - 1))
            try:
                with (
                    self._slots,
                    urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer,
                ):
                    if headers and answer.status != 206:
                        raise Unreadable(f"{url}: the server does not answer range requests")
                    body: bytes = answer.read()
                    content_range = answer.headers.get("Content-Range", "")
            except urllib.error.HTTPError as error:
                if error.code in _PERMANENT:
                    raise Unreadable(f"{url}: {error}") from error
                problem: Exception = error
            except (OSError, http.client.HTTPException) as error:
                problem = error
            else:
                with self._lock:
                    self.requests += 1
                    self.bytes_read += len(body)
                return body, content_range
        raise Unreadable(f"{url}: {problem} (after {_ATTEMPTS} attempts)")

"""Polite reading from the web: ranges, a cache on disk, retries with back-off."""

from __future__ import annotations

import hashlib
import http.client
import pathlib
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

from whygpu.model.units import size_text
from whygpu.package_index.pip_settings import IndexSettings

CONNECTIONS = 4
_ATTEMPTS = 6
_TIMEOUT_SECONDS = 60.0
_LARGEST_ANSWER = 256 << 20
"""Bytes of one answer. The largest that a harvest asks for has about 100 MB."""
_LONGEST_ANSWER_SECONDS = 600.0
_PIECE = 1 << 16
_PERMANENT = frozenset({400, 401, 403, 404, 407, 410, 416})


class Unreadable(Exception):
    """The web server did not give what was asked for, and asking again will not help."""


class NotThere(Unreadable):
    """The web server says that it does not have what was asked for."""


class Web:
    """Answers are kept in `cache` forever, except for pages, which change and are kept for a day.

    At most CONNECTIONS requests are under way at a time, however many threads ask.
    """

    def __init__(
        self,
        cache: pathlib.Path | None,
        settings: IndexSettings | None = None,
        *,
        page_age_seconds: float = 86_400,
        first_pause_seconds: float = 1,
        attempts: int = _ATTEMPTS,
        timeout_seconds: float = _TIMEOUT_SECONDS,
        largest_answer: int = _LARGEST_ANSWER,
    ) -> None:
        """Without `cache`, nothing is kept. `settings` are for the servers of that index."""
        self._cache = cache
        self._settings = settings
        self._page_age_seconds = page_age_seconds
        self._first_pause_seconds = first_pause_seconds
        self._attempts = attempts
        self._timeout_seconds = timeout_seconds
        self._largest_answer = largest_answer
        self._slots = threading.BoundedSemaphore(CONNECTIONS)
        self._lock = threading.Lock()
        self._opener = urllib.request.build_opener(*_https_handlers(settings))
        self.requests = 0
        self.bytes_read = 0

    def page(self, url: str) -> str:
        path = self._path(url, "")
        if path and path.is_file() and time.time() - path.stat().st_mtime < self._page_age_seconds:
            return path.read_text(encoding="utf-8")
        body, _ = self._ask(url, {})
        try:
            text = body.decode("utf-8")
        except UnicodeDecodeError as error:
            raise Unreadable(
                f"{url}: the page is not UTF-8, so it is no page of an index"
            ) from error
        self._keep(path, body)
        return text

    def range(self, url: str, start: int, end: int) -> bytes:
        """Bytes from start up to, and without, end."""
        return self._part(url, f"{start}-{end - 1}")[0]

    def tail(self, url: str, length: int) -> tuple[bytes, int]:
        """The last bytes of a file, and the size of all of it."""
        return self._part(url, f"-{length}")

    def _part(self, url: str, span: str) -> tuple[bytes, int]:
        path = self._path(url, span)
        if path and path.is_file():
            total, _, body = path.read_bytes().partition(b"\n")
            return body, int(total)
        body, content_range = self._ask(url, {"Range": f"bytes={span}"})
        total_text = content_range.rpartition("/")[2]
        if not total_text.isdecimal():
            raise Unreadable(f"{url}: the server does not answer range requests")
        self._keep(path, total_text.encode() + b"\n" + body)
        return body, int(total_text)

    def _path(self, url: str, span: str) -> pathlib.Path | None:
        if self._cache is None:
            return None
        name = hashlib.sha256(f"{url} {span}".encode()).hexdigest()
        return self._cache / name[:2] / name[2:]

    def _keep(self, path: pathlib.Path | None, content: bytes) -> None:
        """An interrupted write leaves no half answer behind."""
        if path is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{threading.get_ident()}")
        partial.write_bytes(content)
        partial.replace(path)

    def _ask(self, url: str, headers: dict[str, str]) -> tuple[bytes, str]:
        """The body, and which part of the file it is."""
        request = self._request(url, headers)
        for attempt in range(self._attempts):
            if attempt:
                time.sleep(self._first_pause_seconds * 2 ** (attempt - 1))
            try:
                with (
                    self._slots,
                    self._opener.open(request, timeout=self._timeout_seconds) as answer,
                ):
                    if headers and answer.status != 206:
                        raise Unreadable(f"{url}: the server does not answer range requests")
                    body = self._body(url, answer)
                    content_range = answer.headers.get("Content-Range", "")
            except urllib.error.HTTPError as error:
                if error.code in _PERMANENT:
                    kind = NotThere if error.code in (404, 410) else Unreadable
                    raise kind(f"{url}: {error}") from error
                problem: Exception = error
            except (OSError, http.client.HTTPException) as error:
                problem = error
            else:
                with self._lock:
                    self.requests += 1
                    self.bytes_read += len(body)
                return body, content_range
        attempts = f"after {self._attempts} attempts"
        raise Unreadable(f"{url}: {problem} ({attempts})") from problem

    def _request(self, url: str, headers: dict[str, str]) -> urllib.request.Request:
        """A password is for the server of the index alone, also if that one redirects."""
        if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
            raise Unreadable(f"{url}: only http and https can be read")
        request = urllib.request.Request(url, headers={"User-Agent": "whygpu", **headers})
        settings = self._settings
        if settings and settings.authorization and _server(url) == _server(settings.url):
            request.add_unredirected_header("Authorization", settings.authorization)
        return request

    def _body(self, url: str, answer: http.client.HTTPResponse) -> bytes:
        """All of it, but neither more nor for longer than any sound answer takes."""
        pieces, size = list[bytes](), 0
        end = time.monotonic() + _LONGEST_ANSWER_SECONDS
        while piece := answer.read(_PIECE):
            pieces.append(piece)
            size += len(piece)
            if size > self._largest_answer:
                limit = size_text(self._largest_answer)
                raise Unreadable(f"{url}: the answer is larger than {limit}")
            if time.monotonic() > end:
                raise Unreadable(f"{url}: the answer takes too long")
        promised = answer.headers.get("Content-Length", "")
        if promised.isdecimal() and int(promised) > size:
            raise http.client.IncompleteRead(b"", int(promised) - size)
        return b"".join(pieces)


def _https_handlers(settings: IndexSettings | None) -> list[urllib.request.BaseHandler]:
    if settings is None or not settings.certificates:
        return []
    try:
        context = ssl.create_default_context(cafile=settings.certificates)
    except OSError as error:
        raise Unreadable(
            f"the certificates that pip is configured with cannot be read: {error}"
        ) from error
    return [urllib.request.HTTPSHandler(context=context)]


def _server(url: str) -> tuple[str, str]:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.netloc

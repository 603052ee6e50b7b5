"""A package index on this machine: real HTTP, range requests, and failures on demand."""

from __future__ import annotations

import http.server
import io
import pathlib
import re
import threading
import zipfile
from collections.abc import Iterator, Mapping

import pytest

from whygpu.package_index.web import Web


class LocalIndex(http.server.ThreadingHTTPServer):
    """Serves `files` by their paths, and notes what was asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.authorizations: list[str] = []
        self.failures_left = 0
        self.ignores_ranges = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def add_page(self, package: str, *links: str) -> None:
        self.files[f"/simple/{package}/"] = "\n".join(links).encode()

    def add_wheel(self, filename: str, members: Mapping[str, bytes]) -> str:
        """A link to it, as a simple page has it."""
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, member in members.items():
                archive.writestr(name, member)
        self.files[f"/files/{filename}"] = content.getvalue()
        return f'<a href="../../files/{filename}#sha256=0">{filename}</a>'


class _Handler(http.server.BaseHTTPRequestHandler):
    server: LocalIndex

    def do_GET(self) -> None:
        span = self.headers.get("Range", "")
        self.server.asked.append(f"{self.path} {span}".strip())
        self.server.authorizations.append(self.headers.get("Authorization", ""))
        if self.server.failures_left:
            self.server.failures_left -= 1
            self.send_error(503)
            return
        content = self.server.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        bounds = re.fullmatch(r"bytes=(\d*)-(\d+)", span)
        if bounds is None or self.server.ignores_ranges:
            self._answer(200, content, {})
            return
        start = int(bounds[1]) if bounds[1] else max(len(content) - int(bounds[2]), 0)
        end = min(int(bounds[2]) + 1, len(content)) if bounds[1] else len(content)
        place = f"bytes {start}-{end - 1}/{len(content)}"
        self._answer(206, content[start:end], {"Content-Range": place})

    def _answer(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Tests read `asked` instead."""


@pytest.fixture
def index() -> Iterator[LocalIndex]:
    server = LocalIndex()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def web(tmp_path: pathlib.Path) -> Web:
    return Web(tmp_path / "cache", first_pause_seconds=0.01)

"""The server for editors ends when it should, and keeps going when it should."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess

import pytest

from tests.editor.client import Editor, with_editor
from tests.patience import PATIENCE
from whygpu.host.own_process import verb_command


def message(method: str, identifier: int | None = None, **params: object) -> bytes:
    body = {"jsonrpc": "2.0", "method": method, "params": params}
    content = json.dumps(body if identifier is None else {**body, "id": identifier}).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(content), content)


def started() -> subprocess.Popen[bytes]:
    server = subprocess.Popen(
        verb_command(("lsp",)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert server.stdin
    assert server.stdout
    server.stdin.write(message("initialize", 1, capabilities={}, processId=None, rootUri=None))
    server.stdin.flush()
    assert server.stdout.readline().startswith(b"Content-Length: ")
    return server


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_at_once(number: int, code: int) -> None:
    server = started()
    server.send_signal(number)
    assert server.wait(PATIENCE) == code


def test_the_end_of_its_input_ends_it() -> None:
    server = started()
    assert server.stdin
    server.stdin.close()
    assert server.wait(PATIENCE) == 0


def test_exit_without_shutdown_is_an_error_as_the_protocol_wants() -> None:
    server = started()
    assert server.stdin
    server.stdin.write(message("exit"))
    server.stdin.flush()
    assert server.wait(PATIENCE) == 1


@pytest.mark.parametrize("name", ["input", os.devnull])
def test_a_file_for_input_is_refused(tmp_path: pathlib.Path, name: str) -> None:
    (tmp_path / "input").touch()
    with open(tmp_path / name, "rb") as file:
        ended = subprocess.run(
            verb_command(("lsp",)), stdin=file, capture_output=True, timeout=PATIENCE
        )
    assert ended.returncode == 2
    assert b"must be a pipe" in ended.stderr


HOSTILE = (
    "import tensorflow as tf\n\x00",
    "(" * 100_000,
    "# coding: no-such-encoding\nimport torch\n",
    "# coding: latin-1\nimport torch\ns = '€𝄞'\n",
    "import torch\n" + "x = torch.ones(1).cuda()\r" * 2000,
    "\ufeffimport torch\n\u2028\x0c\x85torch.cuda.set_device(99)\n",
    "import torch; torch\ud800.cuda()",
)


def test_no_text_stops_it(tmp_path: pathlib.Path) -> None:
    async def use(editor: Editor) -> None:
        for number, text in enumerate(HOSTILE):
            path = tmp_path / f"{number}.py"
            sent = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            await editor.open(path, sent)
            await editor.hover(path, 1, 1)
            await editor.actions(path, 1)
        name = tmp_path / os.fsdecode(b"Dockerfile.\xc3\xa9 %")
        assert await editor.open(name, "FROM nvidia/cuda:latest\n", "dockerfile")

    with_editor(use)

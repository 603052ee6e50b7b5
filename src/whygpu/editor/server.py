"""The server: lints documents as they change, and answers questions about what was found."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TypeVar

from lsprotocol import types
from pygls.io_ import StdoutWriter, run_async
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from whygpu import api
from whygpu.editor.checked import FIX_ALL, Checked
from whygpu.editor.positions import Text
from whygpu.errors import UsageError
from whygpu.model.code_finding import FileProblem, TextReport
from whygpu.version import VERSION

T = TypeVar("T")

PAUSE = 0.3
"""Seconds without typing after which a document is linted."""


def serve() -> int:
    """Serve until the editor says exit or closes the stream; returns the exit code."""
    server = LanguageServer("whygpu", VERSION)
    _add_features(server, Documents(server))
    # Nothing but messages may get onto standard output, whatever prints.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    server.protocol.set_writer(StdoutWriter(output))
    try:
        if sys.platform == "win32":
            server.start_io(stdout=output)
        else:
            asyncio.run(_serve(server))
    except SystemExit as stop:
        if type(stop) is not SystemExit:
            # A signal; this class is that of the command line.
            raise
        return int(stop.code or 0)
    return 0


async def _serve(server: LanguageServer) -> None:
    """As pygls does it, without its thread for standard input, which no signal could end."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await run_async(Event(), reader, server.protocol)


class Documents:
    """What is known of the open documents."""

    def __init__(self, server: LanguageServer) -> None:
        self._server = server
        self._checked: dict[str, Checked] = {}
        self._latest: dict[str, object] = {}
        # One at a time: the newest text is what counts, not how many are linted at once.
        self._thread = ThreadPoolExecutor(1, "lint")

    async def check(self, uri: str, *, after: float = 0.0) -> None:
        """Lint a document and publish what was found, unless it changes in the meantime."""
        mine = self._latest[uri] = object()
        await asyncio.sleep(after)
        if self._latest.get(uri) is not mine:
            return
        checked = await self._lint(uri)
        if checked is None or self._latest.get(uri) is not mine:
            return
        self._checked[uri] = checked
        self._publish(uri, checked.version, checked.diagnostics())

    async def check_all(self) -> None:
        """After one was saved: others may name it."""
        for uri in list(self._latest):
            await self.check(uri)

    def close(self, uri: str) -> None:
        self._latest.pop(uri, None)
        self._checked.pop(uri, None)
        self._publish(uri, None, [])

    async def current(self, uri: str) -> Checked | None:
        """What was found in the document as it is now."""
        found = self._checked.get(uri)
        if found is None or found.version != self._server.workspace.get_text_document(uri).version:
            await self.check(uri)
        return self._checked.get(uri)

    async def fix_all(self, checked: Checked) -> types.CodeAction | None:
        text = self._server.workspace.get_text_document(checked.uri).source
        return await self._in_thread(checked.fix_all, text)

    async def _lint(self, uri: str) -> Checked | None:
        path = to_fs_path(uri) if uri.startswith("file:") else None
        if path is None:
            # A text that was never saved has no neighbours and no settings.
            return None
        document = self._server.workspace.get_text_document(uri)
        try:
            text, version = document.source, document.version
        except OSError:
            # It is not open, and there is no such file.
            return None
        is_python = document.language_id == "python"
        report = await self._in_thread(_linted, path, text, self._open_texts(), is_python)
        codec = self._server.workspace.position_codec
        return Checked(uri, path, version, Text(text, codec), report)

    def _open_texts(self) -> dict[str, str]:
        documents = self._server.workspace.text_documents
        return {document.path: document.source for document in documents.values() if document.path}

    async def _in_thread(self, function: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    def _publish(self, uri: str, version: int | None, found: list[types.Diagnostic]) -> None:
        params = types.PublishDiagnosticsParams(uri, found, version)
        self._server.text_document_publish_diagnostics(params)


def _linted(path: str, text: str, open_texts: dict[str, str], is_python: bool) -> TextReport:
    try:
        return api.lint_text(path, text, open_texts, is_python=is_python)
    except UsageError as error:
        return TextReport(problems=(FileProblem(path, 1, "unreadable", str(error)),))


def _add_features(server: LanguageServer, documents: Documents) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def opened(params: types.DidOpenTextDocumentParams) -> None:
        await documents.check(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: types.DidChangeTextDocumentParams) -> None:
        await documents.check(params.text_document.uri, after=PAUSE)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def saved(params: types.DidSaveTextDocumentParams) -> None:
        await documents.check_all()

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        documents.close(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        checked = await documents.current(params.text_document.uri)
        return None if checked is None else checked.hover(params.position)

    kinds = [types.CodeActionKind.QuickFix, types.CodeActionKind.SourceFixAll]

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=kinds)
    )
    async def actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        checked = await documents.current(params.text_document.uri)
        if checked is None:
            return []
        found = list(checked.quick_fixes(params.range)) if _wants(params, kinds[0]) else []
        fix_all = await documents.fix_all(checked) if _wants(params, FIX_ALL) else None
        return found if fix_all is None else [*found, fix_all]


def _wants(params: types.CodeActionParams, kind: str) -> bool:
    """Whether the client asks for this kind, by its own name or that of a broader one."""
    only = params.context.only
    return only is None or any(kind == each or kind.startswith(f"{each}.") for each in only)

"""A real client of the protocol, connected to `whygpu lsp` over the streams of a process."""

from __future__ import annotations

import asyncio
import pathlib
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from tests.patience import PATIENCE
from whygpu.host.own_process import verb_command

pytest.importorskip("pygls", reason="the extra lsp is not installed")

from lsprotocol import types as types
from pygls.lsp.client import LanguageClient

T = TypeVar("T")


class Editor:
    """An editor with some open documents."""

    def __init__(self) -> None:
        self.client = LanguageClient("test", "1")
        self._found: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()
        self._versions: dict[str, int] = {}

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)  # type: ignore[untyped-decorator]
        def found(params: types.PublishDiagnosticsParams) -> None:
            self._found.put_nowait(params)

    async def start(self, *encodings: str) -> types.InitializeResult:
        command, *words = verb_command(("lsp", "--stdio"))
        await self.client.start_io(command, *words)
        general = types.GeneralClientCapabilities(position_encodings=list(encodings) or None)
        result = await self.client.initialize_async(
            types.InitializeParams(types.ClientCapabilities(general=general))
        )
        self.client.initialized(types.InitializedParams())
        return result

    async def open(
        self, path: pathlib.Path, text: str, language: str = "python"
    ) -> list[types.Diagnostic]:
        item = types.TextDocumentItem(path.as_uri(), language, 1, text)
        self._versions[path.as_uri()] = 1
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return await self.diagnostics(path)

    def change(self, path: pathlib.Path, text: str) -> None:
        """Type: the whole document is replaced."""
        self._versions[path.as_uri()] += 1
        document = types.VersionedTextDocumentIdentifier(
            self._versions[path.as_uri()], path.as_uri()
        )
        change = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))

    async def diagnostics(self, path: pathlib.Path) -> list[types.Diagnostic]:
        """What is published next for the newest version of the document."""
        while True:
            params = await self._found.get()
            newest = params.version in (None, self._versions[path.as_uri()])
            if params.uri == path.as_uri() and newest:
                return list(params.diagnostics)

    async def hover(self, path: pathlib.Path, line: int, character: int) -> str:
        where = types.TextDocumentIdentifier(path.as_uri())
        params = types.HoverParams(where, types.Position(line, character))
        found = await self.client.text_document_hover_async(params)
        if found is None:
            return ""
        assert isinstance(found.contents, types.MarkupContent)
        return found.contents.value

    async def actions(
        self, path: pathlib.Path, line: int, only: str | None = None
    ) -> list[types.CodeAction]:
        here = types.Range(types.Position(line, 0), types.Position(line, 0))
        context = types.CodeActionContext([], [only] if only else None)
        params = types.CodeActionParams(types.TextDocumentIdentifier(path.as_uri()), here, context)
        found = await self.client.text_document_code_action_async(params)
        return [action for action in found or () if isinstance(action, types.CodeAction)]

    async def stop(self) -> None:
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await self.client.stop()  # type: ignore[no-untyped-call]


def with_editor(use: Callable[[Editor], Awaitable[T]], *encodings: str) -> T:
    async def session() -> T:
        editor = Editor()
        await editor.start(*encodings)
        try:
            return await asyncio.wait_for(use(editor), PATIENCE)
        finally:
            await editor.stop()

    return asyncio.run(session())


def edited(text: str, action: types.CodeAction) -> str:
    """The text after the edits of an action, as an editor that counts in UTF-16 makes them."""
    assert action.edit
    assert action.edit.document_changes
    (change,) = action.edit.document_changes
    assert isinstance(change, types.TextDocumentEdit)
    lines = text.splitlines(keepends=True)
    starts = [sum(map(len, lines[:number])) for number in range(len(lines) + 1)]

    def offset(position: types.Position) -> int:
        line = lines[position.line] if position.line < len(lines) else ""
        before = line.encode("utf-16-le")[: 2 * position.character].decode("utf-16-le")
        return starts[position.line] + len(before)

    for edit in sorted(change.edits, key=lambda e: offset(e.range.start), reverse=True):
        assert isinstance(edit, types.TextEdit)
        start, end = offset(edit.range.start), offset(edit.range.end)
        text = text[:start] + edit.new_text + text[end:]
    return text

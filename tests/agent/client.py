"""The SDK's own client, connected to `whygpu mcp` over the streams of a real process."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import anyio
import pytest

from tests.patience import PATIENCE
from whygpu.host.own_process import verb_command

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from mcp import Client as Client
from mcp import StdioServerParameters
from mcp.types import TextContent as TextContent

T = TypeVar("T")


def with_client(
    ask: Callable[[Client], Awaitable[T]],
    *options: str,
    environ: Mapping[str, str] | None = None,
) -> T:
    """Start a server, let `ask` talk to it, and end it."""
    command, *words = verb_command(("mcp", *options))
    assert command == sys.executable
    server = StdioServerParameters(command=command, args=words, env=dict(environ or {}))

    async def talk() -> T:
        with anyio.fail_after(PATIENCE):
            async with Client(server) as client:
                return await ask(client)

    return anyio.run(talk)


async def answer(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """What the tool answers. The client checks it against the schema of the tool."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    structured: dict[str, Any] = result.structured_content
    return structured


async def failure(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.content
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text

"""The server: answers the requests of an agent on standard input and output."""

from __future__ import annotations

import json
from typing import Any, cast

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from whygpu import api
from whygpu.agent import guides, rules
from whygpu.agent.calls import ToolFailure, call_of
from whygpu.agent.input_lines import can_wait_for, lines_of
from whygpu.agent.tools import TOOLS, Tool
from whygpu.agent.verb_process import TooLate, TooLong, VerbEnd, VerbRunner
from whygpu.errors import EXIT_USAGE
from whygpu.model.outside_text import excerpt, printable
from whygpu.version import VERSION

_ANSWERS = (0, 1, 4)
"""Exit codes of a verb that has an answer."""
_LONGEST_MESSAGE = 2000


def serve(*, may_change: bool) -> None:
    """Serve until standard input ends. `may_change`: whether `fix` may apply what it has proven."""
    anyio.run(_serve, may_change)


async def _serve(may_change: bool) -> None:
    server = _Handlers(may_change).server()
    # The SDK does nothing with this object but go through its lines.
    lines = cast("anyio.AsyncFile[str]", lines_of(0)) if can_wait_for(0) else None
    async with stdio_server(lines) as (requests, answers):
        await server.run(requests, answers, server.create_initialization_options())


class _Handlers:
    """One method for each kind of request."""

    def __init__(self, may_change: bool) -> None:
        self._may_change = may_change
        self._runner = VerbRunner()
        self._tools = {tool.name: tool for tool in TOOLS}

    def server(self) -> Server[Any]:
        return Server(
            "whygpu",
            version=VERSION,
            title="whygpu",
            instructions=guides.INSTRUCTIONS,
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_resources=self.list_resources,
            on_list_resource_templates=self.list_resource_templates,
            on_read_resource=self.read_resource,
            on_list_prompts=self.list_prompts,
            on_get_prompt=self.get_prompt,
        )

    async def list_tools(self, context: Any, params: Any) -> types.ListToolsResult:
        read_only = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
        rule = types.Tool(
            name=rules.NAME,
            title=rules.TITLE,
            description=rules.DESCRIPTION,
            input_schema=rules.INPUT_SCHEMA,
            output_schema=rules.OUTPUT_SCHEMA,
            annotations=read_only,
        )
        return types.ListToolsResult(tools=[*map(self._described, TOOLS), rule])

    def _described(self, tool: Tool) -> types.Tool:
        changes = tool.changes and self._may_change
        return types.Tool(
            name=tool.name,
            title=tool.title,
            description=tool.description,
            input_schema=tool.json_schema,
            output_schema=tool.shape.json_schema(),
            annotations=types.ToolAnnotations(
                read_only_hint=not changes, destructive_hint=changes, open_world_hint=tool.changes
            ),
        )

    async def call_tool(
        self, context: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        try:
            answer = await self._answer(params.name, params.arguments or {})
        except ToolFailure as failure:
            return types.CallToolResult(content=[_text(str(failure))], is_error=True)
        return types.CallToolResult(content=[_text(json.dumps(answer))], structured_content=answer)

    async def _answer(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if name == rules.NAME:
            return await anyio.to_thread.run_sync(rules.answer, arguments)
        tool = self._tools.get(name)
        if tool is None:
            names = ", ".join((*self._tools, rules.NAME))
            raise ToolFailure(f"there is no tool {excerpt(repr(name), 80)}; there are {names}")
        call = call_of(tool, arguments, may_change=self._may_change)
        try:
            end = await self._runner.run(call.words, call.given, limit=tool.limit)
        except TooLate:
            raise ToolFailure(
                f"{name} was stopped: it had no answer after {tool.limit:.0f} seconds"
            ) from None
        except TooLong:
            raise ToolFailure(f"{name} was stopped: its answer is too long; ask for less") from None
        if end.exit_code not in _ANSWERS:
            raise ToolFailure(_failure(name, end))
        return tool.shape.cut(json.loads(end.output))

    async def list_resources(self, context: Any, params: Any) -> types.ListResourcesResult:
        causes = await anyio.to_thread.run_sync(api.rules)
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    name=f"{cause.code} {cause.slug}",
                    uri=f"{guides.PAGE_ADDRESS}{cause.code}",
                    description=cause.title,
                    mime_type="text/markdown",
                )
                for cause in causes
            ]
        )

    async def list_resource_templates(
        self, context: Any, params: Any
    ) -> types.ListResourceTemplatesResult:
        page = types.ResourceTemplate(
            name="cause",
            title="The page of a cause",
            uri_template=f"{guides.PAGE_ADDRESS}{{code}}",
            description="why it happens, what it looks like, how to fix it",
            mime_type="text/markdown",
        )
        return types.ListResourceTemplatesResult(resource_templates=[page])

    async def read_resource(
        self, context: Any, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        address = str(params.uri)
        page = await anyio.to_thread.run_sync(guides.page_of, address)
        if page is None:
            raise MCPError(
                types.INVALID_PARAMS,
                f"there is no page {excerpt(address, 80)}; a page is {guides.PAGE_ADDRESS}WG203",
            )
        content = types.TextResourceContents(uri=address, mime_type="text/markdown", text=page)
        return types.ReadResourceResult(contents=[content])

    async def list_prompts(self, context: Any, params: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(
            prompts=[
                types.Prompt(
                    name=prompt.name,
                    title=prompt.title,
                    description=prompt.description,
                    arguments=[
                        types.PromptArgument(name=name, description=text, required=False)
                        for name, text in prompt.arguments.items()
                    ],
                )
                for prompt in guides.PROMPTS
            ]
        )

    async def get_prompt(
        self, context: Any, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        for prompt in guides.PROMPTS:
            if prompt.name == params.name:
                text = _text(prompt.written(params.arguments or {}))
                message = types.PromptMessage(role="user", content=text)
                return types.GetPromptResult(description=prompt.description, messages=[message])
        names = ", ".join(prompt.name for prompt in guides.PROMPTS)
        raise MCPError(
            types.INVALID_PARAMS,
            f"there is no prompt {excerpt(params.name, 80)}; there are {names}",
        )


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def _failure(name: str, end: VerbEnd) -> str:
    message = printable(end.message.strip()).removeprefix("whygpu: ")[-_LONGEST_MESSAGE:]
    if end.exit_code == EXIT_USAGE:
        return message
    return f"{name} failed with exit code {end.exit_code}: {message}"

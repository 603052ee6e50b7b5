"""Each tool, page and prompt, asked as an agent asks; wrong arguments get an answer that helps."""

from __future__ import annotations

import json
import pathlib
from typing import Any

from jsonschema import Draft202012Validator

from tests.agent.client import Client, TextContent, answer, failure, with_client
from tests.cases import each
from whygpu.agent.answers import MOST_EVIDENCE, Shape
from whygpu.agent.calls import call_of
from whygpu.agent.tools import TOOLS

ROOT = pathlib.Path(__file__).parent.parent.parent
LOG = ROOT / "tests/logs/h200-torch-hidden.log"
MODEL = "import torch\n\n\ndef model():\n    return torch.nn.Linear(4, 4)\n"
SOURCE = (
    "import torch\nimport os\n\ntorch.zeros(1).cuda()\nos.environ['CUDA_VISIBLE_DEVICES'] = '1'\n"
)


def test_each_tool_answers_with_codes_and_evidence(tmp_path: pathlib.Path) -> None:
    saved = ROOT / "docs/examples/tensorflow-2.21.json"
    (tmp_path / "net.py").write_text(MODEL)

    async def ask(client: Client) -> None:
        checked = await answer(client, "check", snapshot=str(saved))
        cause = checked["root_causes"][0]
        assert cause["code"] == "WG203"
        assert "libcusolver" in str(cause["evidence"])
        assert any(remedy["command"] for remedy in cause["remedies"])
        assert checked["verdict"] == "cpu"
        assert "driver" in checked["examined"]

        by_path = await answer(client, "explain", path=str(LOG))
        by_text = await answer(client, "explain", text=LOG.read_text())
        for explained in (by_path, by_text):
            assert explained["root_causes"][0]["code"] == "WG401"
            assert "No CUDA GPUs are available" in str(explained["root_causes"][0]["evidence"])

        linted = await answer(client, "lint", text=SOURCE)
        assert linted["findings"][0]["line"] == 5
        (tmp_path / "train.py").write_text(SOURCE)
        assert (await answer(client, "lint", paths=[str(tmp_path)]))["files"] == 2
        code = linted["findings"][0]["code"]
        assert not (await answer(client, "lint", text=SOURCE, ignore=[code]))["findings"]

        planned = await answer(
            client, "plan", frameworks=["torch"], python="3.12", driver="580.65.06", gpu="RTX 4090"
        )
        assert "torch" in {package["name"] for package in planned["plan"]["packages"]}
        assert planned["not_shown"]["candidates"] > 0
        (tmp_path / "requirements.txt").write_text("tensorflow==1.15\n")
        judged = await answer(
            client, "plan_file", file=str(tmp_path / "requirements.txt"), python="3.12"
        )
        assert judged["requirements"]

        held = await answer(client, "memory", snapshot=str(saved))
        assert held["gpus"]["known"]

        steps = await answer(client, "fix")
        assert steps["applied"] is None
        assert not steps["proven"]

        (page,) = (await answer(client, "rule", name="WG203"))["causes"]
        assert "## Fix" in page["page"]
        several = (await answer(client, "rule", name="cudnn"))["causes"]
        assert len(several) > 1
        assert {row["page"] for row in several} == {None}

    with_client(ask)


def test_wrong_arguments_are_named_and_nothing_runs(tmp_path: pathlib.Path) -> None:
    missing = str(tmp_path / "missing")

    async def ask(client: Client) -> None:
        assert "no argument 'pyton'" in await failure(client, "check", pyton="3")
        assert "expected boolean, received 'yes'" in await failure(client, "check", probe="yes")
        assert "there is no such file" in await failure(client, "check", python=missing)
        assert "path or text" in await failure(client, "explain")
        assert "path or text" in await failure(client, "explain", path="a.log", text="a")
        assert "cannot read" in await failure(client, "explain", path=missing)
        assert "no path" in await failure(client, "explain", path="a\0b")
        assert "save it in a file" in await failure(client, "explain", text="x" * 4_000_001)
        assert "did you mean tensorflow" in await failure(client, "plan", frameworks=["tensorflo"])
        assert "no cause 'xyzzy'" in await failure(client, "rule", name="xyzzy")
        assert "one argument" in await failure(client, "rule")
        assert "expected a text" in await failure(client, "explain", path="")
        assert (await failure(client, "plan_file")).endswith("plan_file: give file")
        # Null is how many agents leave an argument out.
        assert "cannot read" in await failure(client, "explain", path=missing, text=None)
        assert "there is no tool 'run'" in await failure(client, "run", command="ls")
        # Words that look like options are paths and names.
        assert "./-" in await failure(client, "lint", paths=["-"])
        assert "--fix" in await failure(client, "lint", paths=["--fix"])
        assert "--version" in await failure(client, "explain", path="--version")

    with_client(ask)


def test_fix_applies_only_if_the_server_may() -> None:
    async def ask(client: Client) -> str:
        return await failure(client, "fix", apply=True)

    assert "--allow-fix" in with_client(ask)
    tool = next(tool for tool in TOOLS if tool.name == "fix")
    assert call_of(tool, {}, may_change=False).words == ("fix", "--json", "--dry-run")
    assert call_of(tool, {"prove": True}, may_change=False).words == ("fix", "--json")
    assert call_of(tool, {"apply": True}, may_change=True).words == ("fix", "--json", "--apply")

    async def describe(client: Client) -> dict[str, Any]:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        return {name: tool.annotations.read_only_hint for name, tool in tools.items()}  # type: ignore[union-attr]

    assert with_client(describe)["fix"] is True
    allowed = with_client(describe, "--allow-fix")
    assert [name for name, read_only in allowed.items() if not read_only] == ["fix"]


def test_pages_and_prompts() -> None:
    async def ask(client: Client) -> None:
        listed = (await client.list_resources()).resources
        assert len(listed) > 100
        (content,) = (await client.read_resource(listed[0].uri)).contents
        assert listed[0].name.split()[0] in content.text  # type: ignore[union-attr]
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "whygpu://causes/{code}"
        for prompt in (await client.list_prompts()).prompts:
            for given in ({}, {argument.name: "x{y}" for argument in prompt.arguments or ()}):
                (message,) = (await client.get_prompt(prompt.name, given)).messages
                assert isinstance(message.content, TextContent)
                assert message.content.text.count("x{y}") == len(given)
                # A prompt names only tools that exist.
                named = set(message.content.text.split("`")[1::2])
                assert named <= {tool.name for tool in TOOLS} | {"here"}

    with_client(ask)


@each("tool", TOOLS, ids=lambda tool: tool.name)
def test_schemas_are_schemas(tool: Any) -> None:
    Draft202012Validator.check_schema(tool.json_schema)
    Draft202012Validator.check_schema(tool.shape.json_schema())
    assert set(tool.one_of) <= tool.arguments.keys()


def test_long_lists_are_cut_and_counted() -> None:
    evidence = [{"kind": "log", "where": "x", "text": str(i), "line": i} for i in range(9)]
    shape = Shape("explain", ("root_causes", "unexplained"), {"unexplained": 2})
    cut = shape.cut({"root_causes": [{"evidence": evidence}], "unexplained": [1, 2, 3]})
    assert cut["unexplained"] == [1, 2]
    assert cut["not_shown"] == {"unexplained": 1, "evidence": 9 - MOST_EVIDENCE}
    assert json.dumps(cut).count('"kind"') == MOST_EVIDENCE

"""Modules say what they are for, public names exist, and generated files are current."""

from __future__ import annotations

import ast
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

import whygpu
from tests.cases import each
from tools import docs, schemas

SOURCE = pathlib.Path(whygpu.__path__[0])


def test_every_module_says_what_it_is_for() -> None:
    # Parsing all of the source would take a second.
    docstring = re.compile(r'(?:#[^\n]*\n|\n)*r?"""[^"\s]')
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert docstring.match(text), f"{path} does not say what it is for"


def test_no_text_is_taken_for_a_number_that_int_refuses() -> None:
    """str.isdigit() is true for "²", and int("²") raises."""
    for path in sorted(SOURCE.rglob("*.py")):
        assert ".isdigit()" not in path.read_text(encoding="utf-8"), path


PAST_THE_EXIT = {"print", "Redactor", "sys.stdout.write", "sys.stderr.write", "os.replace"}


def test_verbs_print_and_write_through_the_one_exit() -> None:
    """cli/output.py redacts and makes safe; what does not pass it does neither. Renderers return
    text."""
    for path in sorted((*(SOURCE / "cli").glob("*.py"), *(SOURCE / "render").rglob("*.py"))):
        # start.py reports that even the modules for the report did not import.
        if path.name in ("output.py", "start.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            assert called not in PAST_THE_EXIT, f"{path}:{node.lineno}"
            writes = called == "open" and "'w" in ast.unparse(node)
            assert not writes, f"{path}:{node.lineno}"


PATCHED = {
    ("api/test_release_table.py", "shipped"),
    ("cli/test_history.py", "_this_machine"),
    ("cli/test_main.py", "made-up"),
    ("cli/test_memory.py", "made-up"),
    ("cli/test_output.py", "run"),
    ("cli/test_plan.py", "whygpu.api.release_table.update_releases"),
    ("fixing/test_applying.py", "exchange"),
    ("fleet/test_gathering.py", "whygpu.fleet.ray_nodes.subprocess.Popen"),
    ("fleet/test_logs.py", "whygpu.fleet.job_logs.explain"),
    ("fleet/test_report.py", "whygpu.fleet.judging.cores"),
    ("guard/test_splitting.py", "free_on_gpu"),
    ("linter/test_deployment.py", "find_spec"),
    ("planner/test_remedies.py", "versions_of"),
    ("real/test_probes.py", "run_next"),
}
"""The functions of whygpu that a test replaces. The list should only get shorter."""


def test_tests_replace_no_other_function_of_whygpu() -> None:
    """Limits and tables, whose names are in capitals, may be replaced."""
    folder = pathlib.Path(__file__).parent
    found = {
        (str(path.relative_to(folder)), name)
        for path in folder.rglob("*.py")
        if "monkeypatch" in (text := path.read_text(encoding="utf-8"))
        for name in replaced(ast.parse(text))
        if not name.rpartition(".")[2].isupper()
    }
    assert found == PATCHED


def replaced(tree: ast.Module) -> Iterator[str]:
    """The names in whygpu's modules that a test module sets."""
    ours = {"whygpu"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("whygpu"):
            ours |= {alias.asname or alias.name for alias in node.names}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr in ("setattr", "setitem", "delattr") and node.args:
            where, *rest = node.args
            if isinstance(where, ast.Constant) and str(where.value).startswith("whygpu."):
                yield str(where.value)
            elif ast.unparse(where).split(".")[0] in ours and isinstance(rest[0], ast.Constant):
                yield str(rest[0].value)


@each("name", whygpu.__all__)
def test_public_names_exist(name: str) -> None:
    assert getattr(whygpu, name) is not None


def test_importing_whygpu_imports_nothing_heavy() -> None:
    code = "import sys; import whygpu.cli.main; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {
        "dataclasses",
        "rich",
        "pynvml",
        "packaging",
        "json",
        "subprocess",
        "whygpu.diagnosis.engine",
    }
    assert heavy.isdisjoint(loaded)


def test_no_cause_writes_shell_text_around_a_value() -> None:
    """A remedy's action is data, and the text of a script is a constant (see model/remedy.py)."""
    for path in (*(SOURCE / "causes").rglob("*.py"), *(SOURCE / "tables").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            where = f"{path}:{node.lineno}"
            if node.func.id == "Remedy" and len(node.args) > 1:
                assert not any(map(is_text, branches(node.args[1]))), f"{where}: it is a str"
            elif node.func.id in ("command_line", "shell_script"):
                assert node.args, where
                for part in node.args:
                    assert all(map(is_constant_or_argument, branches(part))), (
                        f"{where}: text of a command that is no constant"
                    )
            else:
                # They are what the two functions make, with their rules kept.
                assert node.func.id not in ("Command", "Script"), f"{where}: use command_line()"


def branches(node: ast.expr) -> list[ast.expr]:
    return [*branches(node.body), *branches(node.orelse)] if isinstance(node, ast.IfExp) else [node]


def is_text(node: ast.expr) -> bool:
    constant = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return constant or isinstance(node, ast.JoinedStr | ast.BinOp)


def is_constant_or_argument(node: ast.expr) -> bool:
    if isinstance(node, ast.Name):
        return node.id == "PYTHON"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in ("a_path", "a_name", "a_number", "a_requirement")
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def test_the_documentation_of_causes_is_current() -> None:
    for name, text in docs.pages().items():
        assert (docs.FOLDER / name).read_text(encoding="utf-8") == text, "run `make docs`"
    extra = {path.name for path in docs.FOLDER.glob("*.md")} - docs.pages().keys()
    assert not extra, "run `make docs`"
    assert docs.LEDGER.read_text(encoding="utf-8") == docs.ledger(), "run `make docs`"


def test_the_schemas_are_current() -> None:
    for name, text in schemas.files().items():
        assert (schemas.FOLDER / name).read_text(encoding="utf-8") == text, "run `make docs`"

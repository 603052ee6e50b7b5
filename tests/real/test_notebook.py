"""whygpu in a real notebook: outputs, magics, and exceptions that are explained and not hidden."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from typing import Any

import pytest

pytest.importorskip("ipykernel", reason="no Jupyter: pip install -e '.[pages]'")
nbformat = pytest.importorskip("nbformat", reason="no Jupyter: pip install -e '.[pages]'")
nbclient = pytest.importorskip("nbclient", reason="no Jupyter: pip install -e '.[pages]'")

CELLS = {
    "check": "import whygpu\nwhygpu.check(probe=False)",
    "load": "%load_ext whygpu",
    "magic": "%whygpu check --no-probe",
    "json": "%whygpu rule WG203 --json",
    "mistake": "%whygpu chekc",
    "help": "%whygpu check --help",
    "run": "%%whygpu run --device cpu\nimport sys\nprint('from', __file__)\nsys.exit(3)",
    "explain": "%%whygpu explain\nCould not load dynamic library 'libcudnn.so.8'; dlerror: "
    "libcudnn.so.8: cannot open shared object file: No such file or directory",
    "lint": "%%whygpu lint\nimport tensorflow as tf\ntf.Session()",
    "wrong": "%%whygpu check\n1",
    "refused": "%%whygpu run --device nosuch\n1",
    "error": "raise RuntimeError('CUDA error: no kernel image is available for execution on the "
    "device')",
    "unrelated": "{}['no such key']",
    "after": "1 + 1",
    "server": "%whygpu mcp",
    "nothing-to-explain": "%whygpu explain",
    "other-program": "%%whygpu run -- python other.py\nprint('not run')",
    "unload": "%unload_ext whygpu",
    "unexplained": "raise RuntimeError('CUDA error: no kernel image is available for execution on "
    "the device')",
}


@pytest.fixture(scope="session", autouse=True)
def machine_abilities() -> None:
    """No framework runs here."""


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The notebook with its outputs, from a kernel of this environment."""
    folder = tmp_path_factory.mktemp("jupyter")
    with pytest.MonkeyPatch.context() as patch:
        installing = ["-m", "ipykernel", "install", "--prefix", str(folder), "--name", "whygpu"]
        subprocess.run([sys.executable, *installing], check=True, capture_output=True)
        patch.setenv("JUPYTER_PATH", str(folder / "share" / "jupyter"))
        # Another interpreter is first on PATH, as it often is for a kernel.
        patch.setenv("PATH", "/usr/bin:/bin")
        patch.delenv("VIRTUAL_ENV", raising=False)
        # With this variable, a kernel does not pass on what other processes print.
        patch.delenv("PYTEST_CURRENT_TEST", raising=False)
        cells = [nbformat.v4.new_code_cell(text) for text in CELLS.values()]
        book = nbformat.v4.new_notebook(cells=cells)
        client = nbclient.NotebookClient(
            book, allow_errors=True, kernel_name="whygpu", timeout=120, resources={}
        )
        client.execute(cwd=str(folder))
    return book


def outputs(executed: Any, name: str) -> list[Any]:
    found: list[Any] = executed.cells[list(CELLS).index(name)].outputs
    return found


def shown(executed: Any, name: str) -> str:
    """The HTML below a cell."""
    (made,) = [each["data"]["text/html"] for each in outputs(executed, name) if "data" in each]
    return str(made)


def printed(executed: Any, name: str) -> str:
    return "".join(each["text"] for each in outputs(executed, name) if "text" in each)


def test_a_report_shows_itself_and_is_about_the_kernel(executed: Any) -> None:
    html = shown(executed, "check")
    assert html.startswith('<div class="whygpu">')
    assert "<script" not in html
    assert pathlib.Path(sys.prefix).name in html
    (plain,) = [each["data"]["text/plain"] for each in outputs(executed, "check")]
    assert plain.startswith("<Report: ")


def test_a_magic_shows_the_same_without_a_number(executed: Any) -> None:
    (made,) = outputs(executed, "magic")
    assert made["output_type"] == "display_data"
    assert pathlib.Path(sys.prefix).name in shown(executed, "magic")


def test_words_for_the_command_line_mean_the_same(executed: Any) -> None:
    assert '"code": "WG203"' in printed(executed, "json")
    assert "did you mean `whygpu check`?" in printed(executed, "mistake")
    assert printed(executed, "help").startswith("usage: whygpu check")


def test_a_cell_runs_as_a_program_with_its_output_and_a_report(executed: Any) -> None:
    assert "cell.py" in printed(executed, "run")
    assert "exit code 3" in shown(executed, "run")


def test_a_cell_is_explained_or_checked(executed: Any) -> None:
    assert "WG202 cudnn-missing" in shown(executed, "explain")
    assert "WG704" in shown(executed, "lint")
    assert "a cell can be given to run, explain, lint" in printed(executed, "wrong")
    assert "--device: 'nosuch' names no GPU" in printed(executed, "refused")


def test_an_explanation_comes_below_the_traceback(executed: Any) -> None:
    first, *others = outputs(executed, "error")
    assert (first["output_type"], first["ename"]) == ("error", "RuntimeError")
    assert len(others) == 1
    assert "compute-capability-too" in shown(executed, "error")


def test_an_error_that_is_not_the_gpus_stays_as_it_is(executed: Any) -> None:
    (only,) = outputs(executed, "unrelated")
    assert only["ename"] == "KeyError"
    (two,) = outputs(executed, "after")
    assert two["data"]["text/plain"] == "2"


def test_what_a_cell_cannot_be_is_told(executed: Any) -> None:
    assert "start it in a terminal: whygpu mcp" in printed(executed, "server")
    assert "%%whygpu explain" in printed(executed, "nothing-to-explain")
    assert "%%whygpu run runs the cell" in printed(executed, "other-program")


def test_after_it_is_unloaded_exceptions_are_not_explained(executed: Any) -> None:
    assert [each["output_type"] for each in outputs(executed, "unexplained")] == ["error"]

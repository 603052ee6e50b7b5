"""The table of cuInit's codes is sound, and has a row for each that the probe can name."""

from __future__ import annotations

import ast
import pathlib

import whygpu.probes.scripts
from tests.cases import each
from whygpu.tables.cuda_errors import CUDA_ERRORS, CudaError, cuda_error

PROBE = pathlib.Path(whygpu.probes.scripts.__path__[0]) / "cuda.py"


@each("row", CUDA_ERRORS, ids=lambda row: str(row.code))
def test_a_row_is_complete(row: CudaError) -> None:
    assert row.code > 0
    assert row.name.startswith("CUDA_ERROR_")
    assert row.source.startswith("https://")
    assert row.advice.endswith(".")
    assert not row.meaning.endswith(".")


def test_codes_are_in_order_and_unique() -> None:
    codes = [row.code for row in CUDA_ERRORS]
    assert codes == sorted(set(codes))


def test_the_probe_and_the_table_agree_on_names() -> None:
    """The probe runs inside the target and cannot import the table, so it has names of its own."""
    names: dict[int, str] = next(
        ast.literal_eval(node.value)
        for node in ast.parse(PROBE.read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ERROR_NAMES"
    )
    names.pop(0)
    assert names
    for code, name in names.items():
        row = cuda_error(code)
        assert row is not None, f"no row for {code} {name}"
        assert row.name == name


def test_a_code_without_a_row_is_none() -> None:
    assert cuda_error(12345) is None

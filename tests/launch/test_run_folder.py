"""The folder of a run: what its processes do with it, whoever and wherever they are."""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each
from tests.launch.programs import PYTHON, environment, run
from whygpu.launch.launch_plan import BOOTSTRAP
from whygpu.launch.run_folder import run_folder

sys.path.insert(0, BOOTSTRAP)
try:
    abandoned = import_module("whygpu_bootstrap.abandoned_folder")
    plain_json = import_module("whygpu_bootstrap.plain_json")
finally:
    sys.path.remove(BOOTSTRAP)


def test_a_live_folder_is_not_abandoned_and_a_dead_one_is() -> None:
    with run_folder() as folder:
        abandoned.remove_if_abandoned(folder)
        assert os.path.isdir(folder)
        lock = Path(folder, "lock")
        copy = Path(folder, "copy")
        copy.mkdir()
        Path(copy, "lock").write_bytes(b"another boot")
        abandoned.remove_if_abandoned(str(copy))
        assert copy.is_dir(), "another machine's"
        Path(copy, "lock").unlink()
        abandoned.remove_if_abandoned(str(copy))
        assert copy.is_dir(), "without a lock"
        Path(copy, "lock").write_bytes(lock.read_bytes())
        abandoned.remove_if_abandoned(str(copy))
        assert not copy.exists()
    assert not os.path.exists(folder)


@pytest.mark.slow
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)
def test_settings_are_read_as_json_reads_them(value: object) -> None:
    text = json.dumps(value)
    assert plain_json.loads(text) == json.loads(text)
    assert plain_json.loads(f" {json.dumps(value, indent=1)}\n") == json.loads(text)


@each(
    "text",
    [
        *("", "{", "[1,]", "{'a': 1}", '{"a" 1}', "1 2", '"\\x"', '"\\u12"', '"a', "[" * 1000),
        *("NaN", "nul", "-", "--1", "1.2.3", "+1", '{"a": 1,}', "{1: 2}", "__import__('os')"),
    ],
)
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        plain_json.loads(text)


def test_settings_that_are_broken_are_noted_and_the_program_runs(tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    (tmp_path / "reports").mkdir()
    marker = tmp_path / "executed"
    settings.write_text(f"open({str(marker)!r}, 'w')")
    env = environment(PYTHONPATH=BOOTSTRAP, WHYGPU_BOOTSTRAP_SETTINGS=str(settings))
    done = run([PYTHON, "-c", "print(7)"], env=env)
    assert (done.returncode, done.stdout, done.stderr) == (0, "7\n", "")
    (record,) = (tmp_path / "reports").iterdir()
    assert "no value at character 0" in record.read_text()
    assert not marker.exists()

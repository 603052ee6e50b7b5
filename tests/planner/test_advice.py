"""Commands that install the plan, and what to know about it."""

from __future__ import annotations

import pathlib
import re

import pytest

import whygpu
from tests.cases import each
from tests.planner.small_table import GTX_1080, TABLE, machine, release, table_of, tensorflow
from whygpu.model.commands import shell_texts
from whygpu.model.install_plan import Advice
from whygpu.model.machine_spec import MachineSpec
from whygpu.model.observed import Known, Unknown
from whygpu.model.release import Release
from whygpu.model.target import Installer, Manager
from whygpu.planner.advice import advice
from whygpu.planner.candidates import Table
from whygpu.planner.planning import make_plan
from whygpu.planner.wishes import parse_all

TODAY = "2026-11-15"


def advised(
    wishes: str, where: MachineSpec | None = None, table: Table = TABLE, today: str = TODAY
) -> Advice:
    answer = make_plan(where or machine(), parse_all(wishes.split()), table)
    assert answer.plan is not None
    return advice(answer, answer.plan, today)


def installs(found: Advice) -> tuple[str, ...]:
    return shell_texts(found.installs, found.installer)


def test_pip_and_uv_install_the_same() -> None:
    assert installs(advised("tensorflow jax")) == (
        "python3.11 -m pip install 'tensorflow[and-cuda]==2.20.0' 'jax[cuda12]==0.7.2'",
        "uv venv --python 3.11 && uv pip install 'tensorflow[and-cuda]==2.20.0' "
        "'jax[cuda12]==0.7.2'",
    )


def test_a_plan_for_one_environment_names_its_interpreter() -> None:
    answer = make_plan(machine(), parse_all(["tensorflow"]), TABLE)
    assert answer.plan is not None
    own = Installer("~/my env/bin/python", "pip", False)
    pip, _ = installs(advice(answer, answer.plan, TODAY, own))
    assert pip == "~/'my env/bin/python' -m pip install 'tensorflow[and-cuda]==2.20.0'"


def test_a_plan_for_a_project_keeps_its_lock_file_true() -> None:
    answer = make_plan(machine(), parse_all(["tensorflow"]), TABLE)
    assert answer.plan is not None
    project = Manager("uv", "/srv/mine", True)
    own = Installer("python", "uv", False, manager=Known(project, "example"))
    found = advice(answer, answer.plan, TODAY, own)
    # A new environment beside the project's would be no alternative.
    assert installs(found) == ("uv add --project /srv/mine 'tensorflow[and-cuda]==2.20.0'",)
    assert "so that `uv sync` keeps it" in found.notes[-1]
    unsure = own._replace(manager=Known(project._replace(certain=False), "example"))
    found = advice(answer, answer.plan, TODAY, unsure)
    assert len(installs(found)) == 2
    assert found.notes[-1].startswith("uv.lock is next to this environment")


def test_a_python_version_that_is_none_gets_into_no_command() -> None:
    hostile = machine()._replace(python=Known("3.11;touch x", "a snapshot"))
    answer = make_plan(machine(), parse_all(["tensorflow"]), TABLE)._replace(machine=hostile)
    assert answer.plan is not None
    assert installs(advice(answer, answer.plan, TODAY)) == ()


def test_pins_are_part_of_the_command_and_explained() -> None:
    found = advised("tensorflow", machine(gpu=GTX_1080))
    assert all(" nvidia-cudnn-cu12==9.10.2.21" in command for command in installs(found))
    assert any(note.startswith("nvidia-cudnn-cu12==9.10.2.21 because") for note in found.notes)


def test_an_old_release_gets_its_cuda_from_conda() -> None:
    found = advised("tensorflow==2.12")
    assert shell_texts(found.preparations, found.installer) == (
        "conda create -n tensorflow-2.12 python=3.11 -c conda-forge cudatoolkit=11.8 "
        "'cudnn>=8.6,<9'",
        "conda activate tensorflow-2.12",
    )
    # Neither another Python nor another environment finds the libraries there.
    assert texts(found) == ("python -m pip install tensorflow==2.12.1",)
    assert any("does not include the CUDA libraries" in note for note in found.notes)
    assert advised("tensorflow").preparations == ()


@each(
    ("version", "cuda", "cudnn", "command"),
    [
        ("2.13.1", "11.8.0", "8", "conda-forge cudatoolkit=11.8 'cudnn>=8.6,<9'"),
        ("2.99.0", "11.2.0", "8", "conda-forge cudatoolkit=11.2 'cudnn>=8,<9'"),
        ("2.99.0", "10.1", "", "conda-forge cudatoolkit=10.1"),
        # conda-forge begins with 9.2.
        ("2.99.0", "9.0", "7", "anaconda cudatoolkit=9.0 'cudnn>=7,<8'"),
    ],
)
def test_cudnn_from_conda_is_the_one_on_record_or_that_of_the_release(
    version: str, cuda: str, cudnn: str, command: str
) -> None:
    found = advised("tensorflow", table=table_of([tensorflow(version, "3.11", cuda, cudnn=cudnn)]))
    first, _ = shell_texts(found.preparations, found.installer)
    assert first.endswith(f" python=3.11 -c {command}")
    assert any("from conda as shown or from NVIDIA's installers" in note for note in found.notes)


@each("cuda", ["8.0", "12.5.1"])
def test_a_cuda_release_that_conda_does_not_have_comes_from_nvidia(cuda: str) -> None:
    where = machine(gpu=GTX_1080)
    found = advised("tensorflow", where, table_of([tensorflow("2.99.0", "3.11", cuda)]))
    assert found.preparations == ()
    assert any("must be on the machine, from NVIDIA's installers" in n for n in found.notes)


@each(
    ("row", "note"),
    [
        (release("onnxruntime-gpu", "1.31.0", cuda="12.8", cudnn="9"), "CUDA 12.8 and cuDNN 9"),
        (release("cupy-cuda12x", "13.6.0", cuda="12"), "CUDA 12"),
    ],
)
def test_a_framework_that_never_brings_cuda_says_what_has_to_be_there(
    row: Release, note: str
) -> None:
    found = advised(row.package.partition("-")[0], table=table_of([row]))
    said = f"{row.package} {row.version} does not include the CUDA libraries: "
    assert f"{said}{note} must be on the machine" in found.notes
    assert found.preparations == ()


def test_a_framework_that_brings_cuda_needs_none_on_the_machine() -> None:
    for framework in ("tensorflow", "jax", "torch"):
        found = advised(framework)
        assert not any("must be on the machine" in note for note in found.notes)
        assert found.preparations == ()


def test_without_a_known_python_the_commands_name_none() -> None:
    found = advised("torch", machine()._replace(python=Unknown("nobody asked")))
    assert installs(found) == (
        "python -m pip install torch==2.11.0",
        "uv pip install torch==2.11.0",
    )
    assert found.preparations == ()


def test_a_pip_that_sees_no_wheels_is_updated_first() -> None:
    old = advised("tensorflow", machine(python="3.6", gpu=GTX_1080))
    *_, last = shell_texts(old.preparations, old.installer)
    assert last == "python -m pip install --upgrade 'pip<21'"
    assert advised("tensorflow").preparations == ()


def test_a_defect_gets_its_remedy() -> None:
    found = advised("tensorflow==2.21")
    (remedy,) = shell_texts(found.remedies, found.installer)
    assert remedy.endswith(
        'export LD_LIBRARY_PATH="$NVIDIA/cusolver/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"'
    )
    assert any("set LD_LIBRARY_PATH" in note for note in found.notes)


def test_the_remedy_names_the_folders_of_the_libraries() -> None:
    libraries = ("libcublasLt.so.12", "libcublas.so.12", "libcudart.so.12", "libcupti.so.12")
    row = tensorflow("2.16.1", "3.11", "12.3", unsearched=libraries)
    found = advised("tensorflow", table=table_of([row]))
    (remedy,) = shell_texts(found.remedies, found.installer)
    paths = "$NVIDIA/cublas/lib:$NVIDIA/cuda_runtime/lib:$NVIDIA/cuda_cupti/lib"
    assert f'export LD_LIBRARY_PATH="{paths}$' in remedy


def test_no_search_list_of_ours_ends_in_a_bare_variable() -> None:
    """Empty, it would leave an empty entry, which stands for the current folder."""
    sources = pathlib.Path(whygpu.__file__).parent.rglob("*.py")
    bare = re.compile(r"(?<!\+):\$(?:LD_LIBRARY_PATH|PATH|PYTHONPATH)\b(?!\})")
    assert [path.name for path in sources if bare.search(path.read_text("utf-8"))] == []


def test_keras_without_tensorflow_has_to_be_told_its_backend() -> None:
    assert any("KERAS_BACKEND=jax" in note for note in advised("keras jax").notes)
    for wishes in ("keras tensorflow jax", "jax"):
        assert not any("KERAS_BACKEND" in note for note in advised(wishes).notes)


INDEX = "https://download.pytorch.org/whl/"


def texts(found: Advice) -> tuple[str, ...]:
    return shell_texts(found.installs, found.installer, found.shell)


def test_a_build_on_an_index_of_pytorch_is_installed_from_there() -> None:
    found = advised("torch", machine(gpu=GTX_1080))
    assert texts(found) == (
        f"python3.11 -m pip install torch==2.11.0 --index-url {INDEX}cu126",
        "uv venv --python 3.11 && uv pip install torch==2.11.0 --torch-backend=cu126",
    )
    assert any(f"CUDA 12.6 on {INDEX}cu126" in note for note in found.notes)
    assert not any("download.pytorch.org" in note for note in advised("torch").notes)


def test_what_pytorchs_index_lacks_is_a_second_step() -> None:
    found = advised("torch keras", machine(gpu=GTX_1080))
    assert texts(found)[0] == (
        f"python3.11 -m pip install torch==2.11.0 --index-url {INDEX}cu126 && "
        "python3.11 -m pip install torch==2.11.0 keras==3.12.0"
    )


def test_commands_for_windows_are_quoted_for_windows() -> None:
    found = advised("tensorflow==2.10", machine(python="3.10", platform="win_amd64"))
    assert texts(found) == ('python -m pip install tensorflow==2.10.1 "numpy<2"',)
    assert shell_texts(found.preparations, found.installer, found.shell) == (
        "conda create -n tensorflow-2.10 python=3.10 -c conda-forge cudatoolkit=11.2 "
        '"cudnn>=8.1,<9"',
        "conda activate tensorflow-2.10",
    )
    found = advised("torch==2.8", machine(python="3.10", platform="win_amd64"))
    assert texts(found) == (
        "py -3.10 -m pip install torch==2.8.0 --index-url https://download.pytorch.org/whl/cu128",
        "uv venv --python 3.10 && uv pip install torch==2.8.0 --torch-backend=cu128",
    )


def test_uv_is_not_offered_for_a_python_that_it_does_not_know() -> None:
    for python, count in (("3.5", 1), ("2.7", 1), ("3.6", 2)):
        row = release("torch", "1.0.0", pythons=(python,), cuda="9.0")
        where = machine(python=python)._replace(gpus=Unknown("nobody asked"))
        assert len(texts(advised("torch", where, table_of([row])))) == count, python


@pytest.mark.parametrize(
    ("where", "note"),
    [
        (machine(python="3.9"), "Python 3.9 has had no security fixes since 2025-10"),
        (machine(driver="535.54.03"), "driver branch 535 reached its end of life in 2026-06"),
    ],
)
def test_what_is_at_its_end_of_life(where: MachineSpec, note: str) -> None:
    assert note in advised("tensorflow", where).notes
    assert note not in advised("tensorflow").notes


@each(
    ("where", "today", "ended"),
    [
        (machine(python="3.9"), "2025-10-31", False),
        (machine(python="3.9"), "2025-11-01", True),
        (machine(driver="535.54.03"), "2026-06-30", False),
        (machine(driver="535.54.03"), "2026-07-01", True),
        (machine(driver="550.54.14"), "2099-01-01", False),  # its end is not on record
        (machine(driver="537.13"), "2099-01-01", False),  # nor is this branch
    ],
)
def test_a_life_ends_with_its_month(where: MachineSpec, today: str, ended: bool) -> None:
    notes = advised("tensorflow", where, today=today).notes
    words = "security fixes" if where.python_minor == "3.9" else "end of life"
    assert any(words in note for note in notes) is ended


def test_an_unknown_driver_leaves_a_note_with_the_floor() -> None:
    where = machine()._replace(driver=Unknown("nobody asked"))
    expected = "tensorflow 2.20.0 needs driver 525.60.13 or newer: nobody asked"
    assert expected in advised("tensorflow", where).notes

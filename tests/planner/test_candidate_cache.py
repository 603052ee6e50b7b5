"""Which releases are usable on one machine, and what each of them needs there."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.planner.small_table import GTX_1080, TABLE, machine, release, table_of, tensorflow
from whygpu.model.machine_spec import PlannedGpu
from whygpu.model.observed import Unknown
from whygpu.planner.candidate_cache import SHARED_FOLDERS, CandidateCache, Need
from whygpu.planner.candidates import candidates
from whygpu.planner.planning import make_plan
from whygpu.planner.wishes import parse_all


def declared(*lines: str, platform: str = "linux_x86_64", python: str = "3.11") -> list[str]:
    """What a release with these lines of metadata needs on a machine."""
    cache = CandidateCache(machine(platform=platform, python=python), TABLE)
    row = release("example", "1.0", requires=lines)
    return [f"{need.name}{need.specifier}" for need in cache.declared(row, "")]


@each(
    ("platform", "python", "markers"),
    [
        (
            "linux_x86_64",
            "3.11",
            [
                'sys_platform == "linux"',
                'platform_system == "Linux"',
                'os_name == "posix"',
                'platform_machine == "x86_64"',
                'implementation_name == "cpython"',
                'python_version == "3.11"',
                'python_full_version == "3.11.0"',
            ],
        ),
        (
            "win_amd64",
            "3.11.9",
            [
                'sys_platform == "win32"',
                'platform_system == "Windows"',
                'os_name == "nt"',
                'platform_machine == "AMD64"',
                'platform_python_implementation == "CPython"',
                'python_version == "3.11"',
                'python_full_version == "3.11.9"',
            ],
        ),
        (
            "macosx_arm64",
            "3.9",
            [
                'sys_platform == "darwin"',
                'platform_system == "Darwin"',
                'os_name == "posix"',
                'platform_machine == "arm64"',
            ],
        ),
    ],
)
def test_markers_are_those_of_the_machine_that_is_planned_for(
    platform: str, python: str, markers: list[str]
) -> None:
    for marker in markers:
        opposite = marker.replace("==", "!=")
        lines = (f"yes; {marker}", f"no; {opposite}")
        assert declared(*lines, platform=platform, python=python) == ["yes"], marker


def test_lines_are_read_as_pip_reads_them() -> None:
    assert declared("Ml_Dtypes>=0.5", "numpy<2,>=1") == ["ml-dtypes>=0.5", "numpy<2,>=1"]
    # An extra is a package of its own if the table says what it adds.
    assert declared("tensorflow[and-cuda]==2.20.0") == ["tensorflow[and-cuda]==2.20.0"]
    assert declared("unheard-of[all]>=1") == ["unheard-of>=1"]
    assert declared("what is this ?!", "six") == ["six"]


@pytest.mark.parametrize("folder", SHARED_FOLDERS)
def test_two_wheels_that_install_the_same_files_exclude_each_other(folder: str) -> None:
    rows = [
        tensorflow("2.20.0", "3.11", "12.5.1", f"nvidia-{folder}-cu12"),
        release("torch", "2.11.0", cuda="13.0", requires=(f"nvidia-{folder}-cu13",)),
        *(release(f"nvidia-{folder}-cu{cuda}", "9.5") for cuda in (12, 13)),
    ]
    answer = make_plan(machine(), parse_all(["tensorflow", "torch"]), table_of(rows))
    assert answer.conflict.endswith(f"these install the same files (nvidia/{folder})")


@each(
    ("package", "version", "gpu", "refused"),
    [
        ("nvidia-cudnn-cu12", "9.11.0", GTX_1080, True),
        ("nvidia-cudnn-cu12", "9.10.0", GTX_1080, False),
        ("nvidia-cudnn-cu12", "9.11.0", PlannedGpu("T4", (7, 5), "data-center"), False),
        ("nvidia-cudnn-cu12", "99.0", GTX_1080, False),
        ("nvidia-cudnn-frontend", "9.11.0", GTX_1080, False),
    ],
)
def test_cudnn_refuses_gpus_that_it_has_dropped(
    package: str, version: str, gpu: PlannedGpu, refused: bool
) -> None:
    row = release(package, version)
    cache = CandidateCache(machine(gpu=gpu), table_of([row]))
    assert cache.cudnn_refuses(row) is refused
    assert list(cache.rows(package)) == ([] if refused else [row])
    unseen = machine()._replace(gpus=Unknown("nobody looked"))
    assert CandidateCache(unseen, table_of([row])).cudnn_refuses(row) is False


def test_pip_can_choose_only_what_has_a_wheel_for_the_machine() -> None:
    """So nothing has to be pinned against a release that is for another Python."""
    rows = [release("nvidia-cudnn-cu12", "9.10"), release("nvidia-cudnn-cu12", "9.27")]
    newer = rows[1]._replace(pythons=("3.12",))
    cache = CandidateCache(machine(gpu=GTX_1080), table_of([rows[0], newer]))
    assert cache.allowed("nvidia-cudnn-cu12", {">=9"}) == [rows[0]]
    assert cache.allowed("nvidia-cudnn-cu12", {">9.10"}) == []


def test_packages_that_pin_each_other_have_each_need_once() -> None:
    rows = [
        tensorflow("2.20.0", "3.11", "12.5.1", "one==1"),
        release("one", "1", requires=("two==1",)),
        release("two", "1", requires=("one==1", "six")),
    ]
    table = table_of(rows)
    (candidate,) = candidates("tensorflow", table)
    found = CandidateCache(machine(), table).closure(candidate)
    assert sorted({need.name for need in found}) == ["one", "six", "tensorflow", "two"]


def test_a_backend_without_a_suitable_release_is_no_requirement() -> None:
    """Keras 2 has no PyTorch backend: the verdict on it says so."""
    row = release("keras", "2.15.0", requires=("six",))
    cache = CandidateCache(machine(), table_of([row]), "torch")
    assert cache.needs_of("keras", row) == [Need("six", "", "keras 2.15.0")]
    newer = release("keras", "3.12.0")
    assert cache.needs_of("keras", newer) == [Need("torch", ">=2.1", "keras 3.12.0")]

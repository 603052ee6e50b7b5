"""Which releases can fulfil a wish, and with which package and extra."""

from __future__ import annotations

from tests.cases import each
from tests.planner.small_table import TABLE, release, table_of
from whygpu.planner.candidates import candidates
from whygpu.planner.wishes import FRAMEWORKS


def test_tensorflow_is_newest_first_and_from_the_package_that_has_cuda() -> None:
    found = [item.requirement for item in candidates("tensorflow", TABLE)]
    assert found == [
        "tensorflow[and-cuda]==2.21.0",
        "tensorflow[and-cuda]==2.20.0",
        "tensorflow[and-cuda]==2.19.1",
        "tensorflow[and-cuda]==2.15.1",
        "tensorflow==2.12.1",
        "tensorflow==2.10.1",
        "tensorflow-gpu==2.0.0",
        "tensorflow-gpu==1.15.5",
    ]


def test_jax_has_a_candidate_for_each_cuda_release_newer_cuda_first() -> None:
    found = [(item.requirement, item.cuda) for item in candidates("jax", TABLE)]
    assert found == [
        ("jax[cuda13]==0.7.2", "13"),
        ("jax[cuda12]==0.7.2", "12"),
        ("jax==0.4.20", ""),
    ]
    assert "never on the package index" in candidates("jax", TABLE)[-1].no_build


def test_jax_without_its_plugin_on_the_index_has_no_build() -> None:
    rows = [row for row in TABLE.versions("jax") if row.version == "0.7.2"]
    found = candidates("jax", table_of(rows))
    assert all("is not on the package index" in item.no_build for item in found)


def test_a_build_without_cuda_says_so() -> None:
    (only,) = candidates("tensorflow", table_of([release("tensorflow", "2.0.0")]))
    assert only.no_build == "is built without CUDA"


def test_a_major_cuda_release_is_completed_from_the_builds_on_record() -> None:
    row = release("tensorflow-gpu", "1.15.5", cuda="10")
    (only,) = candidates("tensorflow", table_of([row]))
    assert only.cuda == "10.0"


@each(
    ("version", "cuda", "exact"),
    [
        ("1.15.5", "10", "10.0"),
        ("1.15.5", "10.1", "10.1"),  # what was read from the binaries, if it is exact
        ("1.15.5", "", ""),
        ("99.0.0", "12", "12"),
    ],
)
def test_the_builds_on_record_add_a_minor_number_only(version: str, cuda: str, exact: str) -> None:
    (only,) = candidates("tensorflow", table_of([release("tensorflow", version, cuda=cuda)]))
    assert only.cuda == exact


def test_a_tensorflow_gpu_without_cuda_is_no_release() -> None:
    """The last ones on the index contain only a message."""
    assert candidates("tensorflow", table_of([release("tensorflow-gpu", "2.12.0")])) == ()


def test_every_candidate_names_its_framework() -> None:
    rows = [
        *(row for name in ("tensorflow", "jax", "torch", "keras") for row in TABLE.versions(name)),
        release("jax-cuda13-plugin", "0.7.2"),
        release("cupy-cuda12x", "13.6.0"),
        release("onnxruntime-gpu", "1.31.0", cuda="12.8"),
    ]
    for framework in FRAMEWORKS:
        found = candidates(framework, table_of(rows))
        assert {item.framework for item in found} == {framework}


READ = {"cuda": "12.8", "cudnn": "9", "architectures": ("sm_80",)}
OTHER = {"cuda": "12.1", "cudnn": "8", "architectures": ("sm_70",)}


@each(
    ("plugin", "pjrt", "expected"),
    [
        (READ, OTHER, ("12.8", "9", ("sm_80",))),
        (READ, None, ("12.8", "9", ("sm_80",))),
        ({}, READ, ("12.8", "9", ("sm_80",))),
        ({}, {}, ("12", "", ())),
        ({}, None, ("12", "", ())),
    ],
)
def test_what_the_plugin_of_jax_does_not_show_is_read_from_its_pjrt(
    plugin: dict[str, object], pjrt: dict[str, object] | None, expected: tuple[object, ...]
) -> None:
    rows = [
        release("jax", "0.7.2", requires=('jax-cuda12-plugin[with-cuda]; extra == "cuda12"',)),
        release("jax-cuda12-plugin", "0.7.2", **plugin),
        *([] if pjrt is None else [release("jax-cuda12-pjrt", "0.7.2", **pjrt)]),
    ]
    (only,) = candidates("jax", table_of(rows))
    assert (only.cuda, only.cudnn, only.architectures) == expected


def test_cupy_names_its_cuda_in_the_package() -> None:
    rows = [
        release("cupy-cuda12x", "13.6.0"),
        release("cupy-cuda11x", "13.6.0", cuda="11.2"),
        release("cupy-cuda102", "12.0.0"),
    ]
    found = candidates("cupy", table_of(rows))
    assert [(item.requirement, item.cuda) for item in found] == [
        ("cupy-cuda12x==13.6.0", "12"),
        ("cupy-cuda11x==13.6.0", "11.2"),
        ("cupy-cuda102==12.0.0", "10.2"),
    ]


def test_a_post_release_is_newer_than_its_release() -> None:
    """Whatever order the names have in a set: a test in one process sees one of the orders."""
    versions = ["2.15.0", "2.15.0.post1"]
    for rows in (versions, versions[::-1]):
        found = candidates("tensorflow", table_of([release("tensorflow", v) for v in rows]))
        assert [item.version for item in found] == ["2.15.0.post1", "2.15.0"]

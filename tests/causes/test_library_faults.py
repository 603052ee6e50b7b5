"""Which cause claims an answer of the loader: exactly one, for every kind of answer."""

from __future__ import annotations

from typing import get_args

import pytest

from tests.cases import each
from tests.kit import cause_named, command_of, machine, run
from tests.machines import healthy as machines
from whygpu.causes.evidence.library_faults import (
    LibraryFault,
    base_name,
    copy_at,
    fault_of,
    is_driver_library,
)
from whygpu.causes.evidence.library_search import search_first, search_text, search_without
from whygpu.model.commands import shell_text
from whygpu.model.libraries import (
    LibraryCopy,
    OtherCopy,
    Resolution,
    ResolutionOutcome,
    SearchedFolder,
)
from whygpu.model.observed import Known
from whygpu.model.target import Framework

TENSORFLOW: Framework = machines.FRAMEWORKS[0]


def failing(
    *chain: str,
    outcome: ResolutionOutcome | None = None,
    detail: str = "",
    searched: tuple[SearchedFolder, ...] = (),
    others: tuple[OtherCopy, ...] = (),
) -> Resolution:
    loads = machines.resolution(chain[0], "/nowhere", machines.TENSORFLOW_CC)
    return loads._replace(
        outcome=outcome or ("not-found" if len(chain) == 1 else "dependency-missing"),
        path=None,
        chain=chain,
        detail=detail,
        searched=searched,
        other_copies=others,
    )


def copy(soname: str, folder: str) -> LibraryCopy:
    version = Known("1.0", "example")
    return LibraryCopy(base_name(soname), soname, f"{folder}/{soname}", version, "system", "")


UNSEARCHED = (OtherCopy("/wheels/libcusolver.so.11", "its folder is not on a search path"),)


@each(
    ("resolution", "copies", "expected"),
    [
        (failing("libcusolver.so.11"), (), "cuda-runtime-missing"),
        (failing("libcudnn.so.9"), (), "cudnn-missing"),
        (failing("libcudnn.so.9", "libcublas.so.12"), (), "cuda-runtime-missing"),
        (failing("libcudnn.so.9", "libz.so.1"), (), "cuda-runtime-missing"),
        (failing("libcusolver.so.11", others=UNSEARCHED), (), "library-path-conflict"),
        (failing("libcudnn.so.9"), (copy("libcudnn.so.9", "/opt"),), "library-path-conflict"),
        (failing("libcudart.so.12"), (copy("libcudart.so.11.0", "/opt"),), "cuda-version-mismatch"),
        (failing("libcudnn.so.9"), (copy("libcudnn.so.8", "/opt"),), "cudnn-version-mismatch"),
        (
            failing("libcudnn.so.9", outcome="broken-file", detail="file too short"),
            (copy("libcudnn.so.9", "/opt"),),
            "library-file-broken",
        ),
        (
            failing("libcudnn.so.9", searched=(SearchedFolder("/opt", "cache", "", "broken"),)),
            (),
            "library-file-broken",
        ),
        (
            failing(
                "libcudnn.so.9",
                searched=(SearchedFolder("/lib32", "default", "", "other-architecture"),),
            ),
            (),
            "library-file-broken",
        ),
        (
            failing(
                "libcusolver.so.11",
                "libcublas.so.12",
                outcome="symbol-missing",
                detail="undefined symbol: cublasSetEnvironmentMode, version libcublas.so.12",
            ),
            (),
            "library-path-conflict",
        ),
        (
            failing("libcudnn.so.9", outcome="version-missing", detail="version `libcublas.so.12'"),
            (),
            "library-path-conflict",
        ),
        (
            failing("libcudnn.so.9", outcome="version-missing", detail="version `GLIBC_2.34'"),
            (),
            None,
        ),
        (failing("libcuda.so.1"), (), None),
        (failing("libnvidia-ml.so.1"), (), None),
        (failing("libcupti.so.12", "libcuda.so.1"), (), None),
        (failing("libnccl.so.2")._replace(required=False), (), None),
        (machines.TENSORFLOW_LIBRARIES[0], (), None),
    ],
)
def test_one_answer_has_one_cause(
    resolution: Resolution, copies: tuple[LibraryCopy, ...], expected: LibraryFault | None
) -> None:
    assert fault_of(resolution, TENSORFLOW, copies) == expected


@pytest.mark.parametrize(
    "reason", ["it is a link to a file that does not exist", "it is for EM_AARCH64 (64 bits)"]
)
def test_a_copy_that_would_not_load_is_no_copy(reason: str) -> None:
    other = OtherCopy("/x/libcusolver.so.11", reason, usable=False)
    resolution = failing("libcusolver.so.11", others=(other,))
    assert fault_of(resolution, TENSORFLOW, ()) == "cuda-runtime-missing"


def test_a_wheels_copy_for_another_processor_is_no_copy_either() -> None:
    """It is in a folder that the loader does search: the search list has nothing wrong."""
    other = OtherCopy("/wheels/libcufft.so.11", "it is for aarch64, 64 bits", usable=False)
    searched = (SearchedFolder("/wheels", "runpath", "", "other-architecture"),)
    resolution = failing("libcufft.so.11", searched=searched, others=(other,))
    copies = (copy("libcufft.so.11", "/wheels"),)
    assert fault_of(resolution, TENSORFLOW, copies) == "library-file-broken"


def test_the_same_name_in_another_cuda_release_does_not_count() -> None:
    cuda_11 = (copy("libcusolver.so.11", "/cuda-11"), copy("libcudart.so.11.0", "/cuda-11"))
    cuda_12 = (copy("libcusolver.so.11", "/cuda-12"), copy("libcudart.so.12", "/cuda-12"))
    resolution = failing("libcusolver.so.11")
    assert fault_of(resolution, TENSORFLOW, cuda_11) == "cuda-version-mismatch"
    assert fault_of(resolution, TENSORFLOW, cuda_12) == "library-path-conflict"
    assert fault_of(resolution, TENSORFLOW, cuda_11 + cuda_12) == "library-path-conflict"


def test_a_longer_number_is_another_name() -> None:
    other = (OtherCopy("/x/libcusolver.so.110", "its folder is not on a search path"),)
    resolution = failing("libcusolver.so.11", others=other)
    assert fault_of(resolution, TENSORFLOW, ()) == "cuda-runtime-missing"


EVERY_FAULT = get_args(LibraryFault)


@each("slug", EVERY_FAULT)
def test_a_cpu_build_is_no_business_of_these_causes(slug: str) -> None:
    snapshot = machine(
        'only = ["tensorflow"]\n[target.frameworks.tensorflow]\nlibraries = {unknown = "x"}\n'
        '[target.frameworks.tensorflow.build]\nkind = "cpu"'
    )
    assert run(cause_named(slug), snapshot).status == "passed"


@each("slug", EVERY_FAULT)
def test_a_machine_without_a_gpu_has_no_findings(slug: str) -> None:
    snapshot = machine(
        'start = "no-gpu"\n[target.frameworks.tensorflow.libraries."libcudart.so.12"]\n'
        'outcome = "not-found"\nchain = ["libcudart.so.12"]'
    )
    assert run(cause_named(slug), snapshot).status in ("passed", "not-applicable")


def test_a_build_that_links_cuda_does_not_import_even_without_a_gpu() -> None:
    snapshot = machine(
        'start = "no-gpu"\n[target.frameworks.torch.libraries."libcudart.so.12"]\n'
        'outcome = "not-found"\nchain = ["libcudart.so.12"]'
    )
    (finding,) = run(cause_named("cuda-runtime-missing"), snapshot).findings
    assert (finding.subject, finding.effect) == ("torch", "broken")
    assert "importing PyTorch fails" in finding.message
    assert "/whl/cpu" in (command_of(finding.remedies[0]) or "")


def test_names_are_taken_apart() -> None:
    assert base_name("libcudnn_ops.so.9") == "cudnn_ops"
    assert is_driver_library("libcuda.so.1")
    assert is_driver_library("libnvidia-ptxjitcompiler.so.1")
    assert not is_driver_library("libcudart.so.12")


def test_a_copy_is_known_by_its_soname_and_by_its_full_version() -> None:
    cudnn = copy("libcudnn.so.9", "/opt")
    assert copy_at("/opt/libcudnn.so.9", (cudnn,)) is cudnn
    assert copy_at("/opt/libcudnn.so.9.27.0", (cudnn,)) is cudnn
    assert copy_at("/usr/libcudnn.so.9", (cudnn,)) is None


def test_commands_survive_quotes_and_home() -> None:
    assert shell_text(search_first(["~/a b", "/c", "/c"])) == (
        'export LD_LIBRARY_PATH="$HOME/a b:/c${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"'
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("/cuda/lib64", "unset LD_LIBRARY_PATH"),
        ("/cuda/lib64/:/opt", 'export LD_LIBRARY_PATH="/opt"'),
        ("/opt", None),
    ],
)
def test_a_folder_is_taken_off_the_search_list(value: str, expected: str | None) -> None:
    snapshot = machine(f'[environment.variables.LD_LIBRARY_PATH]\nvalue = "{value}"')
    assert shell_text(search_without(snapshot, "/cuda/lib64")) == expected


def test_without_the_variable_there_is_nothing_to_take_off() -> None:
    assert search_without(machine(), "/cuda/lib64") is None


def test_a_search_is_told_in_its_order_and_kept_short() -> None:
    folders = [SearchedFolder(f"/{i}", "runpath", "/tf/libtf.so", "not-there") for i in range(20)]
    text = search_text([*folders, folders[0], SearchedFolder("/lib", "default", "", "not-there")])
    assert text.startswith("RUNPATH of libtf.so: /0, /1, ")
    assert text.endswith("/7 and 12 more; a default folder: /lib")


def test_wheel_folders_of_one_place_are_told_as_one() -> None:
    paths = ("/v/nvidia/nccl/lib", "/opt", "/v/nvidia/cudnn/lib", "/w/nvidia/nccl/lib")
    folders = [SearchedFolder(path, "ld-library-path", "", "not-there") for path in paths]
    assert search_text(folders) == (
        "LD_LIBRARY_PATH: /v/nvidia/{nccl,cudnn}/lib, /opt, /w/nvidia/nccl/lib"
    )

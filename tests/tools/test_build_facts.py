"""What is read out of each framework's wheel."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from packaging.requirements import Requirement

from tests.elfwriter import Library, write
from tests.host.test_fatbin import CUBIN, PTX, container, entry, with_sections
from tests.package_index.local_index import LocalIndex
from tools.harvest.build_facts import (
    assigned,
    build_versions,
    reader_of,
    unsearched_libraries,
    wheel_folder,
    with_machine_code,
)
from tools.harvest.scripted_builds import BUILDS, scripted_build
from whygpu.package_index.release_rows import BuildFacts
from whygpu.package_index.remote_wheel import RemoteWheel
from whygpu.package_index.web import Web
from whygpu.tables.architectures import parse_code
from whygpu.tables.versions import release_numbers

KERNELS = with_sections([(".nv_fatbin", container(entry(CUBIN, 80), entry(PTX, 90)))])
ORDERED = "build_info = collections.OrderedDict([{}])"
CUDA_TENSORFLOW = ORDERED.format(
    "('cuda_compute_capabilities', ['sm_60', 'compute_90']), ('cuda_version', '12.5.1'), "
    "('cudnn_version', '9'), ('is_cuda_build', True)"
)
AND_CUDA = tuple(
    Requirement(f'nvidia-{name}-cu12==1.0; extra == "and-cuda"')
    for name in ("cublas", "cuda-runtime", "cuda-cupti", "cudnn", "cufft", "cusolver", "cusparse")
)
FOLDERS = "$ORIGIN/:" + ":".join(
    f"$ORIGIN/../nvidia/{name}/lib"
    for name in ("cublas", "cuda_runtime", "cudnn", "cufft", "cusparse")
)


def read(
    index: LocalIndex,
    web: Web,
    package: str,
    version: str,
    members: Mapping[str, bytes],
    requirements: tuple[Requirement, ...] = (),
) -> BuildFacts:
    name = package.replace("-", "_")
    filename = f"{name}-{version}-cp311-cp311-manylinux_2_17_x86_64.whl"
    index.add_wheel(filename, {f"{name}-{version}.dist-info/METADATA": b"", **members})
    reader = reader_of(package)
    assert reader is not None
    return reader(RemoteWheel(web, f"{index.url}/files/{filename}"), version, requirements)


def test_constants_of_a_generated_module() -> None:
    source = "import os\ncuda: str | None = '13.2'\nhip = None\nhome = os.getcwd()\n"
    assert assigned(source) == {"cuda": "13.2", "hip": None}
    assert assigned(CUDA_TENSORFLOW)["cuda_version"] == "12.5.1"


def test_tensorflow_makes_machine_code_of_its_intermediate_code() -> None:
    assert with_machine_code(["sm_60", "compute_90"]) == ("sm_60", "sm_90", "compute_90")


def test_a_cuda_build_of_tensorflow(index: LocalIndex, web: Web) -> None:
    members = {
        "tensorflow/python/platform/build_info.py": CUDA_TENSORFLOW.encode(),
        "tensorflow/libtensorflow_framework.so.2": f"\x7fELF..\0{FOLDERS}\0rest".encode(),
    }
    facts = read(index, web, "tensorflow", "2.21.0", members, AND_CUDA)
    assert facts == BuildFacts("12.5.1", "9", ("sm_60", "sm_90", "compute_90"), ("cusolver",))


def test_a_build_with_an_extra_must_show_its_folders(index: LocalIndex, web: Web) -> None:
    members = {
        "tensorflow/python/platform/build_info.py": CUDA_TENSORFLOW.encode(),
        "tensorflow/libtensorflow_framework.so.2": b"\x7fELF",
    }
    with pytest.raises(ValueError, match="no RUNPATH"):
        read(index, web, "tensorflow", "2.21.0", members, AND_CUDA)


def test_an_early_cuda_build_of_tensorflow(index: LocalIndex, web: Web) -> None:
    members = {
        "tensorflow/python/_pywrap_tensorflow_internal.so": b"..\0libcudart.so.9.0\0libx.so\0",
        "tensorflow/libtensorflow_framework.so": b"..\0libcudnn.so.7\0",
        "tensorflow/contrib/rnn/python/ops/_lstm_ops.so": KERNELS,
    }
    facts = read(index, web, "tensorflow-gpu", "1.12.0", members)
    assert facts == BuildFacts("9.0", "7", ("sm_80", "compute_90"))


def test_the_minor_number_that_build_info_leaves_out(index: LocalIndex, web: Web) -> None:
    text = b"is_cuda_build = True\ncuda_version_number = '10'\ncudnn_version_number = '7'\n"
    members = {
        "tensorflow_core/python/platform/build_info.py": text,
        "tensorflow_core/libtensorflow_framework.so.2": b"\0" + b"7\0" + b"10.0\0",
    }
    facts = read(index, web, "tensorflow-gpu", "2.0.0", members)
    assert (facts.cuda, facts.cudnn) == ("10.0", "7")
    assert facts.architectures[0] == "sm_35"
    assert facts.architectures_from.startswith("https://github.com/tensorflow/")


def test_a_build_of_tensorflow_without_cuda(index: LocalIndex, web: Web) -> None:
    text = ORDERED.format("('is_cuda_build', False)").encode()
    members = {"tensorflow/python/platform/build_info.py": text}
    assert read(index, web, "tensorflow", "2.21.0", members, AND_CUDA) == BuildFacts()


def test_only_libraries_that_are_opened_and_installed_can_be_missed() -> None:
    assert unsearched_libraries("2.21.0", AND_CUDA, FOLDERS) == ("cusolver",)
    assert unsearched_libraries("2.21.0", AND_CUDA[:5], FOLDERS) == ()
    assert "cupti" not in unsearched_libraries("2.21.0", AND_CUDA, "")


def test_folders_of_nvidias_wheels() -> None:
    assert wheel_folder("nvidia-cuda-runtime-cu12") == "cuda_runtime"
    assert wheel_folder("nvidia-cusolver") == "cusolver"


def test_torch(index: LocalIndex, web: Web) -> None:
    members = {
        "torch/version.py": b"cuda: Optional[str] = '13.2'\n",
        "torch/lib/libtorch_python.so": b"..\0sm_1\n\0sm_80 sm_90a compute_90\0..",
    }
    pins = (Requirement("nvidia-cudnn-cu13==9.26.0.51"),)
    facts = read(index, web, "torch", "2.15.0", members, pins)
    assert facts == BuildFacts("13.2", "9.26.0.51", ("sm_80", "sm_90a", "compute_90"))


def test_an_early_torch_has_its_architectures_from_the_build_script(
    index: LocalIndex, web: Web
) -> None:
    members = {"torch/version.py": b"cuda = '9.0.176'\n", "torch/lib/libcudnn-3f.so.7": b""}
    facts = read(index, web, "torch", "1.1.0", members)
    assert (facts.cuda, facts.cudnn) == ("9.0.176", "7")
    assert facts.architectures == ("sm_35", "sm_50", "sm_60", "sm_70", "compute_50")
    assert facts.architectures_from.startswith("https://github.com/pytorch/builder/")


def test_scripted_builds_are_in_order_and_well_formed() -> None:
    places = [
        (row.package, release_numbers(bound)) for row in BUILDS for bound in (row.first, row.last)
    ]
    assert places == sorted(places)
    assert all(parse_code(code) for row in BUILDS for code in row.codes)
    assert all(row.source.startswith("https://") for row in BUILDS)
    assert scripted_build("torch", "1.7.0") is None
    assert scripted_build("tensorflow-cpu", "2.1.0") is None


def compiled_versions(*numbers: int) -> bytes:
    """Functions as they stand in jaxlib's module, each 32 bytes: mov edi, number; jmp."""
    return b"".join(b"\xbf" + number.to_bytes(4, "little") + b"\xe9" * 27 for number in numbers)


@pytest.mark.parametrize(
    ("numbers", "versions"),
    [((12090, 91002, 120901, 11401), ("12.9", "9.10.2")), ((11080, 8600, 8), ("11.8", "8.6.0"))],
)
def test_versions_compiled_into_jax(numbers: tuple[int, ...], versions: tuple[str, str]) -> None:
    assert build_versions(b"\x90" * 7 + compiled_versions(*numbers)) == versions


@pytest.mark.parametrize(
    "code",
    [b"", compiled_versions(12090, 5), compiled_versions(12090, 91002, 12080, 91002)],
)
def test_versions_that_are_not_plain_are_not_guessed(code: bytes) -> None:
    with pytest.raises(ValueError, match="pairs of versions"):
        build_versions(code)


def test_a_jax_plugin(index: LocalIndex, web: Web) -> None:
    members = {
        "jax_cuda12_plugin/_versions.so": compiled_versions(12030, 90101),
        "jax_cuda12_plugin/_prng.so": KERNELS,
    }
    facts = read(index, web, "jax-cuda12-plugin", "0.5.0", members)
    assert facts == BuildFacts("12.3", "9.1.1", ("sm_80", "compute_90"))


def test_jax_itself_has_no_build_to_read() -> None:
    assert reader_of("jax") is None


def test_onnxruntime_by_what_it_links_and_what_it_says(index: LocalIndex, web: Web) -> None:
    linked = write(Library(needed=("libcudart.so.11.0", "libcudnn.so.8")))
    members = {"onnxruntime/capi/libonnxruntime_providers_tensorrt.so": linked}
    assert read(index, web, "onnxruntime-gpu", "1.16.0", members) == BuildFacts("11", "8")
    members["onnxruntime/capi/build_and_package_info.py"] = b"cuda_version = '11.8'\n"
    assert read(index, web, "onnxruntime-gpu", "1.20.0", members) == BuildFacts("11.8", "8")


def test_an_early_onnxruntime_loads_cuda_from_python(index: LocalIndex, web: Web) -> None:
    members = {
        "onnxruntime/capi/libonnxruntime_providers_tensorrt.so": write(Library()),
        "onnxruntime/capi/_ld_preload.py": b"CDLL('libcudart.so.11.0'); CDLL('libcudnn.so.8')",
    }
    assert read(index, web, "onnxruntime-gpu", "1.11.0", members) == BuildFacts("11", "8")
    del members["onnxruntime/capi/_ld_preload.py"]
    with pytest.raises(ValueError, match="names CUDA"):
        read(index, web, "onnxruntime-gpu", "1.11.1", members)


@pytest.mark.parametrize(("package", "cuda"), [("cupy-cuda12x", "12"), ("cupy-cuda102", "10.2")])
def test_cupy_has_cuda_in_its_name(index: LocalIndex, web: Web, package: str, cuda: str) -> None:
    members = {"cupy/.data/_wheel.json": b'{"cudnn": {"version": "8.8.1"}}'}
    assert read(index, web, package, "13.0.0", members) == BuildFacts(cuda, "8.8.1")
    members = {"cupy/_lib/libcudnn.so.7": b""}
    assert read(index, web, package, "5.1.0", members) == BuildFacts(cuda, "7")

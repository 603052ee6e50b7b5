"""Builds as the files tell them: kinds, versions, and installations that are not whole."""

from __future__ import annotations

import pathlib

import pytest

from tests.collectors.frameworks.scenes import collect, only
from tests.collectors.sites import install, write
from tests.host.test_fatbin import with_sections
from tests.host.test_hip_code import bundle
from whygpu.model.observed import Absent, Known, Unknown, need
from whygpu.model.target import FrameworkName

BUILD_INFO = "tensorflow/python/platform/build_info.py"


def test_the_name_tensorflow_cpu_is_enough(tmp_path: pathlib.Path) -> None:
    install(tmp_path, "tensorflow-cpu", "2.21.0")
    write(tmp_path / BUILD_INFO, "")
    seen = only("tensorflow", tmp_path)
    assert need(seen.build.kind) == "cpu"
    assert isinstance(seen.libraries, Absent)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("is_cuda_build = False\n", "cpu"),
        (
            "import collections\nbuild_info = collections.OrderedDict([('is_cuda_build', False)])",
            "cpu",
        ),
        ("build_info = {'is_cuda_build': False, 'is_rocm_build': True}", "rocm"),
    ],
)
def test_tensorflow_states_its_kind_in_several_forms(
    tmp_path: pathlib.Path, text: str, kind: str
) -> None:
    install(tmp_path, "tensorflow", "2.21.0")
    write(tmp_path / BUILD_INFO, text)
    assert need(only("tensorflow", tmp_path).build.kind) == kind


def test_a_plugin_for_metal_decides(tmp_path: pathlib.Path) -> None:
    install(tmp_path, "tensorflow", "2.18.0")
    install(tmp_path, "tensorflow-metal", "1.2.0")
    write(tmp_path / BUILD_INFO, "is_cuda_build = False")
    assert need(only("tensorflow", tmp_path).build.kind) == "metal"


def test_a_cuda_build_whose_files_say_nothing_is_known_by_its_release_and_its_wheel(
    tmp_path: pathlib.Path,
) -> None:
    stated = "build_info = {'is_cuda_build': True}"
    old, new = tmp_path / "old", tmp_path / "new"
    install(old, "tensorflow", "2.15.0")
    install(
        new,
        "tensorflow",
        "2.99.0",
        requires=[
            'nvidia-cuda-runtime-cu12<13.0,>=12.8.90; extra == "and-cuda"',
            'nvidia-cudnn-cu12<10.0,>=9.8.0.87; extra == "and-cuda"',
        ],
    )
    for folder, cuda, cudnn in ((old, "12.2", "8"), (new, "12.8", "9")):
        write(folder / BUILD_INFO, stated)
        build = only("tensorflow", folder).build
        assert (need(build.cuda), need(build.cudnn)) == (cuda, cudnn)


def test_without_binaries_there_is_nothing_to_say_about_libraries(tmp_path: pathlib.Path) -> None:
    install(tmp_path, "tensorflow", "2.21.0")
    write(tmp_path / BUILD_INFO, "build_info = {'is_cuda_build': True}")
    assert isinstance(only("tensorflow", tmp_path).libraries, Unknown)


@pytest.mark.parametrize("name", ["tensorflow", "torch"])
def test_metadata_without_files_is_not_taken_for_an_installation(
    tmp_path: pathlib.Path, name: str
) -> None:
    install(tmp_path, name, "2.10.0")
    (seen,) = collect(tmp_path)
    assert isinstance(seen.build.kind, Unknown)
    assert "not its files" in seen.build.kind.reason


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("cuda: Optional[str] = None\nhip: Optional[str] = None", "cpu"),
        ("cuda = None\nhip = '6.2.41133'", "rocm"),
        ("cuda = None\nxpu = '20250101'", "xpu"),
    ],
)
def test_torch_states_its_kind(tmp_path: pathlib.Path, text: str, kind: str) -> None:
    install(tmp_path, "torch", "2.13.0")
    write(tmp_path / "torch/version.py", f"__version__ = '2.13.0+x'\n{text}\n")
    seen = only("torch", tmp_path)
    assert need(seen.build.kind) == kind
    assert seen.version == "2.13.0+x"


def test_the_amd_gpus_of_a_torch_whose_own_code_is_compressed(tmp_path: pathlib.Path) -> None:
    install(tmp_path, "torch", "2.9.0")
    write(tmp_path / "torch/version.py", "__version__ = '2.9.0+rocm6.4'\nhip = '6.4.43484'\n")
    unread = only("torch", tmp_path).build.amd_targets
    assert isinstance(unread, Unknown)
    code = with_sections([(".hip_fatbin", b"CCOB" + bytes(5000))])
    (tmp_path / "torch/lib").mkdir()
    (tmp_path / "torch/lib/libtorch_hip.so").write_bytes(code)
    compressed = only("torch", tmp_path).build.amd_targets
    assert isinstance(compressed, Unknown)
    assert "compressed" in compressed.reason
    for name in (
        "TensileLibrary_lazy_gfx90a.dat",
        "TensileLibrary_Type_HH_Contraction_l_Ailk_Bjlk_Cijk_Dijk_fallback_gfx1100.hsaco",
        "Kernels.so-000-gfx1100.hsaco",
        "TensileManifest.txt",
    ):
        write(tmp_path / "torch/lib/rocblas/library" / name, "")
    assert need(only("torch", tmp_path).build.amd_targets) == ("gfx1100", "gfx90a")


def test_the_amd_gpus_of_tensorflow_are_in_its_binary(tmp_path: pathlib.Path) -> None:
    install(tmp_path, "tensorflow-rocm", "2.14.0.600")
    write(tmp_path / BUILD_INFO, "build_info = {'is_cuda_build': False, 'is_rocm_build': True}")
    code = bundle("hipv4-amdgcn-amd-amdhsa--gfx90a", "hipv4-amdgcn-amd-amdhsa--gfx1030")
    binary = tmp_path / "tensorflow/libtensorflow_cc.so.2"
    binary.write_bytes(with_sections([(".hip_fatbin", code)]))
    assert need(only("tensorflow", tmp_path).build.amd_targets) == ("gfx1030", "gfx90a")


def test_torch_without_a_readable_version_is_unknown(tmp_path: pathlib.Path) -> None:
    install(tmp_path, "torch", "2.13.0")
    write(tmp_path / "torch/version.py", "cuda = (((")
    seen = only("torch", tmp_path)
    assert isinstance(seen.build.kind, Unknown)
    assert isinstance(seen.libraries, Unknown)


def test_jax_is_a_cpu_build_without_a_plugin(tmp_path: pathlib.Path) -> None:
    install(tmp_path, "jax", "0.12.0")
    install(tmp_path, "jaxlib", "0.12.0")
    seen = only("jax", tmp_path)
    assert need(seen.build.kind) == "cpu"
    assert seen.plugins == ()


def test_jax_without_jaxlib_is_unknown(tmp_path: pathlib.Path) -> None:
    install(tmp_path, "jax", "0.12.0")
    seen = only("jax", tmp_path)
    assert isinstance(seen.build.kind, Unknown)
    assert isinstance(seen.libraries, Unknown)


@pytest.mark.parametrize(
    ("plugin", "kind"),
    [
        ("jax-cuda12-plugin", "cuda"),
        ("jax-cuda13-pjrt", "cuda"),
        ("jax-rocm60-plugin", "rocm"),
        ("jax-rocm7-pjrt", "rocm"),
        ("jax-metal", "metal"),
    ],
)
def test_jax_plugins_decide_its_kind(tmp_path: pathlib.Path, plugin: str, kind: str) -> None:
    install(tmp_path, "jax", "0.12.0")
    install(tmp_path, "jaxlib", "0.12.0")
    install(tmp_path, plugin, "0.11.2")
    seen = only("jax", tmp_path)
    assert need(seen.build.kind) == kind
    assert [(each.name, each.version) for each in seen.plugins] == [(plugin, "0.11.2")]


def test_an_old_jaxlib_has_cuda_inside(tmp_path: pathlib.Path) -> None:
    install(tmp_path, "jax", "0.4.13")
    install(tmp_path, "jaxlib", "0.4.13+cuda12.cudnn89")
    build = only("jax", tmp_path).build
    assert (need(build.kind), need(build.cuda), need(build.cudnn)) == ("cuda", "12", "8.9")


@pytest.mark.parametrize(
    ("distribution", "files", "kind"),
    [
        ("onnxruntime", [], "cpu"),
        ("onnxruntime-gpu", ["libonnxruntime_providers_cuda.so"], "cuda"),
        ("onnxruntime-training", ["libonnxruntime_providers_cuda.so"], "cuda"),
        ("onnxruntime-training", [], "cpu"),
    ],
)
def test_onnxruntime_by_its_name_and_its_providers(
    tmp_path: pathlib.Path, distribution: str, files: list[str], kind: str
) -> None:
    install(tmp_path, distribution, "1.23.0")
    for name in ["_pybind_state.py", *files]:
        write(tmp_path / "onnxruntime/capi" / name, "")
    assert need(only("onnxruntime", tmp_path).build.kind) == kind


@pytest.mark.parametrize(("owner", "kind"), [("onnxruntime", "cpu"), ("onnxruntime-gpu", "cuda")])
def test_of_two_onnxruntimes_the_files_say_which_one_they_are(
    tmp_path: pathlib.Path, owner: str, kind: str
) -> None:
    install(tmp_path, "onnxruntime", "1.31.1")
    install(tmp_path, "onnxruntime-gpu", "1.30.0")
    folder = tmp_path / "onnxruntime/capi"
    # Of the one that was overwritten, this file stays behind.
    write(folder / "libonnxruntime_providers_cuda.so", "")
    write(
        folder / "build_and_package_info.py",
        f"package_name = '{owner}'\n__version__ = '1.0'\ncuda_version = '12.8'\n",
    )
    seen = only("onnxruntime", tmp_path)
    assert (seen.distribution, seen.version) == (owner, "1.0")
    assert need(seen.build.kind) == kind
    assert kind == "cpu" or need(seen.build.cuda) == "12.8"


@pytest.mark.parametrize(
    ("distribution", "cuda"), [("cupy-cuda12x", "12"), ("cupy-cuda102", "10.2")]
)
def test_cupy_has_its_cuda_release_in_the_name(
    tmp_path: pathlib.Path, distribution: str, cuda: str
) -> None:
    install(tmp_path, distribution, "13.0.0")
    seen = only("cupy", tmp_path)
    assert seen.build.cuda == Known(cuda, f"the distribution's name, {distribution}")


def test_numba_shows_its_cuda_part(tmp_path: pathlib.Path) -> None:
    install(tmp_path, "numba", "0.63.0")
    install(tmp_path, "numba-cuda", "0.20.0")
    assert [each.name for each in only("numba", tmp_path).plugins] == ["numba-cuda"]


def test_of_two_distributions_in_one_folder_the_newest_is_taken(tmp_path: pathlib.Path) -> None:
    install(tmp_path, "tensorflow", "2.20.0")
    install(tmp_path, "tensorflow-cpu", "2.21.0")
    write(tmp_path / BUILD_INFO, "")
    assert only("tensorflow", tmp_path).distribution == "tensorflow-cpu"


@pytest.mark.parametrize(
    ("name", "line", "version"),
    [("torch", "__version__ = '2.9.0a0+git1'", "2.9.0a0+git1"), ("jax", "", "unknown")],
)
def test_a_checkout_on_the_path_is_a_framework_without_metadata(
    tmp_path: pathlib.Path, name: FrameworkName, line: str, version: str
) -> None:
    write(tmp_path / name / "__init__.py", "")
    write(tmp_path / name / "version.py", line)
    seen = only(name, tmp_path)
    assert (seen.version, seen.location) == (version, str(tmp_path / name))
    assert isinstance(seen.build.kind, Unknown)
    assert "no package metadata" in seen.build.kind.reason


def test_a_folder_named_after_a_framework_is_none(tmp_path: pathlib.Path) -> None:
    write(tmp_path / "torch" / "notes.txt", "")
    assert collect(tmp_path) == ()


def test_a_file_that_no_parser_reads_is_unknown(tmp_path: pathlib.Path) -> None:
    install(tmp_path, "torch", "2.8.0")
    write(tmp_path / "torch/version.py", "cuda = " + "(" * 100_000)
    assert isinstance(only("torch", tmp_path).build.kind, Unknown)

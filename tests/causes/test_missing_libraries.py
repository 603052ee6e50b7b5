"""Libraries that are not there, in any combination: one root cause, one command."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.kit import cause_named, command_of, machine, run
from whygpu.causes import catalogue
from whygpu.causes.evidence.library_faults import base_name
from whygpu.diagnosis.engine import diagnose
from whygpu.model.finding import Finding

RUNTIME = cause_named("cuda-runtime-missing")
CUDNN = cause_named("cudnn-missing")
MISMATCH = cause_named("cuda-version-mismatch")

EVERYTHING = (
    "libcudart.so.12",
    "libcublas.so.12",
    "libcublasLt.so.12",
    "libcufft.so.11",
    "libcusolver.so.11",
    "libcusparse.so.12",
    "libcudnn.so.9",
)
NO_COPIES = """
[cuda.copies.cudnn]
remove = true
[target.packages.nvidia-cudnn-cu12]
remove = true
"""


def without(*libraries: str, framework: str = "tensorflow", version: str = "2.20.0") -> str:
    head = f"""
only = ["{framework}"]
probes_left_out = "example"
[target.frameworks.{framework}]
version = "{version}"
"""
    return (
        head
        + NO_COPIES
        + "".join(
            f"""
[target.frameworks.{framework}.libraries."{library}"]
outcome = "not-found"
path = ""
chain = ["{library}"]
detail = "{library}: cannot open shared object file: No such file or directory"
"""
            for library in libraries
        )
    )


def commands(finding: Finding) -> list[str | None]:
    return [command_of(remedy) for remedy in finding.remedies]


def test_tensorflow_without_its_extra_is_one_root_cause_with_one_command() -> None:
    report = diagnose(machine(without(*EVERYTHING)), catalogue())
    errors = [finding for finding in report.root_causes if finding.severity == "error"]
    (root,) = errors
    assert root.code == "WG201"
    assert "libcudart.so.12, libcublas.so.12" in root.message
    assert "no copy of them" in root.message
    assert commands(root)[0] == "python -m pip install 'tensorflow[and-cuda]==2.20.0'"
    folded = [finding for finding in report.findings if finding.explained_by == "WG201"]
    assert "WG202" in [finding.code for finding in folded]


def test_the_remedy_does_not_lead_into_a_known_defect() -> None:
    (finding,) = run(RUNTIME, machine(without(*EVERYTHING, version="2.21.0"))).findings
    assert commands(finding) == ["python -m pip install 'tensorflow[and-cuda]==2.20.0'"]
    assert "libcusolver" in finding.remedies[0].text


def test_one_missing_library_has_its_wheel_named() -> None:
    (finding,) = run(RUNTIME, machine(without("libcusolver.so.11"))).findings
    assert commands(finding)[-1] == "python -m pip install nvidia-cusolver-cu12"


def test_a_wheel_that_lost_its_files_is_installed_again() -> None:
    gutted = '\n[target.packages.nvidia-cusolver-cu12]\nversion = "11.7.5.82"\n'
    (finding,) = run(RUNTIME, machine(without("libcusolver.so.11") + gutted)).findings
    assert commands(finding) == [
        "python -m pip install --force-reinstall --no-deps nvidia-cusolver-cu12==11.7.5.82"
    ]


def test_what_another_library_needs_is_named_with_it() -> None:
    text = without("libcusparse.so.12") + (
        '[target.frameworks.tensorflow.libraries."libcufft.so.11"]\n'
        'outcome = "dependency-missing"\nchain = ["libcufft.so.11", "libnvJitLink.so.12"]\n'
    )
    (finding,) = run(RUNTIME, machine(text)).findings
    assert "libnvJitLink.so.12 (for libcufft.so.11) and libcusparse.so.12" in finding.message
    assert commands(finding)[-1] == (
        "python -m pip install nvidia-nvjitlink-cu12 nvidia-cusparse-cu12"
    )


@pytest.mark.parametrize(
    ("version", "cuda", "cudnn", "image", "conda"),
    [
        ("1.12.0", "9.0", "7", "1.12.0-gpu-py3", "-c anaconda cudatoolkit=9.0 cudnn=7"),
        ("1.15.5", "10.0", "7", "1.15.5-gpu-py3", "-c anaconda cudatoolkit=10.0 cudnn=7"),
        ("2.11.0", "11.2", "8", "2.11.0-gpu", "-c conda-forge cudatoolkit=11.2 cudnn=8"),
    ],
)
def test_old_releases_get_the_cuda_of_their_time(
    version: str, cuda: str, cudnn: str, image: str, conda: str
) -> None:
    build = f'\n[target.frameworks.tensorflow.build]\ncuda = "{cuda}"\ncudnn = "{cudnn}"\n'
    (finding,) = run(
        RUNTIME, machine(without("libcublas.so.9.0", version=version) + build)
    ).findings
    first, second = commands(finding)
    assert first == f"docker run --gpus all -it tensorflow/tensorflow:{image}"
    assert second is not None
    assert conda in second


@each(
    ("framework", "version", "words"),
    [
        ("tensorflow", "1.12.0", "importing TensorFlow fails"),
        ("tensorflow", "1.15.5", "TensorFlow continues without the GPU"),
        ("torch", "2.8.0", "importing PyTorch fails"),
        ("jax", "0.7.2", "JAX continues without the GPU"),
    ],
)
def test_the_message_says_what_each_framework_does(
    framework: str, version: str, words: str
) -> None:
    text = without("libcublas.so.12", framework=framework, version=version)
    (finding,) = run(RUNTIME, machine(text)).findings
    assert words in finding.message


def test_pytorch_is_reinstalled_from_the_index_it_came_from() -> None:
    text = without("libcublas.so.12", framework="torch", version="2.8.0+cu128")
    (finding,) = run(RUNTIME, machine(text)).findings
    assert commands(finding)[0] == (
        "python -m pip install --force-reinstall torch==2.8.0 "
        "--index-url https://download.pytorch.org/whl/cu128"
    )


def test_jax_gets_the_extra_of_its_cuda_release() -> None:
    text = without("libcublas.so.13", framework="jax", version="0.11.2")
    snapshot = machine(f'{text}\n[target.frameworks.jax.build]\ncuda = "13"\n')
    (finding,) = run(RUNTIME, snapshot).findings
    assert commands(finding) == [
        "python -m pip install 'jax[cuda13]==0.11.2'",
        "python -m pip install nvidia-cublas",
    ]


def test_where_copies_could_not_be_looked_for_the_claim_is_weaker() -> None:
    text = without("libcusolver.so.11").replace(NO_COPIES, "")
    snapshot = machine(f'cuda = {{unknown = "/usr: permission denied"}}\n{text}')
    (finding,) = run(RUNTIME, snapshot).findings
    assert finding.confidence == "likely"
    assert "could not be searched: /usr: permission denied" in finding.message


def toolkit_13(*libraries: str) -> str:
    """A toolkit of another release that has these libraries in its own version."""
    return "".join(
        f"""
[cuda.copies.{base_name(library)}]
soname = "lib{base_name(library)}.so.13"
path = "/usr/local/cuda/lib64/lib{base_name(library)}.so.13"
"""
        for library in libraries
    )


def test_another_cuda_release_is_the_root_of_a_cudnn_missing_beside_it() -> None:
    toolkit = toolkit_13(*(library for library in EVERYTHING if "cudnn" not in library))
    report = diagnose(machine(without(*EVERYTHING) + toolkit), catalogue())
    (root,) = [finding for finding in report.root_causes if finding.severity == "error"]
    assert root.code == "WG204"
    assert "/usr/local/cuda/lib64/libcudart.so.13" in root.message
    assert "nvidia-cudnn-cu12" in (commands(root)[-1] or "")


def test_a_lone_runtime_of_another_release_does_not_make_it_a_matter_of_versions() -> None:
    snapshot = machine(without(*EVERYTHING) + toolkit_13("libcudart.so.12"))
    report = diagnose(snapshot, catalogue())
    (root,) = [finding for finding in report.root_causes if finding.severity == "error"]
    assert root.code == "WG201"
    assert "libcudart.so.12" in root.message


def test_cudnn_alone_is_its_own_root_cause() -> None:
    snapshot = machine(without("libcudnn.so.9"))
    (finding,) = run(CUDNN, snapshot).findings
    assert "this machine has no copy of it" in finding.message
    assert run(RUNTIME, snapshot).status == "passed"
    assert run(MISMATCH, snapshot).status == "passed"

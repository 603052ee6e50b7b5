"""cuDNN of another major or minor release, and the copy that is taken."""

from __future__ import annotations

from tests.cases import each
from tests.kit import cause_named, command_of, machine, run
from whygpu.causes import catalogue
from whygpu.diagnosis.engine import diagnose

MISMATCH = cause_named("cudnn-version-mismatch")
DIFFERS = cause_named("cudnn-copy-differs")
SITE = "~/venv/lib/python3.11/site-packages"


def loaded(version: str, framework: str = "tensorflow", build: str = "") -> str:
    return f"""
only = ["{framework}"]
{build}
[target.frameworks.{framework}.libraries."libcudnn.so.9"]
path = "/opt/cudnn/lib/libcudnn.so.9"
searched = [{{path = "/opt/cudnn/lib", kind = "ld-library-path", result = "found"}}]
[environment.variables.LD_LIBRARY_PATH]
value = "/opt/cudnn/lib"
[[cuda.copies]]
name = "cudnn"
soname = "libcudnn.so.9"
path = "/opt/cudnn/lib/libcudnn.so.9"
version = "{version}"
origin = "ld-library-path"
owner = ""
[[cuda.copies]]
name = "cudnn"
soname = "libcudnn.so.9"
path = "{SITE}/nvidia/cudnn/lib/libcudnn.so.9"
version = "9.27.0"
origin = "wheel"
owner = "nvidia-cudnn-cu12 9.27.0.42"
"""


@each(
    ("version", "status"),
    [("9.2.9", "found"), ("9.3.0", "passed"), ("9.10.2", "passed"), ("10.0.0", "passed")],
)
def test_the_minor_release_that_tensorflow_was_built_with_is_enough(
    version: str, status: str
) -> None:
    assert run(MISMATCH, machine(loaded(version))).status == status


def test_an_older_copy_on_the_search_list_is_taken_off_it() -> None:
    (finding,) = run(MISMATCH, machine(loaded("9.1.0"))).findings
    assert "needs cuDNN 9.3 or newer" in finding.message
    assert "9.1.0 in /opt/cudnn/lib/libcudnn.so.9, found through LD_LIBRARY_PATH" in (
        finding.message
    )
    assert finding.confidence == "likely"
    assert [command_of(remedy) for remedy in finding.remedies] == [
        "whygpu run -- python PROGRAM.py",
        "unset LD_LIBRARY_PATH",
    ]


def test_jax_tells_its_own_floor() -> None:
    build = '[target.frameworks.jax.build]\ncudnn = "9.8.0"'
    (finding,) = run(MISMATCH, machine(loaded("9.5.0", "jax", build))).findings
    assert "JAX then refuses to use the GPU" in finding.message


def test_without_a_floor_on_record_nothing_is_claimed() -> None:
    assert run(MISMATCH, machine(loaded("9.1.0", "torch"))).status == "passed"


def test_too_old_a_copy_explains_that_it_is_another_one() -> None:
    text = loaded("9.1.0") + "\n[probes.tensorflow]\noperations = []\n"
    report = diagnose(machine(text), catalogue())
    explained = {finding.code: finding.explained_by for finding in report.findings}
    assert explained["WG205"] is None
    assert explained["WG208"] == "WG205"


def test_the_difference_names_both_copies() -> None:
    (finding,) = run(DIFFERS, machine(loaded("9.14.0"))).findings
    assert "loads cuDNN 9.14.0 from /opt/cudnn/lib/libcudnn.so.9" in finding.message
    assert "nvidia-cudnn-cu12 9.27.0.42 installed 9.27.0" in finding.message
    assert finding.severity == "warning"
    assert [command_of(remedy) for remedy in finding.remedies] == [
        "whygpu run -- python PROGRAM.py",
        "unset LD_LIBRARY_PATH",
    ]


def test_the_build_number_of_a_wheel_is_no_difference() -> None:
    text = loaded("9.27.0").replace(
        'version = "9.27.0"\norigin = "wheel"', 'version = "9.27.0.42"\norigin = "wheel"'
    )
    assert run(DIFFERS, machine(text)).status == "passed"


def test_a_copy_that_was_not_seen_is_a_gap() -> None:
    text = loaded("9.14.0").replace(
        'lib/libcudnn.so.9"\nsearched', 'lib64/libcudnn.so.9"\nsearched'
    )
    assert run(DIFFERS, machine(text)).status == "undetermined"


def test_a_wheel_of_another_major_release_is_replaced_and_not_installed_again() -> None:
    text = f"""
        only = ["tensorflow"]
        [target.frameworks.tensorflow.libraries."libcudnn.so.9"]
        outcome = "not-found"
        path = ""
        chain = ["libcudnn.so.9"]
        [cuda.copies.cudnn]
        soname = "libcudnn.so.8"
        path = "{SITE}/nvidia/cudnn/lib/libcudnn.so.8"
        version = "8.9.7"
        origin = "wheel"
        owner = "nvidia-cudnn-cu12 8.9.7.29"
        [target.packages.nvidia-cudnn-cu12]
        version = "8.9.7.29"
    """
    (finding,) = run(MISMATCH, machine(text)).findings
    (remedy,) = finding.remedies
    assert command_of(remedy) == "python -m pip install 'nvidia-cudnn-cu12==9.*'"
    assert "8.9.7.29 is another major release" in remedy.text

"""TensorFlow as it is published: what whygpu says of real installations on a machine with a GPU."""

from __future__ import annotations

from tests.kit import command_of
from tests.machines import healthy
from tests.targets import python_of
from whygpu.causes import catalogue
from whygpu.collectors.collect import collect
from whygpu.diagnosis.engine import diagnose
from whygpu.host.local import LocalHost
from whygpu.model.finding import Finding


def errors(target: str) -> tuple[Finding, ...]:
    """Root causes in a real environment, if this machine had the example's GPU and driver."""
    good = healthy.healthy()
    snapshot = collect(LocalHost(), python_of(target))._replace(
        graphics=good.graphics, driver=good.driver
    )
    roots = diagnose(snapshot, catalogue()).root_causes
    return tuple(finding for finding in roots if finding.severity == "error")


def test_2_21_with_its_cuda_wheels_does_not_search_the_folder_of_cusolver() -> None:
    (root,) = errors("tensorflow-2.21-cuda")
    assert (root.code, root.subject, root.confidence) == ("WG203", "tensorflow", "certain")
    assert "needs libcusolver.so.11; it is installed" in root.message
    assert "nvidia/cusolver/lib" in root.message
    assert "libtensorflow_framework.so.2" in root.message
    commands = [command_of(remedy) or "" for remedy in root.remedies]
    assert commands[0].startswith("export LD_LIBRARY_PATH=")
    assert commands[1].startswith("ln -s ")
    assert commands[2] == "python -m pip install 'tensorflow[and-cuda]==2.20.0'"


def test_2_21_without_its_cuda_wheels_has_one_root_cause() -> None:
    (root,) = errors("tensorflow-2.21")
    # A CUDA toolkit of another release may be on the machine that runs this.
    assert root.code in ("WG201", "WG204")
    assert command_of(root.remedies[0]) == "python -m pip install 'tensorflow[and-cuda]==2.20.0'"


def test_1_12_names_the_library_that_stops_its_import() -> None:
    (root,) = errors("tensorflow-gpu-1.12")
    assert root.code in ("WG201", "WG204")
    assert "libcublas.so.9.0" in root.message
    assert "importing TensorFlow fails" in root.message


def test_jax_with_its_cuda_wheels_has_nothing_wrong_with_it() -> None:
    assert errors("jax-cuda12") == ()

"""Which container this is, and what of the driver the host passed in."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases import each
from tests.collectors.transcripts import file, host
from whygpu.collectors import container
from whygpu.model.observed import Absent, Known, Unknown
from whygpu.model.system import Container, ContainerRuntime

MARKER = {"stat /.dockerenv": file("/.dockerenv")}


def mounts(*points: str) -> dict[str, Any]:
    lines = [f"{i} 1 0:{i} / {point} rw - ext4 /dev/sda1 rw" for i, point in enumerate(points)]
    return {"read /proc/self/mountinfo": "\n".join(lines) + "\n"}


def runtime_of(answers: dict[str, Any], environ: dict[str, str] | None = None) -> ContainerRuntime:
    found = container.collect(host(answers, environ))
    assert isinstance(found, Known)
    return found.value.runtime


def test_a_plain_machine_is_no_container() -> None:
    machine = host({"read /proc/1/cgroup": "0::/init.scope\n", **mounts("/", "/home")})
    assert isinstance(container.collect(machine), Absent)


def test_docker_passed_the_driver_in() -> None:
    library = "/usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06"
    passed = ("/dev/nvidia0", "/proc/driver/nvidia", "/usr/bin/nvidia-smi", library)
    machine = host({**MARKER, **mounts("/", "/etc/hosts", "/usr/lib/libcurl.so.4", *passed)})
    expected = Container("docker", Known(tuple(sorted(passed)), "/proc/self/mountinfo"))
    assert container.collect(machine) == Known(expected, "/.dockerenv")
    machine.assert_consumed()


def test_docker_passed_nothing_in() -> None:
    found = container.collect(host({**MARKER, **mounts("/", "/etc/hosts")}))
    assert isinstance(found, Known)
    assert isinstance(found.value.driver_mounts, Absent)


def test_mounts_that_cannot_be_read_are_not_missing() -> None:
    found = container.collect(host(MARKER))
    assert isinstance(found, Known)
    assert isinstance(found.value.driver_mounts, Unknown)


def test_a_virtual_machine_made_from_an_image_is_no_container() -> None:
    found = container.collect(host({**MARKER, **mounts("/", "/dev/shm")}))
    assert isinstance(found, Absent)
    assert "left over" in found.source


@each(
    ("groups", "runtime"),
    [
        ("0::/kubepods.slice/kubepods-burstable.slice/cri-containerd-ab.scope", "kubernetes"),
        ("0::/machine.slice/libpod-ab.scope", "podman"),
        ("12:memory:/docker/ab", "docker"),
        ("0::/system.slice/containerd.service", "containerd"),
        ("0::/lxc/web", "lxc"),
    ],
)
def test_the_group_of_the_first_process_names_the_runtime(groups: str, runtime: str) -> None:
    assert runtime_of({"read /proc/1/cgroup": groups}) == runtime


@pytest.mark.parametrize(
    ("name", "runtime"),
    [
        ("KUBERNETES_SERVICE_HOST", "kubernetes"),
        ("APPTAINER_CONTAINER", "apptainer"),
        ("SINGULARITY_CONTAINER", "apptainer"),
    ],
)
def test_variables_name_the_runtime(name: str, runtime: str) -> None:
    assert runtime_of({}, {name: "x"}) == runtime


def test_marker_files_name_the_runtime() -> None:
    assert runtime_of({"stat /run/.containerenv": file("/run/.containerenv")}) == "podman"
    assert runtime_of({"read /run/systemd/container": "systemd-nspawn\n"}) == "nspawn"
    assert runtime_of({"read /run/systemd/container": "something-new\n"}) == "other"


def test_a_mac_has_no_containers() -> None:
    assert isinstance(container.collect(host(system="Darwin")), Absent)

"""The container around this process, and the NVIDIA driver files mounted into it."""

from __future__ import annotations

import re

from whygpu.host.base import Host
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.model.system import Container, ContainerRuntime

MOUNTS = "/proc/self/mountinfo"

CGROUP_WORDS: tuple[tuple[str, ContainerRuntime], ...] = (
    ("kubepods", "kubernetes"),
    ("libpod", "podman"),
    ("docker", "docker"),
    ("containerd", "containerd"),
    ("lxc", "lxc"),
    ("machine.slice/machine-", "nspawn"),
)

DRIVER_FILE = re.compile(
    r"/dev/nvidia.*|/dev/dxg|/proc/driver/nvidia.*|.*/libcuda\.so[.\d]*|.*/libnvidia-[^/]*\.so[.\d]*"
    r"|.*/bin/nvidia-[^/]*|/usr/lib/wsl(/.*)?|/usr/local/nvidia(/.*)?"
)


def collect(host: Host) -> Observed[Container]:
    if host.platform.system != "Linux":
        return Absent(f"containers exist on Linux only; this is {host.platform.system}")
    mounts = _mount_points(host)
    runtime = _runtime(host, mounts)
    if not isinstance(runtime, Known):
        return runtime
    return Known(Container(runtime.value, _driver_mounts(mounts)), runtime.source)


def _runtime(host: Host, mounts: Observed[tuple[str, ...]]) -> Observed[ContainerRuntime]:
    """The program that created the container. The most specific markers are checked first."""
    environ = host.environ
    if "KUBERNETES_SERVICE_HOST" in environ:
        return Known("kubernetes", "environment variable KUBERNETES_SERVICE_HOST")
    for name in ("APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"):
        if name in environ:
            return Known("apptainer", f"environment variable {name}")
    if isinstance(host.stat("/run/.containerenv"), Known):
        return Known("podman", "/run/.containerenv")
    by_group = _runtime_of_first_process(host)
    if by_group is not None:
        return by_group
    if isinstance(host.stat("/.dockerenv"), Known):
        return _docker_or_leftover(mounts)
    declared = host.read("/run/systemd/container")
    if isinstance(declared, Known):
        return Known(_declared(declared.value.strip()), "/run/systemd/container")
    return Absent("/.dockerenv, /run/.containerenv, /run/systemd/container, /proc/1/cgroup")


def _runtime_of_first_process(host: Host) -> Known[ContainerRuntime] | None:
    groups = host.read("/proc/1/cgroup")
    if isinstance(groups, Known):
        for word, runtime in CGROUP_WORDS:
            if word in groups.value:
                return Known(runtime, "/proc/1/cgroup")
    return None


def _docker_or_leftover(mounts: Observed[tuple[str, ...]]) -> Observed[ContainerRuntime]:
    # Docker mounts files such as /etc/hosts into every container. Virtual machines that are started
    # from a container image keep the marker file, but have no such mounts.
    if isinstance(mounts, Known) and not {"/etc/hosts", "/etc/hostname"} & set(mounts.value):
        return Absent(
            "/.dockerenv exists, but Docker mounted nothing: the file is left over from an image"
        )
    return Known("docker", "/.dockerenv")


def _declared(word: str) -> ContainerRuntime:
    names: dict[str, ContainerRuntime] = {
        "docker": "docker",
        "podman": "podman",
        "lxc": "lxc",
        "lxc-libvirt": "lxc",
        "systemd-nspawn": "nspawn",
    }
    return names.get(word, "other")


def _mount_points(host: Host) -> Observed[tuple[str, ...]]:
    text = host.read(MOUNTS)
    if not isinstance(text, Known):
        return Unknown(f"{MOUNTS} cannot be read")
    lines = (line.split(" ") for line in text.value.splitlines())
    return Known(tuple(fields[4] for fields in lines if len(fields) > 4), MOUNTS)


def _driver_mounts(mounts: Observed[tuple[str, ...]]) -> Observed[tuple[str, ...]]:
    if not isinstance(mounts, Known):
        return mounts
    found = tuple(sorted({point for point in mounts.value if DRIVER_FILE.fullmatch(point)}))
    return Known(found, MOUNTS) if found else Absent(f"NVIDIA driver files in {MOUNTS}")

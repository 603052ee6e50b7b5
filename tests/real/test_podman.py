"""`check` in real containers of podman says which layer withheld the GPU.

The machine that runs this need not have one: folders that are mounted over the PCI bus and over the
kernel modules are what the host shows to a container.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

_PODMAN = ("podman", "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs")
_RUN = (
    *("run", "--rm", "--rootfs"),
    *("--network", "none", "--security-opt", "seccomp=unconfined"),
    *("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"),
)
_ROOT = "/:O"
"""The files of this machine, with a layer above them that is thrown away."""
_ASSIGNED = "GPU-3f2c9a10-0000-0000-0000-000000000000"


def in_container(
    runtime: str, *options: str, command: tuple[str, ...]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*_PODMAN, "--runtime", runtime, *_RUN, *options, _ROOT, *command],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def runtime() -> str:
    """The OCI runtime that starts containers here; not all of them know every kind of cgroups."""
    if shutil.which("podman") is None or os.geteuid() != 0:
        pytest.skip("there is no podman that root can use")
    reasons = []
    for name in filter(shutil.which, ("crun", "runc")):
        started = in_container(name, command=("true",))
        if not started.returncode:
            return name
        reasons.append(started.stderr.strip())
    pytest.skip(f"podman starts no container here: {reasons}")


@pytest.fixture
def host(tmp_path: pathlib.Path) -> dict[str, tuple[str, ...]]:
    """The options that show a part of a host with a GPU."""
    device = tmp_path / "pci/0000:65:00.0"
    device.mkdir(parents=True)
    for name, text in (("vendor", "0x10de"), ("device", "0x2330"), ("class", "0x030200")):
        (device / name).write_text(f"{text}\n")
    version = tmp_path / "modules/nvidia/version"
    version.parent.mkdir(parents=True)
    version.write_text("580.159.04\n")
    return {
        "gpu": ("-v", f"{tmp_path / 'pci'}:/sys/bus/pci/devices"),
        "module": ("-v", f"{tmp_path / 'modules'}:/sys/module"),
    }


@pytest.mark.parametrize(
    ("shown", "options", "said"),
    [
        (("gpu",), (), "kernel module is not loaded"),
        (("gpu", "module"), (), "/dev/nvidia0 was not passed in"),
        (
            ("gpu", "module"),
            ("-e", "NVIDIA_VISIBLE_DEVICES=all"),
            "another runtime has started this container",
        ),
        (
            ("gpu", "module"),
            ("-e", "KUBERNETES_SERVICE_HOST=10.0.0.1"),
            "nothing shows that its manifest asks for one",
        ),
        (
            ("gpu", "module"),
            ("-e", "KUBERNETES_SERVICE_HOST=10.0.0.1", "-e", f"NVIDIA_VISIBLE_DEVICES={_ASSIGNED}"),
            "the runtime of the node withheld it",
        ),
        (
            ("gpu", "module"),
            ("--device", "/dev/null:/dev/nvidia0"),
            "not libcuda.so.1 of the host's driver",
        ),
    ],
)
def test_the_layer_that_withheld_the_gpu(
    runtime: str,
    host: dict[str, tuple[str, ...]],
    shown: tuple[str, ...],
    options: tuple[str, ...],
    said: str,
) -> None:
    mounts = [word for part in shown for word in host[part]]
    check = (sys.executable, "-m", "whygpu", "check", "--no-probe", "--json")
    done = in_container(runtime, *mounts, *options, command=check)
    report = json.loads(done.stdout)
    assert [finding["code"] for finding in report["findings"]][:1] == ["WG801"], done.stderr
    assert said in report["findings"][0]["message"]

"""Advice for containers, by the tool that runs them: the options of Docker mean nothing to others."""

from __future__ import annotations

from whygpu.model.finding import Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.observed import Known
from whygpu.model.remedy import Steps, command_line, shell_script
from whygpu.model.snapshot import Snapshot
from whygpu.model.system import ContainerRuntime

# Images of NVIDIA have k8s in their names, and run anywhere.
ON_A_CLUSTER = late(
    r"\bkubelet\b|[Kk]ubernetes|\bkubectl\b|kubepods|k8s-device-plugin|(?<![/\w])k8s\b(?!/)"
)
_DOCKER = late(r"\bdocker (?:run|compose|exec|start)\b|docker: Error|Error response from daemon")
_PODMAN = late(r"\bpodman\b")


def runtime_of(machine: Snapshot) -> ContainerRuntime | None:
    """What runs this container; None outside of one."""
    container = machine.system.container
    return container.value.runtime if isinstance(container, Known) else None


def runtime_in_log(log: Log) -> ContainerRuntime:
    """Docker, unless the log names only another one."""
    if log.says(ON_A_CLUSTER) and not log.says(_DOCKER):
        return "kubernetes"
    return "podman" if log.says(_PODMAN) else "docker"


NVIDIA_RUNTIME_OF_DOCKER = Remedy(
    "On the node, make NVIDIA's runtime the default of Docker, and restart it; then restart the "
    "plugin.",
    Steps(
        (
            command_line("sudo nvidia-ctk runtime configure --runtime=docker --set-as-default"),
            command_line("sudo systemctl restart docker"),
        )
    ),
)
WINDOWS_DRIVER = Remedy(
    "Install NVIDIA's current driver in Windows, and no driver inside WSL. Then, in PowerShell:",
    shell_script("wsl --update; wsl --shutdown", everywhere=True),
)
NVIDIA_RUNTIME_ON_NODE = Remedy(
    "On the node, make NVIDIA's runtime the default of containerd, and restart it; then restart "
    "the plugin.",
    Steps(
        (
            command_line("sudo nvidia-ctk runtime configure --runtime=containerd --set-as-default"),
            command_line("sudo systemctl restart containerd"),
        )
    ),
)
_DOCKER_SHARED = (
    command_line("docker run --shm-size=8g ..."),
    command_line("docker run --ipc=host ..."),
)
_PODMAN_SHARED = (
    command_line("podman run --shm-size=8g ..."),
    command_line("podman run --ipc=host ..."),
)


def more_shared_memory(runtime: ContainerRuntime | None) -> tuple[Remedy, ...]:
    """How to make /dev/shm larger, which Docker limits to 64 MiB."""
    if runtime == "kubernetes":
        return (
            Remedy(
                "Give the pod more shared memory: mount a volume of the kind emptyDir with "
                "medium: Memory at /dev/shm."
            ),
        )
    if runtime is None or runtime in ("apptainer", "lxc", "nspawn"):
        return (
            Remedy(
                "Make the shared memory of the machine larger, until its next restart.",
                command_line("sudo mount -o remount,size=8G /dev/shm"),
            ),
        )
    more, of_host = _PODMAN_SHARED if runtime == "podman" else _DOCKER_SHARED
    return (
        Remedy("Start the container with more shared memory.", more),
        Remedy("Or use the host's shared memory.", of_host),
    )

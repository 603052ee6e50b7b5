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
_APPTAINER = late(r"\b(?:apptainer|singularity)\b")
ON_A_MAC = late(
    r"\b(?:[Mm]ac ?[Bb]ook|mac ?OS|Mac (?:[Mm]ini|[Ss]tudio|[Pp]ro)|Apple (?:M\d|[Ss]ilicon))"
)


def runtime_of(machine: Snapshot) -> ContainerRuntime | None:
    """What runs this container; None outside of one."""
    container = machine.system.container
    return container.value.runtime if isinstance(container, Known) else None


def runtime_in_log(log: Log) -> ContainerRuntime:
    """Docker, unless the log names only another one."""
    if log.says(ON_A_CLUSTER) and not log.says(_DOCKER):
        return "kubernetes"
    if log.says(_APPTAINER) and not log.says(_DOCKER):
        return "apptainer"
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
START_UNDER_WSL = Remedy(
    "Start the container with GPUs. Docker Desktop contains NVIDIA's container toolkit, so that "
    "nothing has to be installed for it.",
    command_line("docker run --gpus all ..."),
)
NEWER_TOOLKIT = Remedy(
    "Update Docker Desktop to 4.31 or newer or, for a Docker Engine inside WSL, NVIDIA's container "
    "toolkit to 1.15 or newer: older ones do not work with drivers since 555."
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


_UNLABELLED = {
    "docker": command_line("docker run --security-opt label=disable --gpus all ..."),
    "podman": command_line(
        "podman run --security-opt label=disable --device nvidia.com/gpu=all ..."
    ),
}


def without_label(runtime: ContainerRuntime) -> tuple[Remedy, ...]:
    if runtime not in _UNLABELLED:
        return ()
    text = "If the host uses SELinux, start it without a security label."
    return (Remedy(text, _UNLABELLED[runtime]),)


INSTALL_TOOLKIT = (
    "install NVIDIA's container toolkit (the package nvidia-container-toolkit) on the host; the "
    "command depends on the host's distribution: "
    "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html"
)
_REGISTER_TOOLKIT = Remedy(
    "Register it with Docker.",
    Steps(
        (
            command_line("sudo nvidia-ctk runtime configure --runtime=docker"),
            command_line("sudo systemctl restart docker"),
        )
    ),
)
_TOOLKIT_IF_THAT_FAILS = (Remedy(f"If that fails, {INSTALL_TOOLKIT}"), _REGISTER_TOOLKIT)
TOOLKIT_IF_THAT_WORKS = (Remedy(f"If that works, {INSTALL_TOOLKIT}"), _REGISTER_TOOLKIT)


BY_CDI = (
    Remedy(
        "If that works, write the description of the GPUs (CDI) again; the host needs NVIDIA's "
        "container toolkit for it, and a new description after each change of driver or GPU.",
        Steps(
            (
                command_line("sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"),
                command_line("nvidia-ctk cdi list"),
            )
        ),
    ),
    Remedy(
        "Then name the GPU as a device. Podman knows such names since 4.1, and older releases than "
        "5.0 ignore --gpus.",
        command_line("podman run --device nvidia.com/gpu=all ..."),
    ),
)


_WAYS_TO_PASS_IN: dict[ContainerRuntime, tuple[Remedy, ...]] = {
    "kubernetes": (
        Remedy(
            "Request a GPU in the pod: resources: {limits: {nvidia.com/gpu: 1}}. The node "
            "needs NVIDIA's device plugin; this command shows the GPUs that it offers.",
            shell_script("kubectl describe nodes | grep nvidia.com/gpu"),
        ),
    ),
    "podman": (
        Remedy(
            "Start the container with GPUs; the host needs a CDI description of them.",
            Steps(
                (
                    command_line("sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"),
                    command_line("podman run --device nvidia.com/gpu=all ..."),
                )
            ),
        ),
    ),
    "apptainer": (
        Remedy(
            "Start the container with --nv, also with the older command singularity.",
            command_line("apptainer exec --nv IMAGE.sif python"),
        ),
    ),
    "lxc": (
        Remedy(
            "Pass the GPU and the host's driver into the container.",
            Steps(
                (
                    command_line("incus config device add NAME gpu gpu"),
                    command_line("incus config set NAME nvidia.runtime=true"),
                )
            ),
        ),
    ),
    "containerd": (
        Remedy("Start the container with GPUs.", command_line("nerdctl run --gpus all ...")),
        *_TOOLKIT_IF_THAT_FAILS,
    ),
    "nspawn": (
        Remedy(
            "Bind the device nodes and the driver's libraries into the container.",
            command_line(
                "systemd-nspawn --bind=/dev/nvidia0 --bind=/dev/nvidiactl --bind=/dev/nvidia-uvm "
                "..."
            ),
        ),
    ),
}
_WITH_DOCKER = (
    Remedy("Start the container with GPUs.", command_line("docker run --gpus all ...")),
    *_TOOLKIT_IF_THAT_FAILS,
)


def ways_to_pass_in(runtime: ContainerRuntime) -> tuple[Remedy, ...]:
    """How a container of this kind gets a GPU; an unknown kind is taken for Docker."""
    return _WAYS_TO_PASS_IN.get(runtime, _WITH_DOCKER)

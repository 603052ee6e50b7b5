"""The device files of GPUs that are not NVIDIA's: who may open them, and how to get there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from whygpu.model.driver import DeviceNode
from whygpu.model.finding import Remedy
from whygpu.model.observed import Known
from whygpu.model.remedy import Action, a_name, command_line, shell_script
from whygpu.model.snapshot import Snapshot

RenderVendor = Literal["amd", "intel"]

_NOBODY = ("root", "nobody", "nogroup")
"""Nobody joins the first; the others stand for a group of the host that a container does not know."""


def unusable(nodes: Sequence[DeviceNode]) -> str | None:
    """Why none of these files can be opened, when one is enough; None if one can, or if there
    is none."""
    if not nodes or any(node.usable for node in nodes):
        return None
    first = nodes[0]
    return f"this user may not open {first.path} ({first.mode}, group {first.group})"


def closed_groups(nodes: Sequence[DeviceNode]) -> tuple[str, ...]:
    """The groups whose members may open the files that this user may not."""
    names = (
        node.group
        for node in nodes
        if not node.usable and node.mode[4:6] == "rw" and node.group not in _NOBODY
    )
    return tuple(dict.fromkeys(names))


def access_remedies(
    machine: Snapshot, nodes: Sequence[DeviceNode], vendor: RenderVendor
) -> Iterator[Remedy]:
    """How to get to the files of this vendor's GPUs."""
    container = machine.system.container
    if isinstance(container, Known):
        yield _for_container(container.value.runtime, vendor)
        return
    groups = closed_groups(nodes)
    for group in groups:
        yield Remedy(
            f"Join the group that owns the file ({group}), and log in again.",
            shell_script("sudo usermod -aG ", a_name(group), ' "$USER"'),
        )
    if not groups:
        yield Remedy(
            "Give the files to a group with a rule of udev, as the driver's package does, and join "
            "that group."
        )


def _for_container(runtime: str, vendor: RenderVendor) -> Remedy:
    if runtime == "podman":
        return Remedy(
            "Start the container with the device files and with your groups of the host.",
            _PODMAN[vendor],
        )
    if runtime == "apptainer" and vendor == "amd":
        return Remedy(
            "Start the container with AMD's device files.",
            command_line("apptainer exec --rocm IMAGE COMMAND"),
        )
    if runtime == "kubernetes":
        return Remedy(
            "Request the GPU in the pod's resource limits, from the device plugin of its maker "
            "(amd.com/gpu, gpu.intel.com/i915 or gpu.intel.com/xe)."
        )
    return Remedy(
        "Start the container with the device files and the numbers of their groups, on the host:",
        DOCKER[vendor],
    )


_PODMAN: dict[RenderVendor, Action] = {
    "amd": command_line(
        "podman run --device /dev/kfd --device /dev/dri --group-add keep-groups IMAGE"
    ),
    "intel": command_line("podman run --device /dev/dri --group-add keep-groups IMAGE"),
}
DOCKER: dict[RenderVendor, Action] = {
    "amd": shell_script(
        'docker run --device /dev/kfd --device /dev/dri --group-add "$(stat -c %g /dev/kfd)" '
        '--group-add "$(stat -c %g /dev/dri/renderD128)" IMAGE'
    ),
    "intel": shell_script(
        'docker run --device /dev/dri --group-add "$(stat -c %g /dev/dri/renderD128)" IMAGE'
    ),
}
"""With the numbers of the groups: the image may not know the names that the host has for them."""

"""How to get the kernel modules of the NVIDIA driver to work."""

from __future__ import annotations

from whygpu.causes.evidence.log_cuda_start import NOT_READY, named, story_of
from whygpu.causes.evidence.log_kernel_module import BUSY
from whygpu.causes.evidence.scheduler_advice import ASK_SLURM, ON_THAT_NODE, SLURM
from whygpu.model.finding import Remedy
from whygpu.model.log import Log
from whygpu.model.remedy import Steps, command_line, shell_script

READ_KERNEL_LOG = Remedy(
    "Look for the driver's messages in the kernel log.",
    shell_script("sudo dmesg | grep -i -E 'nvrm|nvidia'"),
)


def ways_to_load(holders: tuple[str, ...]) -> tuple[Remedy, ...]:
    if "vfio-pci" in holders:
        return (
            Remedy(
                "The card is reserved for virtual machines (vfio-pci). Run the program in the "
                "virtual machine that owns it, or remove the reservation from the kernel's command "
                "line and restart."
            ),
        )
    first = (
        Remedy(
            "Put nouveau on the deny list, rebuild the initial ramdisk "
            "(update-initramfs -u or dracut -f) and restart.",
            shell_script(
                "printf 'blacklist nouveau\\noptions nouveau modeset=0\\n' | "
                "sudo tee /etc/modprobe.d/no-nouveau.conf"
            ),
        )
        if "nouveau" in holders
        else Remedy(
            "Load it; if that fails, the error gives the reason.",
            command_line("sudo modprobe nvidia"),
        )
    )
    return (
        first,
        Remedy(
            "If modprobe fails with 'Key was rejected by service', Secure Boot is on and the module's "
            "key is not enrolled. Enrol it and restart, or turn Secure Boot off.",
            command_line("mokutil --sb-state"),
        ),
        Remedy(
            "If it fails with 'Module nvidia not found', the module was not built for the running kernel. "
            "Install that kernel's headers and build it.",
            Steps((command_line("sudo dkms autoinstall"), command_line("sudo modprobe nvidia"))),
        ),
        Remedy(
            "If it fails with 'No such device', this driver does not support the card. For an old "
            "card, the kernel log names the legacy driver that does; install that one.",
            READ_KERNEL_LOG.action,
        ),
        Remedy(
            "On a laptop with two graphics chips, the NVIDIA chip may be turned off.",
            command_line("sudo prime-select on-demand"),
        ),
    )


_AFTER_SLEEP = Remedy(
    "End all CUDA programs and reload nvidia_uvm; this helps after the machine was suspended.",
    Steps((command_line("sudo modprobe -r nvidia_uvm"), command_line("sudo modprobe nvidia_uvm"))),
)

_SEE_MODE = Remedy(
    "Check whether the GPU's compute mode is Default, and which processes use it. Another mode is "
    "the reason; `sudo nvidia-smi -c DEFAULT` resets it.",
    shell_script("nvidia-smi --query-gpu=index,compute_mode --format=csv; nvidia-smi"),
)


def log_remedies(log: Log) -> tuple[Remedy, ...]:
    if named(log, NOT_READY):
        return (
            Remedy(
                "Start the fabric manager; it must have exactly the driver's version.",
                command_line("sudo systemctl enable --now nvidia-fabricmanager"),
            ),
        )
    if log.platform == "windows":
        return (
            Remedy(
                "Remove the display driver completely (with DDU in safe mode) and install a "
                "current one from NVIDIA."
            ),
        )
    if log.says(SLURM) and story_of(log).smi_failed:
        return (ASK_SLURM, ON_THAT_NODE)
    # This changes nothing, and it separates this cause from the other one for "busy".
    first = (_SEE_MODE,) if named(log, BUSY) else ()
    return (
        *first,
        Remedy(
            "Load the modules and create the device nodes; the package nvidia-modprobe does this "
            "for every user.",
            Steps(
                (command_line("sudo modprobe nvidia"), command_line("sudo nvidia-modprobe -u -c=0"))
            ),
        ),
        _AFTER_SLEEP,
        Remedy(
            "If the module does not load, check the reason: Secure Boot, a kernel that it was not "
            "built for, or nouveau.",
            shell_script("sudo dmesg | grep -i -E 'nvrm|nvidia|nouveau'"),
        ),
        Remedy("If nothing helps, install the driver again and restart the machine."),
    )

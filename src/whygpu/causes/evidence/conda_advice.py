"""What to say and do about an environment that conda, mamba or pixi could not solve."""

from __future__ import annotations

from collections.abc import Callable

from whygpu.causes.evidence.conda_solves import CondaReason
from whygpu.causes.evidence.log_installs import Attempt
from whygpu.model.finding import Remedy
from whygpu.model.remedy import InstallFramework, SetVariable, a_requirement, command_line

Text = tuple[str, tuple[Remedy, ...]]
"""The message of a finding, and its remedies."""


def advice_on(attempt: Attempt, reason: CondaReason) -> Text:
    return _TEXTS[reason.kind](attempt, reason)


def _without_gpu(reason: CondaReason) -> tuple[Remedy, ...]:
    """To build an environment on a machine without a GPU for one that has a GPU."""
    return (
        Remedy(
            "If this machine has an NVIDIA GPU, check its driver.",
            command_line("nvidia-smi"),
        ),
        Remedy(
            "If the environment is for another machine (a container image, a login node), say "
            "which CUDA release the driver there supports, then try again.",
            SetVariable("CONDA_OVERRIDE_CUDA", reason.cuda),
        ),
        Remedy("Without a GPU, request the CPU build, such as pytorch-cpu or tensorflow-cpu."),
    )


def _no_driver(attempt: Attempt, reason: CondaReason) -> Text:
    return (
        f"{attempt.installer} sees no NVIDIA driver on this machine (the virtual package __cuda is "
        f"missing), and {reason.package or 'the environment'} needs one",
        _without_gpu(reason),
    )


def _old_driver(attempt: Attempt, reason: CondaReason) -> Text:
    return (
        f"the NVIDIA driver supports CUDA up to {reason.has}, and {attempt.package or 'a package'} "
        f"needs {reason.needs or 'a newer one'}",
        (
            Remedy("Update the NVIDIA driver, or request a build for an older CUDA release."),
            Remedy("See what the driver supports.", command_line("nvidia-smi")),
        ),
    )


def _driver(attempt: Attempt, reason: CondaReason) -> Text:
    return (
        f"{reason.package or 'the environment'} needs an NVIDIA driver for CUDA {reason.needs}, and "
        f"{attempt.installer} sees no such driver: there is none, or it is older",
        _without_gpu(reason),
    )


def _undeclared(_: Attempt, reason: CondaReason) -> Text:
    return (
        "pixi solves for a machine without an NVIDIA driver: nothing provides __cuda, because the "
        "manifest does not declare CUDA as a system requirement",
        (
            Remedy(
                'Add cuda = "12" (or the release that you need) to the table '
                "[system-requirements] of pixi.toml."
            ),
        ),
    )


def _macos(attempt: Attempt, _: CondaReason) -> Text:
    return (
        f"{attempt.package or 'a package'} was requested as a CUDA build, and CUDA does not exist "
        "on macOS",
        (Remedy("Request the build without CUDA; PyTorch uses the GPU of a Mac through MPS."),),
    )


def _glibc(_: Attempt, reason: CondaReason) -> Text:
    return (
        f"the environment needs glibc {reason.needs}, and conda sees no such glibc on this system",
        (
            Remedy("Use a newer system or container, or older releases of the packages."),
            Remedy("See which glibc this system has.", command_line("ldd --version")),
        ),
    )


def _other_system(_: Attempt, reason: CondaReason) -> Text:
    made = f"for {reason.other}" if reason.other else "on another system"
    of = f" (such as {reason.package})" if reason.package else ""
    return (
        f"the environment file was made {made}: conda's builds{of} exist for that system only",
        (
            Remedy(
                "Export the environment again without builds, on the machine that has it.",
                command_line("conda env export --from-history"),
            ),
        ),
    )


def _channel_ended(attempt: Attempt, reason: CondaReason) -> Text:
    if reason.package.startswith("cudatoolkit"):
        return (
            f"there is no {reason.package}: conda's cudatoolkit ends with 11.8, and CUDA 12 and "
            "newer are in cuda-toolkit",
            (
                Remedy(
                    "Request cuda-toolkit and cuda-version instead.",
                    command_line("conda install -c conda-forge cuda-toolkit cuda-version=12"),
                ),
            ),
        )
    return (
        f"the channel pytorch has no {reason.package}: it ends with PyTorch 2.5.1",
        (
            Remedy(
                "Install PyTorch from conda-forge.",
                command_line("conda install -c conda-forge pytorch-gpu"),
            ),
            Remedy("Or install it with pip.", InstallFramework("torch")),
        ),
    )


def _not_found(attempt: Attempt, reason: CondaReason) -> Text:
    return (
        f"none of the channels that {attempt.installer} searched has {reason.package} for this "
        "platform",
        (
            Remedy(
                "Check the name and the version, and search conda-forge.",
                command_line("conda search -c conda-forge", a_requirement(_bare(reason.package))),
            ),
            Remedy(
                "pytorch-cuda and CUDA's own packages also need the channels pytorch and nvidia: "
                "-c pytorch -c nvidia."
            ),
        ),
    )


def _bare(spec: str) -> str:
    return (
        spec.rpartition("::")[2].partition("=")[0].partition("[")[0].strip(" <>!~*").split(" ")[0]
    )


def _python(attempt: Attempt, reason: CondaReason) -> Text:
    return (
        f"{reason.package} requires {reason.needs}, and the environment has or requests another "
        "Python",
        (Remedy("Create a new environment with that Python, and name the package with it."),),
    )


def _conflict(attempt: Attempt, reason: CondaReason) -> Text:
    other = f", but {reason.other} was requested" if reason.other else ""
    return (
        f"{attempt.installer} cannot combine the requested packages: {reason.package} needs "
        f"{reason.needs}{other}",
        (
            Remedy("Request only the framework, without a version of CUDA: it brings its own."),
            Remedy("If that is not possible, create a new environment for it."),
        ),
    )


def _undecided(attempt: Attempt, _: CondaReason) -> Text:
    return (
        f"{attempt.installer} cannot solve the environment with {attempt.package}; the lines of the "
        "log do not show which requirements conflict",
        (Remedy("Install the framework alone into a new environment, then the other packages."),),
    )


_TEXTS: dict[str, Callable[[Attempt, CondaReason], Text]] = {
    "no-driver": _no_driver,
    "driver-too-old": _old_driver,
    "no-driver-or-too-old": _driver,
    "cuda-not-declared": _undeclared,
    "no-cuda-on-macos": _macos,
    "glibc": _glibc,
    "other-system": _other_system,
    "channel-ended": _channel_ended,
    "not-in-channels": _not_found,
    "python": _python,
    "conflict": _conflict,
    "undecided": _undecided,
}

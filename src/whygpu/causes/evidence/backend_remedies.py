"""What to do if a backend for GPUs of AMD, Apple or Intel, or DirectML, failed in a log."""

from __future__ import annotations

from whygpu.model.finding import Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.remedy import SetVariable, UnsetVariable, command_line, shell_script
from whygpu.tables.amd_targets import override_for, relative_of, target_of_card

_NO_XLA_ON_METAL = late(r"[Cc]ould not find registered platform with id: 0x")
_NOT_IMPLEMENTED_ON_METAL = late(r"implemented for the MPS device")
"""Only this is what PyTorch can run on the CPU instead."""


_SIMILAR = {"gfx103": "10.3.0", "gfx110": "11.0.0", "gfx120": "12.0.0"}
"""The card of each family for which ROCm's libraries have code."""
_GFX = late(r"\b(?P<family>gfx(?:103|110|120))[1-9]\b")


_CARD = late(r"\bRX ?(?P<number>[67]\d{3})(?=\b|XT)")
_NO_CODE = late(
    r"HIP error: invalid device function|hipErrorInvalidDeviceFunction|hipErrorNoBinaryForGpu"
    r"|(?:shared object initialization failed|no kernel image)[^\n]{0,120}|TensileLibrary[^\n]{0,200}"
    r"(?:[Nn]o such file|not found|[Cc]annot read)|[Cc]annot read [^\n]{0,200}TensileLibrary"
)
"""The runtime has found the GPU, and the framework or a library has no code for it."""


def _as_similar_card(log: Log) -> SetVariable | None:
    named = log.first(_GFX)
    family = named.groups["family"] if named else None
    if family:
        return SetVariable("HSA_OVERRIDE_GFX_VERSION", _SIMILAR[family])
    card = log.first(_CARD)
    target = target_of_card(card.groups["number"] or "") if card else None
    relative = relative_of(target) if target else None
    value = override_for(relative.runs) if relative else None
    return SetVariable("HSA_OVERRIDE_GFX_VERSION", value) if value else None


def backend_remedies(log: Log, backend: str) -> tuple[Remedy, ...]:
    if backend.startswith("ROCm"):
        return _rocm_remedies(log)
    if backend.startswith("Metal"):
        newer = Remedy(
            "Use float32, and a current release of macOS, of the framework and of its Metal plugin."
        )
        if log.says(_NO_XLA_ON_METAL):
            return _without_xla()
        if not log.says(_NOT_IMPLEMENTED_ON_METAL):
            return (newer,)
        return (
            Remedy(
                "Let PyTorch run on the CPU what Metal cannot run.",
                SetVariable("PYTORCH_ENABLE_MPS_FALLBACK", "1"),
            ),
            newer,
        )
    if backend.startswith("DirectML"):
        return (
            Remedy(
                "Use the framework release that the DirectML plugin requires, or, with an "
                "NVIDIA card, a CUDA build in WSL 2."
            ),
        )
    return (
        Remedy("Check whether Intel's driver shows the GPU.", command_line("sycl-ls")),
        Remedy("Install the framework's XPU build and the driver release that it requires."),
    )


def _without_xla() -> tuple[Remedy, ...]:
    """What helped users of TensorFlow 2.11 and later, whose new optimizers Keras compiles with XLA."""
    return (
        Remedy(
            "Often the optimizer is the reason: from TensorFlow 2.11 on, those of Keras are compiled "
            "with XLA, which Apple's Metal plug-in does not support. Until 2.15, use the earlier one, "
            "as in model.compile(optimizer=tf.keras.optimizers.legacy.Adam(), ...). It helped many "
            "users, but not all."
        ),
        Remedy(
            "Or leave XLA out: jit_compile=False in the optimizer and in model.compile, and none in "
            "tf.function."
        ),
        Remedy(
            "Or install releases of TensorFlow and of the plug-in that belong together: "
            "https://developer.apple.com/metal/tensorflow-plugin/ lists them."
        ),
    )


_HIDDEN = late(
    r"\b(?P<name>(?:HIP|ROCR)_VISIBLE_DEVICES)(?:['\"]\])?\s?[=:]\s?(?:['\"]{2}|['\"]?-1\b)"
)


_NO_NODE = late(
    r"/dev/(?:kfd|dri)\b[^\n]{0,40}: no such file|open /dev/kfd[^\n]{0,20}: No such file"
)
_WITHOUT_NODE = (
    Remedy(
        "Check whether the machine itself has the device files, which the kernel driver amdgpu makes. "
        "Docker Desktop for Windows and Mac has none, because its containers run in a virtual "
        "machine.",
        shell_script("ls -l /dev/kfd /dev/dri"),
    ),
    Remedy(
        "If it has them, pass them into the container.",
        shell_script("docker run --device /dev/kfd --device /dev/dri --group-add video IMAGE"),
    ),
)
"""ROCm does not find what every AMD GPU has under Linux."""


def _rocm_remedies(log: Log) -> tuple[Remedy, ...]:
    hidden = log.first(_HIDDEN)
    if hidden is not None:
        name = hidden.groups["name"] or ""
        return (Remedy(f"{name} hides every GPU: unset it.", UnsetVariable((name,))),)
    check = Remedy(
        "Check whether AMD's list contains this card for the installed ROCm, and install the "
        "framework's build for exactly that ROCm release.",
        shell_script("rocminfo | grep -E 'Name:|gfx'"),
    )
    if log.says(_NO_NODE):
        return _WITHOUT_NODE
    similar = _as_similar_card(log)
    as_similar = Remedy(
        "A card that is not on the list can often run the code of a similar card"
        + ("." if similar else ": set HSA_OVERRIDE_GFX_VERSION to the number of that card."),
        similar,
    )
    if log.says(_NO_CODE):
        return (as_similar, check) if similar else (check, as_similar)
    return (
        check,
        as_similar,
        Remedy(
            "Join the group that owns /dev/kfd, and log in again.",
            shell_script('sudo usermod -aG "$(stat -c %G /dev/kfd)" "$USER"'),
        ),
    )

"""For a framework that sees no GPU, in a log that does not say why: reasons, question, steps."""

from __future__ import annotations

from whygpu.causes.evidence.log_cpu_builds import shown_with_gpu
from whygpu.causes.evidence.log_driver_works import driver_works
from whygpu.causes.evidence.log_machines import gpus_in
from whygpu.causes.evidence.log_subjects import framework_title
from whygpu.causes.evidence.mac_gpus import advice_for_a_mac, question_for_a_mac
from whygpu.causes.evidence.stated_releases import misfits
from whygpu.model.finding import Remedy
from whygpu.model.log import Log
from whygpu.model.remedy import shell_script
from whygpu.tables.advice import CHECK, WHOLE_OUTPUT
from whygpu.tables.versions import release_numbers

_SAYS_WHY = {
    "tensorflow": shell_script(
        "TF_CPP_MIN_LOG_LEVEL=0 TF_CPP_VMODULE=dso_loader=1 python -c 'import tensorflow as tf; "
        'tf.config.list_physical_devices("GPU")\' 2>&1 | whygpu explain'
    ),
    "torch": shell_script(
        "python -c 'import torch; torch.zeros(1).cuda()' 2>&1 | whygpu explain",
    ),
    "jax": shell_script(
        "JAX_PLATFORMS=cuda python -c 'import jax; jax.devices()' 2>&1 | whygpu explain"
    ),
}
"""How a framework is made to say why it sees no GPU."""


def framework_to_ask(log: Log) -> str:
    """Keras sees the GPUs of its backend, which is TensorFlow unless the log says otherwise."""
    return "tensorflow" if log.framework == "keras" else log.framework


def next_steps(log: Log) -> tuple[Remedy, ...]:
    """For a framework that sees no GPU."""
    if log.platform == "macos":
        return (advice_for_a_mac(log),)
    action = _SAYS_WHY.get(framework_to_ask(log))
    if action is None or (log.version_of("tensorflow") or "").startswith("1."):
        return (CHECK, WHOLE_OUTPUT)
    return (CHECK, Remedy(f"Let {framework_title(log)} say why it sees none.", action))


_NO_DRIVER = "no driver or no GPU on that machine"
_NO_GPU_CODE = "a build without GPU support"
_LIBRARIES = "CUDA libraries that are missing or of another release"
_WHY_NONE_IS_SEEN = (
    _NO_DRIVER,
    _NO_GPU_CODE,
    _LIBRARIES,
    "a container that was started without GPUs",
    "CUDA_VISIBLE_DEVICES",
)
_OF_PIP = {
    "tensorflow": (
        _LIBRARIES,
        "CUDA libraries that are missing, as after `pip install tensorflow` without the extra "
        "[and-cuda], or of another release",
    ),
    "torch": (_NO_GPU_CODE, "a build without GPU support (its version ends in +cpu)"),
    "jax": (
        _NO_GPU_CODE,
        "a build without GPU support, as after `pip install jax` without the extra [cuda13]",
    ),
}
"""What pip's packages of a framework often lack, and how that comes about."""
IS_IT_LISTED = "Does `nvidia-smi` list the GPU where the program runs?"
IS_IT_THERE = "Does that machine have an NVIDIA GPU? If so, what does `nvidia-smi` print there?"
_WHICH_BUILD = (
    "Which build is it, and does it run in a container? `pip list | grep -i -E "
    "'torch|tensorflow|jax|cuda'`"
)
"""For a machine whose driver works."""
_WHY_NONE_ON_A_MAC = (
    "a program that asks for CUDA, which a Mac does not have",
    "a framework without its plug-in for the GPU of a Mac, or with one of another release",
    "a Mac with an Intel processor",
)
_WHY_NONE_ON_A_JETSON = (
    "a build that was not made for a Jetson: the packages of PyPI for Arm are for the CPU, or for "
    "servers with another CUDA",
    "a build for another JetPack",
    "CUDA libraries of JetPack that are not installed",
    "a container that was started without GPUs",
)
_WHICH_JETPACK = (
    "Which JetPack is it (`cat /etc/nv_tegra_release`), and from where was the framework installed?"
)


def why_none_is_seen(log: Log) -> tuple[str, ...]:
    """The usual reasons, most common first; before them, what is known not to fit."""
    return (*misfits(log), *_usual_reasons(log))


def _usual_reasons(log: Log) -> tuple[str, ...]:
    if log.platform == "macos":
        return _WHY_NONE_ON_A_MAC
    if _is_jetson(log):
        return _WHY_NONE_ON_A_JETSON
    excluded = {
        _NO_DRIVER: driver_works(log),
        _NO_GPU_CODE: bool(shown_with_gpu(log)),
    }
    reasons = [reason for reason in _WHY_NONE_IS_SEEN if not excluded.get(reason)]
    of_pip = _OF_PIP.get(framework_to_ask(log))
    if of_pip is None or log.platform == "windows" or _is_before_extras(log):
        return tuple(reasons)
    reason, in_other_words = of_pip
    # After the driver: without one, the rest does not matter.
    first = [each for each in reasons if each == _NO_DRIVER]
    rest = [each for each in reasons if each not in (_NO_DRIVER, reason)]
    return (*first, *((in_other_words,) if reason in reasons else ()), *rest)


def _is_before_extras(log: Log) -> bool:
    """Whether it is a TensorFlow that takes the CUDA libraries of the machine."""
    release = release_numbers(log.version_of("tensorflow") or "")
    return bool(release) and release < (2, 14)


def what_to_ask(log: Log, usual: str) -> str | None:
    """What to ask where the framework sees no GPU; `usual` is for a machine of any kind."""
    if log.platform == "macos":
        return question_for_a_mac(log)
    if _is_jetson(log):
        return _WHICH_JETPACK
    if driver_works(log):
        return _WHICH_BUILD
    # A person who names the card need not be asked whether there is one.
    return IS_IT_LISTED if gpus_in(log) else usual


def _is_jetson(log: Log) -> bool:
    return any(gpu.kind == "jetson" for gpu in gpus_in(log))

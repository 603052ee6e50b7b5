"""Install actions that several causes suggest: a framework's GPU build, the same release again.

No cause contains the version of a framework. The planner knows what a machine can use, and
InstallFramework asks it.
"""

from __future__ import annotations

from typing import cast

from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.observed import Known
from whygpu.model.remedy import (
    Command,
    Install,
    InstallFramework,
    PlannedFramework,
    a_name,
    a_number,
    command_line,
)
from whygpu.model.target import Framework

_PLANNED: tuple[str, ...] = ("tensorflow", "jax", "torch", "onnxruntime")


def pytorch_index(build: str) -> str:
    """PyTorch's package index for one CUDA release: pytorch_index("cu126")."""
    return f"https://download.pytorch.org/whl/{build}"


def same_release(framework: Framework) -> str:
    """The requirement for the installed release: tensorflow==2.16.1."""
    return f"{framework.distribution}=={framework.version.partition('+')[0]}"


def again(framework: Framework) -> Install:
    """Install the installed release again, with its requirements."""
    build = framework.version.partition("+")[2] if framework.name == "torch" else ""
    index_url = pytorch_index(build) if build else ""
    return Install((same_release(framework),), index_url=index_url, options=("force-reinstall",))


def gpu_build(
    name: str, *, installed: str = "", removes: tuple[str, ...] = ()
) -> InstallFramework | None:
    """The release of a framework that can use this machine's GPU, if the planner knows it.

    `installed` is the installed release, which is kept if it is suitable.
    """
    if name not in _PLANNED:
        return None
    return InstallFramework(cast(PlannedFramework, name), installed=installed, removes=removes)


def gpu_build_of(framework: Framework, *, removes: tuple[str, ...] = ()) -> InstallFramework | None:
    return gpu_build(framework.name, installed=framework.version, removes=removes)


_LAST_OF_1 = late(r"tensorflow_core[/\\]python[/\\]client[/\\]session\.py|\b_api\.v1\b")
"""Sessions in the package that only 1.15 and 2.0 have."""


def gpu_build_in_log(log: Log, *, removes: tuple[str, ...] = ()) -> InstallFramework | None:
    """The same for the framework that wrote a log; logs of Keras are TensorFlow's."""
    name = "tensorflow" if log.framework == "keras" else log.framework
    installed = log.version_of(name) or ""
    if name == "tensorflow" and not installed and log.says(_LAST_OF_1):
        installed = "1.15"
    return gpu_build(name, installed=installed, removes=removes)


def plan_for(name: str, capability: tuple[int, int] | None) -> Command:
    """Let the user ask the planner: it takes a GPU, which a log does not always show."""
    if capability is None:
        return command_line("whygpu plan", a_name(name))
    major, minor = capability
    return command_line("whygpu plan", a_name(name), "--gpu", a_number(f"{major}.{minor}"))


def newest_release(framework: Framework) -> Install | InstallFramework:
    """The newest release of the same kind of build that the machine can run."""
    wish = gpu_build_of(framework)
    if wish is not None and _is_for_a_gpu(framework):
        return wish
    return Install((framework.distribution,), options=("force-reinstall", "only-wheels"))


def newer_release(framework: Framework) -> Install | InstallFramework:
    wish = gpu_build_of(framework)
    if wish is not None and _is_for_a_gpu(framework):
        return wish._replace(newer=True)
    return Install((framework.distribution,), options=("upgrade",))


def _is_for_a_gpu(framework: Framework) -> bool:
    kind = framework.build.kind
    return isinstance(kind, Known) and kind.value == "cuda"

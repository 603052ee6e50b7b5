"""How to install the CUDA libraries that a framework was built for."""

from __future__ import annotations

from collections.abc import Sequence

from whygpu.causes.evidence.framework_installs import again, gpu_build_of, pytorch_index
from whygpu.causes.evidence.library_faults import base_name, cuda_major, is_cudnn
from whygpu.model.derived import and_list, nvidia_gpu
from whygpu.model.finding import Remedy
from whygpu.model.observed import Absent, Known
from whygpu.model.remedy import Install, a_number, shell_script
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework, Package, active
from whygpu.tables.cuda_wheels import wheel_of
from whygpu.tables.release_defects import search_list_defect
from whygpu.tables.versions import release_numbers

_WITH_CUDA_EXTRA = (2, 14)
"""The first TensorFlow release that can install its CUDA libraries, and finds them."""


def install_remedies(
    machine: Snapshot, framework: Framework, libraries: Sequence[str]
) -> tuple[Remedy, ...]:
    """What to install to get these libraries, in the order to try."""
    if isinstance(nvidia_gpu(machine), Absent):
        return (_cpu_build(framework),)
    wheels = wheels_of(framework, libraries)
    present = [package for package in _packages(machine) if package.name in wheels]
    if present and len(present) == len(wheels):
        other = _other_cudnn(libraries, present)
        if other is not None:
            return (other,)
        incomplete = [f"{package.name}=={package.version}" for package in present]
        names = and_list([item.partition("==")[0] for item in incomplete])
        text = f"Install {names} again: the package is installed, but its files are missing."
        return (Remedy(text, reinstall(incomplete)),)
    return (*_for_framework(framework), *_for_libraries(framework, libraries, wheels))


def _other_cudnn(libraries: Sequence[str], present: Sequence[Package]) -> Remedy | None:
    """The wheel of cuDNN is of another major release, whose files have other names.

    Wheels of CUDA itself have the major release in their name.
    """
    needed = next((name.partition(".so.")[2] for name in libraries if is_cudnn(name)), "")
    package = next((item for item in present if item.name.startswith("nvidia-cudnn")), None)
    if not needed or package is None or package.version.partition(".")[0] == needed:
        return None
    text = f"Install cuDNN {needed}; {package.name} {package.version} is another major release."
    return Remedy(text, Install((f"{package.name}=={needed}.*",)))


def _cpu_build(framework: Framework) -> Remedy:
    """Without a GPU the libraries are not needed, only a build without CUDA."""
    text = "This machine has no GPU: install the build without CUDA."
    if framework.name == "tensorflow":
        return Remedy(
            text,
            Install((f"tensorflow=={framework.version}",), removes=(framework.distribution,)),
        )
    release = framework.version.partition("+")[0]
    cpu = pytorch_index("cpu")
    without = Install((f"torch=={release}",), index_url=cpu, options=("force-reinstall",))
    return Remedy(text, without)


def wheels_of(framework: Framework, libraries: Sequence[str]) -> tuple[str, ...]:
    """The wheels that contain these libraries for the framework's CUDA release."""
    major = cuda_major(framework)
    if major is None:
        return ()
    found = (wheel_of(base_name(library), major) for library in libraries)
    return tuple(dict.fromkeys(wheel for wheel in found if wheel is not None))


def reinstall(requirements: Sequence[str]) -> Install:
    """Install the same distributions again without their dependencies."""
    return Install(tuple(requirements), options=("force-reinstall", "no-deps"))


def tensorflow_release(release: str, distribution: str) -> Install:
    return Install((f"{distribution}[and-cuda]=={release}",))


def _packages(machine: Snapshot) -> list[Package]:
    packages = machine.target.packages
    return list(active(packages.value)) if isinstance(packages, Known) else []


def _for_framework(framework: Framework) -> tuple[Remedy, ...]:
    if framework.name == "tensorflow":
        return _for_tensorflow(framework)
    if framework.name == "jax":
        major = cuda_major(framework)
        return (
            Remedy(
                "Install JAX together with the CUDA libraries of its release.",
                Install((f"jax[cuda{major}]=={framework.version}",))
                if major in (12, 13)
                else gpu_build_of(framework),
            ),
        )
    if framework.name == "torch":
        return (
            Remedy(
                "Install PyTorch again; its wheel requires the CUDA libraries it was built with.",
                again(framework),
            ),
        )
    return ()


def _for_tensorflow(framework: Framework) -> tuple[Remedy, ...]:
    version = framework.version
    defect = search_list_defect("tensorflow", version)
    if defect is not None:
        names = and_list([f"lib{name}" for name in defect.libraries])
        return (
            Remedy(
                "Install another release with its CUDA libraries: "
                f"{version} does not search the folder of its own {names}.",
                gpu_build_of(framework),
            ),
        )
    if release_numbers(version) >= _WITH_CUDA_EXTRA:
        return (
            Remedy(
                "Install the CUDA libraries that belong to this release.",
                tensorflow_release(version, framework.distribution),
            ),
        )
    return _for_old_tensorflow(framework)


def _for_old_tensorflow(framework: Framework) -> tuple[Remedy, ...]:
    """Releases without an extra, which find CUDA only in the system's folders."""
    version = framework.version
    release = release_numbers(version)
    image = Remedy(
        "Use the container image of this release, which has the CUDA libraries it was built for.",
        shell_script(
            "docker run --gpus all -it tensorflow/tensorflow:",
            a_number(version),
            "-gpu-py3" if release < (2, 1) else "-gpu",
        ),
    )
    cuda, cudnn = framework.build.cuda, framework.build.cudnn
    if not isinstance(cuda, Known) or not isinstance(cudnn, Known):
        return (image,)
    toolkit = release_numbers(cuda.value)[:2]
    return (
        image,
        Remedy(
            "Or install that CUDA release in a conda environment.",
            shell_script(
                "conda install -c ",
                "conda-forge" if toolkit >= (11, 0) else "anaconda",
                " cudatoolkit=",
                a_number(".".join(map(str, toolkit))),
                " cudnn=",
                a_number(cudnn.value),
                " && export LD_LIBRARY_PATH="
                '"$CONDA_PREFIX/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"',
            ),
        ),
    )


def _for_libraries(
    framework: Framework, libraries: Sequence[str], wheels: Sequence[str]
) -> tuple[Remedy, ...]:
    if framework.name == "tensorflow" and not _finds_wheels(framework.version):
        return ()
    if wheels:
        text = f"Add only what is missing: {and_list(list(libraries))}."
        return (Remedy(text, Install(tuple(wheels))),)
    return (Remedy(f"Install the package that contains {and_list(list(libraries))}."),)


def _finds_wheels(version: str) -> bool:
    """Whether a TensorFlow release searches the folders of all its wheels."""
    return (
        release_numbers(version) >= _WITH_CUDA_EXTRA
        and search_list_defect("tensorflow", version) is None
    )

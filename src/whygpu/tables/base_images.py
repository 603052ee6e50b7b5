"""Published container images, and what their names tell: CUDA, cuDNN, Python, frameworks."""

from __future__ import annotations

import re
from typing import NamedTuple

from whygpu.model.deployment import BaseImage, Flavour
from whygpu.model.requirement_file import FileLine
from whygpu.tables.tensorflow_builds import build_of
from whygpu.tables.versions import release_numbers

_CUDA_TAG = re.compile(r"(?P<cuda>\d+\.\d+(?:\.\d+)?)(?=-|$)")
_CUDNN = re.compile(r"-cudnn(?P<major>\d+)?(?=-|$)")
_FLAVOUR = re.compile(r"-(base|runtime|devel)(?=-|$)")
_FLAVOURS: dict[str, Flavour] = {"base": "base", "runtime": "runtime", "devel": "devel"}
_TORCH_TAG = re.compile(
    r"(?P<version>\d+\.\d+(?:\.\d+)?)[\w.]*-cuda(?P<cuda>\d+(?:\.\d+)?)-cudnn(?P<cudnn>\d+)"
)
_TENSORFLOW_TAG = re.compile(r"(?P<version>\d+\.\d+(?:\.\d+)?)(?:rc\d+)?(?=-|$)|latest|nightly")
_SYSTEM_TAG = re.compile(r"-?(ubuntu|ubi|rockylinux|debian|centos)(\d+(?:\.\d+)?)")
_PYTHON_TAG = re.compile(r"(\d\.\d+)(?:\.\d+)?(?=-|$)")

_SYSTEM_PYTHON = {
    ("ubuntu", "16.04"): "3.5",
    ("ubuntu", "xenial"): "3.5",
    ("ubuntu", "18.04"): "3.6",
    ("ubuntu", "bionic"): "3.6",
    ("ubuntu", "20.04"): "3.8",
    ("ubuntu", "focal"): "3.8",
    ("ubuntu", "22.04"): "3.10",
    ("ubuntu", "jammy"): "3.10",
    ("ubuntu", "24.04"): "3.12",
    ("ubuntu", "noble"): "3.12",
    ("debian", "11"): "3.9",
    ("debian", "bullseye"): "3.9",
    ("debian", "12"): "3.11",
    ("debian", "bookworm"): "3.11",
}
"""The Python that apt installs as python3 (https://packages.ubuntu.com, https://packages.debian.org)."""

_CUDNN_9_SINCE = (12, 3, 2)
"""Tags of newer CUDA releases say `cudnn` without a number, and mean cuDNN 9
(https://gitlab.com/nvidia/container-images/cuda/blob/master/doc/supported-tags.md)."""

_NOTEBOOKS = {"pytorch": "torch", "tensorflow": "tensorflow"}
_NOTEBOOK = re.compile(r"(?:^|/)jupyter/(pytorch|tensorflow)-notebook$")

_AMAZON_REGISTRY = re.compile(r"\.dkr\.ecr\.[\w-]{1,40}\.amazonaws\.com|public\.ecr\.aws")
_AMAZON_NAME = re.compile(
    r"(?:deep-learning-containers/|huggingface-)?(pytorch|tensorflow)-(?:training|inference)"
)
_AMAZON_VARIANT = re.compile(r"-(?:gpu|cpu)-")
"""AWS Deep Learning Containers: pytorch-training:2.7.1-gpu-py312-cu128-ubuntu22.04-ec2
(https://github.com/aws/deep-learning-containers/blob/master/available_images.md)."""

_PLAIN = frozenset(
    {"python", "ubuntu", "debian", "alpine", "centos", "fedora", "rockylinux", "almalinux"}
)


class GpuImage(NamedTuple):
    """Images whose programs are made for GPUs, by the end of their name."""

    name: str
    framework: str
    source: str
    is_server: bool = False
    """It starts a server that needs a GPU; the command of a container only adds arguments."""


GPU_IMAGES: tuple[GpuImage, ...] = (
    GpuImage("nvidia/pytorch", "torch", "https://catalog.ngc.nvidia.com"),
    GpuImage("nvidia/tensorflow", "tensorflow", "https://catalog.ngc.nvidia.com"),
    GpuImage("nvidia/jax", "jax", "https://catalog.ngc.nvidia.com"),
    GpuImage("nvidia/nemo", "torch", "https://catalog.ngc.nvidia.com"),
    GpuImage("nvidia/tensorrt", "", "https://catalog.ngc.nvidia.com"),
    GpuImage("nvidia/cuda-dl-base", "", "https://catalog.ngc.nvidia.com"),
    GpuImage("nvidia/deepstream", "", "https://catalog.ngc.nvidia.com"),
    GpuImage("nvidia/isaac-sim", "", "https://catalog.ngc.nvidia.com"),
    GpuImage("nvidia/rapidsai/base", "", "https://docs.rapids.ai/install"),
    GpuImage("rapidsai/base", "", "https://docs.rapids.ai/install"),
    GpuImage("rapidsai/rapidsai", "", "https://docs.rapids.ai/install"),
    GpuImage(
        "vllm/vllm-openai",
        "torch",
        "https://docs.vllm.ai/en/latest/deployment/docker.html",
        is_server=True,
    ),
    GpuImage(
        "huggingface/text-generation-inference",
        "torch",
        "https://huggingface.co/docs/text-generation-inference/installation_nvidia",
        is_server=True,
    ),
    GpuImage(
        "huggingface/text-embeddings-inference",
        "",
        "https://huggingface.co/docs/text-embeddings-inference/supported_models",
        is_server=True,
    ),
    GpuImage("lmsysorg/sglang", "torch", "https://docs.sglang.io/get_started/install.html"),
)

_OTHER_VARIANT = re.compile(r"(?:^|[._-])(?:cpu|rocm\d*|xeon|xpu|hpu|npu|neuronx?)(?:[._-]|$)")
"""In the tags of these images: the variants without CUDA."""
_MOSTLY_FOR_GPUS = {
    "nvidia/tritonserver": "Triton serves some models on the CPU as well",
    "ai-dynamo/vllm-runtime": "parts of Dynamo need no GPU",
}
"""Images that are made for GPUs and also work without one, by the end of their name, and why."""

TOOL_IMAGES = re.compile(
    r"k8s-device-plugin|dcgm|gpu-operator|gpu-feature-discovery|node-feature|driver|container-toolkit"
    r"|exporter|mig-manager|k8s-dra|validator|nvidia/k8s/|monitor|scheduler|operator|plugin|webhook"
    r"|metrics|dashboard"
)
"""Images that manage GPUs and do not compute on them."""


def starts_a_server(image: BaseImage) -> bool:
    return any(row.is_server and image.name.endswith(row.name) for row in GPU_IMAGES)


def mostly_for_gpus(image: BaseImage) -> str:
    """Why an image that is made for GPUs may run without one; empty for other images."""
    return next((why for name, why in _MOSTLY_FOR_GPUS.items() if image.name.endswith(name)), "")


def names_a_server(reference: str) -> bool:
    """Whether the name without its tag tells that the image starts a server that needs a GPU."""
    _, name, _ = split_reference(reference)
    return "$" not in name and any(row.is_server and name.endswith(row.name) for row in GPU_IMAGES)


def split_reference(reference: str) -> tuple[str, str, str]:
    """The registry, the name and the tag: ghcr.io/a/b:1@sha256:... -> (ghcr.io, a/b, 1)."""
    plain = reference.partition("@")[0].removeprefix("docker://")
    folder, slash, last = plain.rpartition("/")
    last, _, tag = last.partition(":")
    parts = [part for part in folder.split("/") if part] if slash else []
    registry = ""
    if parts and ("." in parts[0] or ":" in parts[0] or parts[0] == "localhost"):
        registry, parts = parts[0], parts[1:]
    if parts == ["library"]:
        parts = []
    return registry, "/".join((*parts, last)), tag


def base_image(reference: str, place: FileLine) -> BaseImage:
    """What the name of an image tells."""
    registry, name, tag = split_reference(reference)
    plain = BaseImage(name, tag, place, registry)
    if name.endswith("nvidia/cuda") or name in ("cuda", "nvidia/cudagl", "nvidia/cuda-ppc64le"):
        return _cuda(plain)
    if name.endswith("tensorflow/tensorflow") and "nvidia" not in name:
        return _tensorflow(plain)
    if name.endswith("pytorch/pytorch"):
        return _torch(plain)
    if (notebook := _NOTEBOOK.search(name)) and tag.startswith("cuda"):
        # https://jupyter-docker-stacks.readthedocs.io: the same images have tags without CUDA.
        return plain._replace(framework=_NOTEBOOKS[notebook[1]], uses_gpu=True)
    if (of_amazon := _AMAZON_NAME.fullmatch(name)) and _AMAZON_REGISTRY.search(registry):
        variant = _AMAZON_VARIANT.search(tag)
        return plain._replace(
            framework=_NOTEBOOKS[of_amazon[1]],
            uses_gpu=variant[0] == "-gpu-" if variant else None,
        )
    known = next((row for row in GPU_IMAGES if name.endswith(row.name)), None)
    if known is not None and not _OTHER_VARIANT.search(tag):
        return plain._replace(framework=known.framework, uses_gpu=True)
    if name.rpartition("/")[2] in _PLAIN and name.count("/") <= 1:
        return plain._replace(python=_system_python(name, tag), is_plain=True)
    return plain


def _cuda(image: BaseImage) -> BaseImage:
    found = _CUDA_TAG.match(image.tag)
    cuda = found["cuda"] if found else ""
    cudnn = _CUDNN.search(image.tag)
    major = (cudnn["major"] or "") if cudnn else ""
    if cudnn and not major and cuda:
        major = "9" if release_numbers(cuda) >= _CUDNN_9_SINCE else "8"
    flavour = _FLAVOUR.search(image.tag)
    system = _SYSTEM_TAG.search(image.tag)
    return image._replace(
        cuda=cuda,
        cudnn=major,
        flavour=_FLAVOURS[flavour[1]] if flavour else "devel" if cuda else "",
        uses_gpu=True,
        python=_SYSTEM_PYTHON.get((system[1], system[2]), "") if system else "",
    )


def _tensorflow(image: BaseImage) -> BaseImage:
    found = _TENSORFLOW_TAG.match(image.tag)
    version = (found["version"] or "") if found else ""
    with_gpu = "gpu" in image.tag
    build = build_of(version) if version else None
    return image._replace(
        framework="tensorflow",
        version=version,
        uses_gpu=True if with_gpu else False if found or not image.tag else None,
        cuda=build.cuda if build and with_gpu else "",
        cudnn=build.cudnn if build and with_gpu else "",
        flavour="runtime" if build and with_gpu else "",
    )


def _torch(image: BaseImage) -> BaseImage:
    found = _TORCH_TAG.match(image.tag)
    if found is None:
        return image._replace(framework="torch", uses_gpu=True)
    return image._replace(
        framework="torch",
        version=found["version"],
        uses_gpu=True,
        # Only the devel images have a CUDA toolkit; the others have what PyTorch brings.
        cuda=found["cuda"] if "-devel" in image.tag else "",
        cudnn=found["cudnn"] if "-devel" in image.tag else "",
        flavour="devel" if "-devel" in image.tag else "",
    )


def _system_python(name: str, tag: str) -> str:
    last = name.rpartition("/")[2]
    if last == "python":
        found = _PYTHON_TAG.match(tag)
        return found[1] if found else ""
    return _SYSTEM_PYTHON.get((last, tag.partition("-")[0]), "")


def cuda_serves(built_for: str, present: str) -> bool:
    """Whether a program that opens the libraries of one CUDA release finds those of another.

    Up to CUDA 10 every library has the minor release in its name. Since CUDA 11 the names have the
    major release, except that cuSOLVER got a new one in 11.1.
    """
    wanted, there = release_numbers(built_for)[:2], release_numbers(present)[:2]
    if len(wanted) < 2 or len(there) < 2:
        return wanted[:1] == there[:1]
    if wanted[0] != there[0]:
        return False
    if wanted[0] <= 10:
        return wanted == there
    return wanted[0] > 11 or (wanted == (11, 0)) == (there == (11, 0))

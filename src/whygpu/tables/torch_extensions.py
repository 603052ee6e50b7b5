"""Packages whose native code is compiled for one PyTorch: their modules, operators, origin."""

from __future__ import annotations

from typing import Literal, NamedTuple

from whygpu.tables.versions import release_numbers

Fitting = Literal["companion", "pinned", "by-cuda", "compiled", "by-hand"]
"""How a release is made to fit an installed PyTorch:

- companion: each release belongs to one release of PyTorch, and has builds for the same CUDA
- pinned: each release requires one release of PyTorch, so that pip can choose it
- by-cuda: one release has code for several CUDA releases, and does not depend on PyTorch's
- compiled: pip compiles it where it is installed
- by-hand: the same, with options that its documentation describes
"""


class TorchExtension(NamedTuple):
    distribution: str
    modules: tuple[str, ...]
    """The packages that programs import."""
    fitting: Fitting
    source: str
    """Where its installation is described."""
    compiled: tuple[str, ...] = ()
    """Modules outside those packages that contain only native code."""
    operators: tuple[str, ...] = ()
    """The namespaces in which it registers operators with PyTorch."""
    functions: tuple[str, ...] = ()
    """Functions that its errors name instead of the package."""
    address: str = ""
    """Where pip gets the source, if the package index does not have the package."""
    has_cuda_builds: bool = False
    """PyTorch's own package index has builds for each CUDA release."""


_PYG = "https://github.com/pyg-team/pytorch_geometric"
_DAO = "https://github.com/Dao-AILab/"
_STATE_SPACES = "https://github.com/state-spaces/mamba"

EXTENSIONS: tuple[TorchExtension, ...] = (
    TorchExtension(
        "torchvision",
        ("torchvision",),
        "companion",
        "https://github.com/pytorch/vision#installation",
        operators=("torchvision",),
        has_cuda_builds=True,
    ),
    TorchExtension(
        "torchaudio",
        ("torchaudio",),
        "companion",
        "https://pytorch.org/audio/main/installation.html",
        operators=("torchaudio",),
        has_cuda_builds=True,
    ),
    TorchExtension(
        "torchtext",
        ("torchtext",),
        "pinned",
        "https://github.com/pytorch/text#installation",
        operators=("torchtext",),
    ),
    TorchExtension(
        "xformers",
        ("xformers",),
        "pinned",
        "https://github.com/facebookresearch/xformers#installing-xformers",
        operators=("xformers", "xformers_flash", "xformers_flash3", "xformers_python"),
        functions=("memory_efficient_attention",),
        has_cuda_builds=True,
    ),
    TorchExtension(
        "vllm",
        ("vllm",),
        "pinned",
        "https://docs.vllm.ai/en/latest/getting_started/installation/gpu.html",
        operators=("_C", "_C_cache_ops", "_moe_C", "_vllm_fa2_C", "_vllm_fa3_C"),
    ),
    TorchExtension(
        "bitsandbytes",
        ("bitsandbytes",),
        "by-cuda",
        "https://huggingface.co/docs/bitsandbytes/installation",
        operators=("bitsandbytes",),
    ),
    TorchExtension(
        "flash-attn",
        ("flash_attn",),
        "compiled",
        f"{_DAO}flash-attention",
        compiled=(
            *("flash_attn_cuda", "flash_attn_2_cuda", "flash_attn_3_cuda", "dropout_layer_norm"),
            *("rotary_emb", "fused_dense_lib", "xentropy_cuda_lib"),
        ),
        operators=("flash_attn", "flash_attn_3"),
    ),
    TorchExtension(
        "causal-conv1d",
        ("causal_conv1d",),
        "compiled",
        f"{_DAO}causal-conv1d",
        compiled=("causal_conv1d_cuda",),
    ),
    TorchExtension(
        "mamba-ssm", ("mamba_ssm",), "compiled", _STATE_SPACES, compiled=("selective_scan_cuda",)
    ),
    TorchExtension(
        "torch-scatter", ("torch_scatter",), "compiled", _PYG, operators=("torch_scatter",)
    ),
    TorchExtension(
        "torch-sparse", ("torch_sparse",), "compiled", _PYG, operators=("torch_sparse",)
    ),
    TorchExtension(
        "torch-cluster", ("torch_cluster",), "compiled", _PYG, operators=("torch_cluster",)
    ),
    TorchExtension(
        "torch-spline-conv",
        ("torch_spline_conv",),
        "compiled",
        _PYG,
        operators=("torch_spline_conv",),
    ),
    TorchExtension(
        "mmcv",
        ("mmcv",),
        "compiled",
        "https://mmcv.readthedocs.io/en/latest/get_started/installation.html",
    ),
    TorchExtension(
        "detectron2",
        ("detectron2",),
        "compiled",
        "https://detectron2.readthedocs.io/en/latest/tutorials/install.html",
        operators=("detectron2",),
        address="git+https://github.com/facebookresearch/detectron2.git",
    ),
    TorchExtension(
        "pytorch3d",
        ("pytorch3d",),
        "compiled",
        "https://github.com/facebookresearch/pytorch3d/blob/main/INSTALL.md",
        address="git+https://github.com/facebookresearch/pytorch3d.git",
    ),
    TorchExtension(
        "apex",
        ("apex",),
        "by-hand",
        "https://github.com/NVIDIA/apex#installation",
        compiled=("amp_C", "apex_C", "fused_layer_norm_cuda", "fused_weight_gradient_mlp_cuda"),
    ),
    TorchExtension(
        "tinycudann",
        ("tinycudann",),
        "compiled",
        "https://github.com/NVlabs/tiny-cuda-nn#pytorch-extension",
        compiled=("tinycudann_bindings",),
        address="git+https://github.com/NVlabs/tiny-cuda-nn/#subdirectory=bindings/torch",
    ),
    TorchExtension("natten", ("natten",), "compiled", "https://natten.org/install/"),
    TorchExtension(
        "deepspeed",
        ("deepspeed",),
        "compiled",
        "https://www.deepspeed.ai/tutorials/advanced-install/",
    ),
    TorchExtension(
        "auto-gptq",
        ("auto_gptq",),
        "compiled",
        "https://github.com/AutoGPTQ/AutoGPTQ#installation",
        compiled=(
            *("autogptq_cuda_64", "autogptq_cuda_256", "autogptq_marlin_cuda"),
            *("exllama_kernels", "exllamav2_kernels"),
        ),
    ),
    TorchExtension(
        "exllamav2",
        ("exllamav2",),
        "compiled",
        "https://github.com/turboderp-org/exllamav2#installation",
        compiled=("exllamav2_ext",),
    ),
    TorchExtension(
        "autoawq-kernels",
        ("awq",),
        "compiled",
        "https://github.com/casper-hansen/AutoAWQ_kernels",
        compiled=("awq_ext", "awq_inference_engine", "awq_v2_ext"),
    ),
    TorchExtension(
        "transformer-engine",
        ("transformer_engine",),
        "compiled",
        "https://docs.nvidia.com/deeplearning/transformer-engine/user-guide/installation.html",
        compiled=("transformer_engine_torch", "transformer_engine_extensions"),
    ),
)

MOSTLY_FOR_THE_CPU = ("torchtext", "torchaudio", "torchdata", "_torch_sox")
"""Packages for text and audio. With the wrong PyTorch they fail without a GPU as well."""

_BY_MODULE = {name: row for row in EXTENSIONS for name in (*row.modules, *row.compiled)}
_BY_OPERATORS = {name: row for row in EXTENSIONS for name in row.operators}
_BY_DISTRIBUTION = {row.distribution: row for row in EXTENSIONS}


def extension_with(module: str) -> TorchExtension | None:
    """The extension that contains a module, by its dotted name."""
    return _BY_MODULE.get(module.partition(".")[0])


def extension_that_registers(namespace: str) -> TorchExtension | None:
    """The extension with operators such as torchvision::nms."""
    return _BY_OPERATORS.get(namespace)


def extension_named(distribution: str) -> TorchExtension | None:
    return _BY_DISTRIBUTION.get(distribution)


def is_only_native(module: str) -> bool:
    """Whether this module of an extension is a compiled file, and not a package."""
    row = _BY_MODULE.get(module)
    return row is not None and module in row.compiled


_VISION_OF_TORCH_1 = {4: 5, 5: 6, 6: 7, 7: 8, 8: 9, 9: 10, 10: 11, 11: 12, 12: 13, 13: 14}
_VISION_OF_TORCH_2 = 15
"""torchvision 0.15 belongs to PyTorch 2.0, 0.16 to 2.1, and so on."""


def companion_release(distribution: str, torch: str) -> str:
    """The minor release that belongs to a PyTorch: "0.16" for 2.1; "" if it is not on record."""
    numbers = release_numbers(torch)[:2]
    if len(numbers) < 2:
        return ""
    major, minor = numbers
    if distribution == "torchvision":
        number = _VISION_OF_TORCH_1.get(minor) if major == 1 else _VISION_OF_TORCH_2 + minor
        return f"0.{number}" if number is not None and major in (1, 2) else ""
    if distribution == "torchaudio" and (major == 2 or (major == 1 and minor >= 7)):
        return f"{major}.{minor}" if major == 2 else f"0.{minor}"
    return ""

"""The words that show that a text is about a GPU. Every judgement on that question uses this table.

A message is read generously: "device" or "out of memory" is enough to suspect the GPU. Source code
is read strictly, because `.to(device)` is in every other program.
"""

from __future__ import annotations

import re

from whygpu.model.lazy_regex import late

UNMISTAKABLE = ("cuda", "gpu", "nccl", "nvml")
"""Also in source code, where they are names of functions and modules."""

LIBRARIES = (
    *(
        "cudnn",
        "cublas",
        "cusolver",
        "cufft",
        "cusparse",
        "curand",
        "libcu",
        "ptx",
        "nvrtc",
        "nvvm",
    ),
    *("rocm", "rocblas", "hipblas", "miopen", "migraphx", "tensorrt", "cudf", "cuml"),
)
OTHER_INTERFACES = (
    *("[Oo]pen(?:cl|CL)", "[Vv]ulkan", "[Dd]irect[Mm][Ll]", "DXGI_", r"\b(?:sycl|SYCL)"),
    *(r"\b(?:xpu|XPU)\b", r"\b(?:mps|MPS)\b", r"\bMTL[A-Z]"),
    *(r"\bcl[A-Z]\w{4,30}", r"\bCL_[A-Z]{3}", r"\bVK_[A-Z]{3}", r"\bZE_RESULT", r"\bUR_RESULT"),
    *(r"\bvk::[A-Z]", r"\bDXCore", r"\bdml_"),
)
"""Of other makers, and of several of them. Upper and lower case differ here."""
CALLS = (r"\bcu(?:Mem|Ctx|Init|Launch|Device|Module|Stream|Event|Link|Func|Graph)[A-Z]?\w{0,40}\b",)
HARDWARE = ("nvidia", "vram", "driver")
FRAMEWORK_PARTS = (
    "streamexecutor",
    "bfc_allocator",
    "triton",
    "llvm error",
    "engine config",
    "kernel image",
    "available kernel",
    "compute capability",
    "cutlass",
    "kv cache",
    "memory_efficient_attention",
)
PHRASES = (
    *("stream did not", "error state", "out of memory", "prefill"),
    *(r"\bsm_?\d{2,3}\b", r"\bcompute_\d{2,3}\b"),
    *(r"\bxla\b", r"(?<!left on )\bdevice\b", r"\boom\b", r"\bdnn\b", r"\bblas\b", r"hip\w*error"),
    r"(?:not enough|insufficient|more) (?:\w{1,12} )?memory",
)

_IN_MESSAGES = late(
    "|".join((*UNMISTAKABLE, *LIBRARIES, *HARDWARE, *FRAMEWORK_PARTS, *PHRASES)), re.IGNORECASE
)
_CASE_MATTERS = late("|".join((*OTHER_INTERFACES, *CALLS)))
_IN_CODE = late("|".join(UNMISTAKABLE), re.IGNORECASE)
_SURELY = late(
    r"\b(?:c10|aten|ATen|csrc)/(?:\w{1,30}/){0,6}(?:cuda|cudnn|nccl)\w{0,30}[/.]"
    r"|[/\\]\w{0,40}cuda\w{0,40}\.(?:cpp|cuh?|cc|hpp|h):\d"
    r"|/(?:device:)?(?:XLA_)?(?:GPU|gpu):[\d*]|nvidia-installer|NVIDIA-Linux-|/nvidia/\d{3}\."
)
"""Source files of code for GPUs and TensorFlow's names of devices, which look like paths."""
_TENSOR = late(
    r"\bTensor\(\"[^\n]{1,300}?, dtype=\w{1,20}(?:, device=[^)\n]{1,120})?\)"
    r"|<tf\.(?:Tensor|Variable)[^<>\n]{1,400}>"
    r"|\[\[(?:\{\{)?[Nn]ode:? [^\n]{1,600}\]\]"
)
"""A message that shows a tensor or a node also shows where it is; it may be about its shape."""
_PATH = late(r"[^\s'\"(]{0,400}[/\\][^\s'\"),]{0,400}")
"""The names of a user's folders say nothing about the failure."""


_OF_THE_MATHEMATICS = late(
    r"shapes? [^\n]{0,80}(?:cannot be multiplied|not (?:aligned|compatible))|[Ss]ize mismatch"
    r"|must match the (?:existing )?size of tensor|[Ii]ncompatible shapes|have the same dtype"
    r"|(?:Input|weight) type \([^()\n]{4,40}\) (?:and|should)"
    r"|needed for gradient computation has been modified by an inplace operation"
    r"|does not require grad|Trying to backward through the graph a second time"
    r"|Cannot copy out of meta tensor|[Ee]xpected (?:input|target) batch_size"
    r"|Sizes of tensors must match|Error\(s\) in loading state_dict|shape '[^'\n]{1,60}' is invalid"
    r"|[Gg]iven groups=\d|number of dims|dimension(?:s|ality)? (?:out of range|mismatch)"
    r"|not implemented for '(?!Half|BFloat16)\w{1,12}'$|expected scalar type|Expected \d{1,2}D"
    r"|(?:index|indices) out of range in self|stack expects each tensor|output with shape"
    r"|probability tensor contains|expects all elements of|\bdivisible by\b"
    r"|to satisfy the constraint|found invalid values"
)
"""Errors that name the kind of a tensor, such as torch.cuda.HalfTensor, and would be the same on a
CPU."""


def is_of_the_mathematics(text: str) -> bool:
    """Whether a message is about shapes, types or gradients, on whatever device."""
    return _OF_THE_MATHEMATICS.search(text) is not None


def message_is_about_gpu(text: str) -> bool:
    """Whether a message speaks of a GPU, or of the native code that drives one."""
    if is_of_the_mathematics(text):
        return False
    return _uses(_IN_MESSAGES, text) or _uses(_CASE_MATTERS, text)


def code_is_about_gpu(text: str) -> bool:
    """Whether a line of source code names a GPU."""
    return _uses(_IN_CODE, text)


def _uses(words: re.Pattern[str], text: str) -> bool:
    text = _TENSOR.sub("Tensor", text)
    return _SURELY.search(text) is not None or words.search(_PATH.sub("", text)) is not None

"""Messages of frameworks that have no GPU code, or see no GPU."""

from __future__ import annotations

import re

from whygpu.causes.evidence.own_words import complaints
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Match, Shown
from whygpu.tables.topics_asked import HOW_TO_USE
from whygpu.tables.topics_told import NOT_USED, SEES_NONE

WITHOUT_GPU = late(
    r"Torch not compiled with CUDA enabled|not linked with support for cuda devices"
    r"|Backend '(?:cuda|gpu)' is not in the list of known backends"
    r"|a CUDA-enabled jaxlib is not installed|jaxlib (?:is|was) (?:not )?built with(?:out)? CUDA"
    r"|provider '(?:CUDA|Tensorrt|TensorRT)ExecutionProvider' is not in available "
    r"provider\s{1,8}names"
    r"|CUDAExecutionProvider (?:is )?not available"
    r"|This ORT build has \['(?!CUDA|Tensorrt|ROCM)[^\n]{0,80}"
    r"|[Cc]ompile with USE_CUDA=1 to enable GPU|Please compile with CUDA enabled"
    r"|(?:Check failed|MXNetError)[^\n]{0,120}GPU is not enabled"
    r"|installed CPU version PaddlePaddle"
    r"|[Pp]addle(?:Paddle)?,? (?:is|was) not compiled with CUDA"
    r"|Cannot use (?:CUDA|GPU) because you have"
    r"|(?:GPU|CUDA) Tree Learner was not enabled in this build"
    r"|[Nn]ot compiled with (?:GPU|CUDA|cuda)(?: offload)? support"
    r"|was compiled without (?:GPU|CUDA) support"
    r"|library is compiled without (?:CUDA|GPU) support|[Nn]ot compiled with GPU support"
    r"|Cannot use GPU in CPU-only Caffe|cuda is not enabled in this build"
    r"|was not (?:built|compiled) with (?:CUDA|GPU)(?: support)?\b(?! kernel)"
    r"|This (?:\w+ )?package was not compiled with CUDA|dlib was not compiled with CUDA"
    r"|Device API (?:cuda|gpu) is not enabled"
    r"|Environment for task type \[GPU\] not found|\(-216:No CUDA support\)"
    r"|Cannot initialize CUDA without ATen_cuda library"
    r"|RuntimeError: Unknown backend (?:gpu|cuda)$"
    r"|(?:module 'faiss'|'module' object) has no attribute '(?:StandardGpuResources|GpuIndex\w{1,30}"
    r"|index_cpu_to_(?:all_gpus|gpu\w{0,20}))'"
    r"|no usable GPU found, --gpu-layers option will be ignored"
    r"|xFormers was built for:\s{1,12}PyTorch [^\n]{1,60}\(you have [\d.]{3,12}\+cpu\)",
    re.MULTILINE,
)
LOADED_WITHOUT = late(
    r"Attempting to deserialize object on (?:a CUDA|CUDA) device(?! \d)[^\n]{0,40}"
    r"torch\.cuda\.is_available\(\) is False"
)
NO_SUCH_EXTRA = late(
    r"(?P<package>jax|jaxlib|onnxruntime-gpu) \S{1,24} does not provide the extra "
    r"'(?P<extra>(?:cuda|gpu|and-cuda)[\w-]{0,20})'"
)
CPU_VERSION = late(
    r"CUDA used to build PyTorch: (?:None|N/A|Could not collect)"
    r"|\bpytorch\b[^\n]{0,40}\b(?:py\d[\d.]{0,4}_cpu_\d|cpu_(?:[a-z]{2,10}_)?py\d)"
    r"|^_pytorch_select\s{1,40}\S{1,12}\s{1,40}cpu_\d"
    r"|^['\"]?\d\.\d{1,2}\.\d{1,2}\+cpu(?=['\" ]|$)"
    r"|(?i:torch|pytorch)(?:\W{1,3}| {4,40})(?:(?:__)?version(?:__)?[^\w\n]{1,4})?(?P<version>\d+\.\d[\d.]*\+cpu)",
    re.MULTILINE,
)
TENSORFLOW_CPU_PACKAGE = late(
    r"^tensorflow(?:-base)?\s{1,40}\d[\d.]{2,10}\s{1,40}(?:mkl|eigen|cpu)_py"
    r"|^tensorflow[-_]cpu(?:==| {1,40})\d",
    re.MULTILINE,
)
"""A row of `conda list` or `pip list`, or a requirement."""
TENSORFLOW_GPU_PACKAGE = late(
    r"^tensorflow(?:-base)?\s{1,40}\d[\d.]{2,10}\s{1,40}(?:gpu|cuda)"
    r"|^tensorflow(?:[-_]gpu)?(?:==| {1,40})\d[\d.]{2,10}\s{0,40}$",
    re.MULTILINE,
)
NO_GPU_THERE = late(
    r"is_available\(\)(?:\W{0,8}| (?:returned|returns|is) )False|^False$|\+cpu False$|CUDA(?: available)?\W{1,4}False|Found no NVIDIA"
    r"|machine only has: \[\]|expected (?:a )?cuda|device type[^\n]{0,20}cuda|invalid device string: 'cuda",
    re.MULTILINE | re.IGNORECASE,
)
UNAVAILABLE = late(
    r"CUDA unavailable, invalid device \S{1,12} requested|Torch is not able to use GPU; add --skip"
    r"|assert torch\.cuda\.is_available\(\)[^\n]{0,80}\n\W{0,4}AssertionError"
    r"|Invalid CUDA 'device=[^'\n]{1,20}' requested(?:[^\n]{0,300}\n){1,4}?[^\n]{0,20}"
    r"is_available\(\): False"
)
NOT_AVAILABLE = late(
    r"\bCUDA (?:is |was )?(?:not available|unavailable)\b"
    r"|torch\.cuda\.is_available\(\)(?:\W{1,8}|\W{1,3}(?:returns?|returned|is|gives) )False\b"
    r"|can only be used on CUDA (?:[\w, /]{1,40} )?devices|mixed precision requires a (?:GPU|CUDA)"
    r"|Ensure PyTorch with CUDA support is installed|install PyTorch with the CUDA backend to detect"
    r"|Unknown compute capability\. Specify the target compute"
    r"|\"\w{0,40}(?:_cpu|KernelImpl|_kernel_impl)\w{0,12}\" not implemented for '(?:Half|BFloat16)'"
)
"""PyTorch has no GPU and gives no reason; the last is how 16-bit operations fail on a CPU."""
LOOKED_FOR_CUDA = late(
    r"ggml_cuda_init: failed|CUDA[_ ]SETUP: (?:WARNING|CUDA|PyTorch|Required|Something|Defaulting)"
)
"""llama.cpp and bitsandbytes report missing GPU code when they did not find CUDA."""
LAYERS_ASKED = late(r"\bn[-_]gpu[-_]layers\W{1,6}[1-9]")
LAYERS_ON_CPU = late(
    r"(?:load_tensors|llama_kv_cache(?:_init)?): [^\n]{0,40}\bCPU(?:_Mapped)? (?:model |KV )?buffer size"
)
LAYERS_ON_GPU = late(
    r"\b(?!CPU|CUDA_Host)[A-Z][A-Za-z]{2,9}\d{0,2} (?:model |KV |compute )?buffer size"
    r"|offloaded [1-9]\d{0,3}/|ggml_(?:cuda|vulkan|metal|sycl)_init|no usable GPU found"
)
"""llama.cpp prints where it keeps the layers; a build without GPU code ignores the request."""
JAX_MESSAGE = late(
    r"a CUDA-enabled jaxlib is not installed|Backend '(?:cuda|gpu)' is not in the list of known"
)
JAX_PLUGIN = late(
    r"jax_plugins[./\\]xla_cuda|jax_cuda\d{1,2}_plugin|Unable to load \w{3,12}\. (?:Is it installed\?|\(Set TF_CPP)"
)
TORCH_STARTED_CUDA = late(
    r"CUDA initialization: |error from cudaGetDeviceCount|CUDA unknown error - this may be"
    r"|THCudaCheck FAIL|c10[/\\]cuda"
)
"""Messages of PyTorch's CUDA code: this build contains it."""
ONLY_CPU = late(
    r"Unknown backend:? '?(?:gpu|cuda)'? requested, but no platforms [^\n]{0,60}are present\."
    r" Platforms present are: cpu(?:,interpreter)?\s{0,2}$",
    re.MULTILINE,
)
PLATFORM_SET = late(r"JAX_PLATFORM|jax_platform|cuInit|CUDA_ERROR|plugin configuration error")
FELL_BACK = late(
    r"No GPU/TPU found, falling back to CPU"
    r"|Applied providers: \['CPUExecutionProvider'\], with options"
)


_NO_DEVICES = late(r"Device mapping: no known devices")
_STARTS_OF_TENSORFLOW_1 = late(
    r"instructions that this TensorFlow binary was not compiled to use"
    r"|library wasn't compiled to use \S{1,12} instructions"
)
"""TensorFlow wrote so until its release 2.1, where it starts its devices."""
_NO_GPU_WANTED = late(r"device_count|CUDA_VISIBLE_DEVICES|tf\.device")


def silent_session(log: Log) -> Match | None:
    """Where TensorFlow maps operations to devices, after a start without a word about a GPU.

    The line about the processor shows that its messages are not filtered out.
    """
    mapped = log.first(_NO_DEVICES)
    started = log.first(_STARTS_OF_TENSORFLOW_1)
    if mapped is None or started is None or started.line > mapped.line:
        return None
    silent = not (log.statuses or log.libraries or log.devices)
    return mapped if silent and not log.says(_NO_GPU_WANTED) else None


_OTHER_GPUS = ("+rocm", "+xpu")
_BUILT_FOR_OTHERS = late(
    r"torch(?:==| version:|: )[ v]{0,3}\d\.\d[\d.a-z]{0,20}\+(?:rocm|xpu)"
    r"|\bROCM used to build PyTorch: \d",
    re.IGNORECASE,
)
_CUDA_LABEL = "+cu"


def shown_without_gpu(log: Log) -> tuple[Shown, ...]:
    """Values that say that a build has no GPU code.

    A build for AMD, Intel or a Mac was built for no CUDA either.
    """
    of_torch = log.shown_of("torch-cuda", "torch-built")
    of_tensorflow = log.shown_of("tensorflow-built")
    if (
        log.platform == "macos"
        or log.reports_gpu()
        or any(s.value == "True" for s in of_tensorflow)
    ):
        of_tensorflow = ()
    there = log.shown_of("gpu-there", "other-gpu-there")
    if log.platform == "macos" or is_for_other_gpus(log) or any(s.value == "True" for s in there):
        of_torch = ()
    return tuple(seen for seen in (*of_torch, *of_tensorflow) if seen.value in ("None", "False"))


def asked_for_release(log: Log) -> bool:
    """Whether somebody asked for PyTorch's release, and the text shows nothing but answers."""
    asked = any(shown.asked for shown in log.shown_of("torch-version"))
    return asked and not (log.progress or log.failures)


def is_for_other_gpus(log: Log) -> bool:
    """Whether values, or PyTorch's report on its environment, show a build for AMD or Intel."""
    if log.says(_BUILT_FOR_OTHERS):
        return True
    hip = any(seen.value != "None" for seen in log.shown_of("torch-hip"))
    versions = [seen.value for seen in log.shown_of("torch-version")]
    return hip or any(mark in version for version in versions for mark in _OTHER_GPUS)


def shown_with_gpu(log: Log) -> tuple[Shown, ...]:
    """Values that say that a build has code for NVIDIA GPUs."""
    versions = log.shown_of("torch-version")
    return tuple(
        seen
        for seen in log.shown_of("torch-cuda", "torch-built", "tensorflow-built")
        if seen.value not in ("None", "False")
    ) + tuple(seen for seen in versions if _CUDA_LABEL in seen.value)


def ignores_layers(log: Log) -> bool:
    """llama.cpp was told to put layers on the GPU, and puts all of them on the CPU."""
    return log.says(LAYERS_ASKED) and not log.says(LAYERS_ON_GPU) and not log.failures


_TORCH_MESSAGES = late(r"Torch not compiled with CUDA|Cannot initialize CUDA without ATen_cuda")
_MESSAGES_OF = (
    ("torch", _TORCH_MESSAGES),
    ("torch", CPU_VERSION),
    ("jax", JAX_MESSAGE),
    ("tensorflow", TENSORFLOW_CPU_PACKAGE),
)


def tensorflow_package(log: Log) -> Match | None:
    """The CPU package of TensorFlow, if it is the only one that the log lists."""
    return None if log.says(TENSORFLOW_GPU_PACKAGE) else log.first(TENSORFLOW_CPU_PACKAGE)


def misses_gpu(log: Log) -> bool:
    """Whether somebody writes that the GPU is not seen or not used."""
    wants_it = complaints(log, HOW_TO_USE) and any(r.says == "on-cpu" for r in log.without_gpu())
    return bool(complaints(log, SEES_NONE, NOT_USED) or wants_it)


def has_none(log: Log) -> bool:
    """Whether the log has only the answer False to the question for a GPU."""
    answers = {seen.value for seen in log.shown_of("gpu-there")}
    return "False" in answers and "True" not in answers


def plugin_is_there(log: Log) -> bool:
    """JAX prints the same about a CUDA plugin that is installed but could not start."""
    started = any(status.api in ("driver", "runtime") for status in log.statuses)
    return log.says(JAX_MESSAGE) and (started or log.says(JAX_PLUGIN))


def framework_of(log: Log, statement: Match) -> str:
    """The message shows which framework wrote it; a log may be about several."""
    for name, messages in _MESSAGES_OF:
        if messages.search(statement.text):
            return name
    return log.framework

"""Remedies for memory that other processes hold, and for leaks."""

from __future__ import annotations

from typing import Literal

from whygpu.causes.evidence.log_tensorflow_api import api_of, grow_as_needed
from whygpu.model.finding import Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.remedy import SetVariable, command_line, set_variables

_OF_APPLE = late(
    r"\bMPS (?:backend out of memory|allocated)|kIOGPUCommandBuffer\w{0,40}OutOfMemory"
)
_OF_AMD = late(
    r"\bHIP (?:error|out of memory)|\bhipError[A-Z]|AMDGPU version ?: gfx|\brocm\d"
    r"|PYTORCH_HIP_ALLOC_CONF"
)
_OF_INTEL = late(r"\bXPU out of memory|UR_RESULT_ERROR_OUT_OF|PI_ERROR_OUT_OF")


def maker_of(log: Log) -> Literal["apple", "amd", "intel", "nvidia"]:
    """Whose GPU the log is about: NVIDIA's, unless the log names another."""
    if log.says(_OF_APPLE) or log.platform == "macos":
        return "apple"
    if log.says(_OF_AMD):
        return "amd"
    return "intel" if log.says(_OF_INTEL) else "nvidia"


_HOLDERS = "Check which processes hold memory there, and end those that are not needed."
_SEE_HOLDERS: dict[str, Remedy] = {
    "apple": Remedy(
        "Close other programs: the GPU of a Mac uses the main memory, which all programs share."
    ),
    "amd": Remedy(_HOLDERS, command_line("rocm-smi --showpids")),
    "intel": Remedy(_HOLDERS),
    "nvidia": Remedy(
        _HOLDERS,
        command_line("nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv"),
    ),
}
_ANOTHER = "Or choose a GPU with more free memory, by its number in"
_ANOTHER_GPU: dict[str, tuple[Remedy, ...]] = {
    "apple": (),
    "amd": (
        Remedy(f"{_ANOTHER} HIP_VISIBLE_DEVICES.", command_line("rocm-smi --showmeminfo vram")),
    ),
    "intel": (Remedy(f"{_ANOTHER} ZE_AFFINITY_MASK."),),
    "nvidia": (
        Remedy(
            f"{_ANOTHER} CUDA_VISIBLE_DEVICES.",
            command_line("nvidia-smi --query-gpu=index,memory.free --format=csv"),
        ),
    ),
}


def shown_by(log: Log) -> str:
    """The tool that shows the memory in use, as the end of a question."""
    tools = {"apple": "Activity Monitor", "amd": "rocm-smi", "intel": "xpu-smi"}
    return f" ({tools.get(maker_of(log), 'nvidia-smi')})"


def see_holders(log: Log) -> Remedy:
    return _SEE_HOLDERS[maker_of(log)]


def another_gpu(log: Log) -> tuple[Remedy, ...]:
    return _ANOTHER_GPU[maker_of(log)]


def share_remedy(log: Log) -> Remedy:
    """How programs of this framework can share one GPU."""
    if log.framework == "jax":
        return Remedy(
            "To share a GPU, let JAX allocate memory as needed.",
            SetVariable("XLA_PYTHON_CLIENT_PREALLOCATE", "false"),
        )
    if log.framework == "torch":
        module = {"apple": "mps", "intel": "xpu"}.get(maker_of(log), "cuda")
        return Remedy(
            "To share a GPU, give each process its share: "
            f"torch.{module}.set_per_process_memory_fraction(0.5)."
        )
    if log.framework == "tensorflow" and api_of(log) == "sessions":
        return grow_as_needed(log, "To share a GPU, let every program allocate memory as needed")
    return Remedy(
        "To share a GPU, let every program allocate memory as needed.",
        set_variables(TF_FORCE_GPU_ALLOW_GROWTH="true", XLA_PYTHON_CLIENT_PREALLOCATE="false"),
    )


def for_leaks(log: Log) -> tuple[Remedy, ...]:
    """What programs of this framework often keep although it is not needed."""
    if log.framework == "tensorflow":
        return (
            Remedy(
                "Build a model once; if a loop has to build many, call "
                "tf.keras.backend.clear_session() between them."
            ),
        )
    if log.framework == "torch":
        return (
            Remedy(
                "Sum up numbers, not tensors (loss.item()), evaluate under torch.no_grad(), and "
                "delete what one phase no longer needs before the next begins."
            ),
        )
    return (Remedy("Look for objects that each step keeps: lists of results, cached graphs."),)

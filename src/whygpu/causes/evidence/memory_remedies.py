"""Remedies for memory that other processes hold, and for leaks."""

from __future__ import annotations

from whygpu.causes.evidence.log_tensorflow_api import api_of, grow_as_needed
from whygpu.model.finding import Remedy
from whygpu.model.log import Log
from whygpu.model.remedy import SetVariable, command_line, set_variables

SEE_HOLDERS = Remedy(
    "Check which processes hold memory there, and end those that are not needed.",
    command_line("nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv"),
)
ANOTHER_GPU = Remedy(
    "Or choose a GPU with more free memory, by its number in CUDA_VISIBLE_DEVICES.",
    command_line("nvidia-smi --query-gpu=index,memory.free --format=csv"),
)


def share_remedy(log: Log) -> Remedy:
    """How programs of this framework can share one GPU."""
    if log.framework == "jax":
        return Remedy(
            "To share a GPU, let JAX allocate memory as needed.",
            SetVariable("XLA_PYTHON_CLIENT_PREALLOCATE", "false"),
        )
    if log.framework == "torch":
        return Remedy(
            "To share a GPU, give each process its share: "
            "torch.cuda.set_per_process_memory_fraction(0.5)."
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

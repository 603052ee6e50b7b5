"""What a process takes on a GPU beside its framework's arrays: CUDA's context, loaded kernels.

The driver's count for the process less what the framework's allocator held, measured on an NVIDIA
H200, driver 580.159.04, with PyTorch 2.11 and JAX 0.11, both for CUDA 13, and 17 models at each. A
GPU with fewer multiprocessors takes less. TensorFlow was not measured; it is taken to be as JAX,
whose compiler and kernels it shares.
"""

from __future__ import annotations

from whygpu.model.estimate import Mode

_MIB = 1 << 20
_INFERENCE = {"torch": 686 * _MIB, "jax": 624 * _MIB, "tensorflow": 624 * _MIB}
_TRAINING = {"torch": 760 * _MIB, "jax": 652 * _MIB, "tensorflow": 652 * _MIB}
"""With recurrent layers by cuDNN it was 100 MiB more."""

FRAMEWORKS = tuple(_TRAINING)


def overhead(framework: str, mode: Mode) -> int:
    return (_INFERENCE if mode == "infer" else _TRAINING)[framework]

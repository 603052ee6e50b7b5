"""Files by which a running process shows that it uses a framework on the GPU.

Each is loaded by builds for CUDA only, except TensorFlow's, whose one library serves both builds:
a process that uses TensorFlow only for its data has it too. Numba is not among them,
since a process that compiles for the CPU with it looks no different.

To check: import the framework, use the GPU, and read /proc/self/maps.
"""

from __future__ import annotations

from whygpu.model.lazy_regex import late

GPU_LIBRARIES = (
    ("tensorflow", late(r"/_pywrap_tensorflow_internal\.so|/libtensorflow_framework\.so")),
    ("jax", late(r"/xla_cuda_plugin\.so|/jax_cuda\d+_plugin/|/jaxlib/cuda/_")),
    ("torch", late(r"/libc10_cuda\.so|/libtorch_cuda\w*\.so")),
    ("cupy", late(r"/cupy_backends/cuda/|/cupy/cuda/")),
    ("onnxruntime", late(r"/libonnxruntime_providers_(?:cuda|tensorrt)\.so")),
)
"""By framework, in the paths of /proc/PID/maps."""

DRIVER_LIBRARY = late(
    r"/libcuda\.so|/libnvidia-|/libGLX_nvidia|/libEGL_nvidia|/dev/nvidia|/dev/dxg"
)
"""What every process that uses an NVIDIA GPU has loaded or mapped."""

"""Environment variables that change GPU behaviour: what each does, and how its reader reads it.

This is the allow-list: no other variable is ever looked at. A row says what the program that
reads the variable does with each value, including values that it refuses or ignores.
"""

from __future__ import annotations

import re

from whygpu.model.lazy_regex import late
from whygpu.tables.variable_readings import (
    Files,
    Flags,
    Folder,
    Folders,
    GpuList,
    Members,
    Number,
    Pairs,
    Row,
    Text,
    Words,
)

CUDA_GUIDE = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#env-vars"
TF_GPU_DEVICE = (
    "https://github.com/tensorflow/tensorflow/tree/v2.21.0/tensorflow/core/common_runtime/gpu"
)
TF_ENV_VAR = "https://github.com/tensorflow/tensorflow/blob/v2.21.0/tensorflow/core/util/env_var.cc"
JAX_CONFIG = "https://docs.jax.dev/en/latest/config_options.html"
JAX_CLIENT = "https://github.com/jax-ml/jax/blob/main/jaxlib/xla_client.py"
XLA_GUIDE = "https://openxla.org/xla/flags_guidance"
TORCH_CUDA = "https://docs.pytorch.org/docs/stable/notes/cuda.html"
TORCH_VARIABLES = "https://docs.pytorch.org/docs/stable/torch_environment_variables.html"
KERAS_CONFIG = "https://keras.io/getting_started/"
CONTAINER_TOOLKIT = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html"
ROCM_GUIDE = "https://rocm.docs.amd.com/en/latest/conceptual/gpu-isolation.html"
LOADER_MANUAL = "https://man7.org/linux/man-pages/man8/ld.so.8.html"
PYTHON_MANUAL = "https://docs.python.org/3/using/cmdline.html#environment-variables"
SLURM_MANUAL = "https://slurm.schedmd.com/gres.html"
ONEDNN_GUIDE = "https://uxlfoundation.github.io/oneDNN/dev_guide_cpu_dispatcher_control.html"
NUMBA_MANUAL = "https://numba.readthedocs.io/en/stable/reference/envvars.html"


def _tf_flag(on: str, off: str, default: str) -> Words:
    """As TensorFlow reads most of its switches."""
    return Words(
        (("1 true", on), ("0 false", off)), f"TensorFlow keeps its default: {default}", True
    )


def _switch(on: str, off: str) -> Words:
    return Words((("1", on), ("0", off)), "")


TORCH_ALLOCATOR = Pairs(
    "settings of PyTorch's memory allocator",
    "PyTorch fails at its first use of the GPU",
    (
        "backend",
        "expandable_segments",
        "garbage_collection_threshold",
        "graph_capture_record_stream_reuse",
        "large_segment_size_mb",
        "max_non_split_rounding_mb",
        "max_split_size_mb",
        "per_process_memory_fraction",
        "pinned_max_cached_size_mb",
        "pinned_max_round_threshold_mb",
        "pinned_num_register_threads",
        "pinned_reserve_segment_size_mb",
        "pinned_use_background_threads",
        "pinned_use_cuda_host_register",
        "release_lock_on_cudamalloc",
        "roundup_power2_divisions",
        "throw_on_cudamalloc_oom",
        "use_async_allocator",
    ),
)


ROWS: tuple[Row, ...] = (
    # CUDA and its driver
    Row("CUDA_VISIBLE_DEVICES", GpuList(), CUDA_GUIDE),
    Row(
        "CUDA_DEVICE_ORDER",
        Words(
            (
                ("PCI_BUS_ID", "CUDA numbers GPUs in bus order, as nvidia-smi does"),
                ("FASTEST_FIRST", "CUDA numbers GPUs by its guess of their speed"),
            ),
            # Measured on driver 580.159.04: cuInit returns CUDA_ERROR_INVALID_DEVICE.
            "CUDA fails to start; PCI_BUS_ID and FASTEST_FIRST are the words it knows",
            empty_is_unset=False,
        ),
        CUDA_GUIDE,
    ),
    Row("CUDA_HOME", Folder("the CUDA toolkit that builds and XLA use"), TORCH_CUDA),
    Row("CUDA_PATH", Folder("the CUDA toolkit that builds and CuPy use"), TORCH_CUDA),
    Row("CUDA_ROOT", Folder("the CUDA toolkit that some builds use"), TORCH_CUDA),
    Row(
        "CUDA_LAUNCH_BLOCKING",
        _switch("the program waits for each kernel, which is slow", "kernels run side by side"),
        CUDA_GUIDE,
    ),
    Row(
        "CUDA_FORCE_PTX_JIT",
        _switch("every kernel is compiled from PTX", "kernels are compiled from PTX if needed"),
        CUDA_GUIDE,
    ),
    Row(
        "CUDA_DISABLE_PTX_JIT",
        _switch("no kernel is compiled from PTX", "kernels are compiled from PTX if needed"),
        CUDA_GUIDE,
    ),
    Row(
        "CUDA_CACHE_DISABLE",
        _switch("compiled kernels are not kept", "compiled kernels are kept for later"),
        CUDA_GUIDE,
    ),
    Row("CUDA_CACHE_PATH", Text("the folder that keeps compiled kernels"), CUDA_GUIDE),
    Row(
        "CUDA_MODULE_LOADING",
        Words(
            (
                ("LAZY DEFAULT", "kernels are loaded when they are first used"),
                ("EAGER", "all kernels are loaded at start, which takes time and memory"),
            ),
            "CUDA keeps its default",
        ),
        CUDA_GUIDE,
    ),
    Row(
        "NVIDIA_TF32_OVERRIDE",
        Words((("0", "NVIDIA's libraries never compute in TF32"),), ""),
        "https://docs.nvidia.com/cuda/cublas/index.html",
    ),
    # Containers and schedulers
    Row(
        "NVIDIA_VISIBLE_DEVICES",
        Members(
            "GPUs that the container runtime was asked to pass in; CUDA does not read it",
            alone=(
                ("all", "the container runtime was asked to pass in every GPU"),
                ("none", "the container runtime passed in the driver, but no GPU"),
                ("void", "the container runtime was told to pass in no part of the driver"),
                ("", "the container runtime was told to pass in no part of the driver"),
            ),
        ),
        CONTAINER_TOOLKIT,
    ),
    Row(
        "NVIDIA_DRIVER_CAPABILITIES",
        Members(
            "parts of the driver that the container runtime passes in",
            required=("compute", "all"),
            otherwise="without compute the container gets no libcuda.so.1, and so no CUDA",
        ),
        CONTAINER_TOOLKIT,
    ),
    Row("SLURM_JOB_GPUS", Text("GPUs that Slurm gave to the job"), SLURM_MANUAL),
    Row("SLURM_STEP_GPUS", Text("GPUs that Slurm gave to the job step"), SLURM_MANUAL),
    Row("SLURM_GPUS_ON_NODE", Text("number of GPUs that Slurm gave on this node"), SLURM_MANUAL),
    # Loader and Python
    Row("LD_LIBRARY_PATH", Folders("the loader searches here before its cache"), LOADER_MANUAL),
    Row("LD_PRELOAD", Files("the loader loads these before anything else"), LOADER_MANUAL),
    Row("PYTHONPATH", Folders("Python imports from here before its own packages"), PYTHON_MANUAL),
    Row("PYTHONHOME", Folder("Python's own library is taken from here"), PYTHON_MANUAL),
    Row("PYTHONNOUSERSITE", Text("packages installed with --user are left out"), PYTHON_MANUAL),
    Row("VIRTUAL_ENV", Folder("the active virtual environment"), PYTHON_MANUAL),
    Row(
        "CONDA_PREFIX",
        Folder("the active conda environment"),
        "https://docs.conda.io/projects/conda/en/stable/user-guide/tasks/manage-environments.html",
    ),
    # TensorFlow
    Row(
        "TF_FORCE_GPU_ALLOW_GROWTH",
        Words(
            (
                ("true", "TensorFlow takes GPU memory as it needs it"),
                ("false", "TensorFlow takes nearly all GPU memory at start"),
            ),
            'TensorFlow ignores it, because only the words "true" and "false" count here',
        ),
        TF_GPU_DEVICE,
    ),
    Row(
        "TF_GPU_ALLOCATOR",
        Words(
            (
                ("cuda_malloc_async", "TensorFlow leaves memory management to the CUDA driver"),
                ("cuda_malloc", "TensorFlow asks CUDA for each block of memory, which is slow"),
            ),
            "TensorFlow ignores it and keeps its own allocator",
        ),
        TF_GPU_DEVICE,
    ),
    Row(
        "TF_GPU_THREAD_MODE",
        Words(
            (
                ("global", "GPU kernels are launched from TensorFlow's common threads"),
                ("gpu_private", "each GPU has threads of its own to launch kernels"),
                ("gpu_shared", "GPUs share threads that launch kernels"),
            ),
            "TensorFlow refuses it and creates no GPU device",
        ),
        TF_GPU_DEVICE,
    ),
    Row(
        "TF_PER_DEVICE_MEMORY_LIMIT_MB",
        Number(
            "TensorFlow takes at most {value} MB of each GPU's memory",
            1,
            float("inf"),
            "TensorFlow cannot use it",
        ),
        TF_GPU_DEVICE,
    ),
    Row(
        "TF_FORCE_UNIFIED_MEMORY",
        _tf_flag(
            "GPU memory may spill over into the computer's memory",
            "GPU memory is used alone",
            "off",
        ),
        TF_GPU_DEVICE,
    ),
    Row(
        "TF_CPP_MIN_LOG_LEVEL",
        Words(
            (
                ("0", "all of TensorFlow's messages are printed"),
                ("1", "TensorFlow's notes are hidden"),
                ("2", "TensorFlow hides the warning that it skipped the GPU"),
                # Larger numbers are no mistake: they hide as much.
                ("3 4 5 6 7 8 9 10", "TensorFlow hides every reason why it does not use the GPU"),
            ),
            "TensorFlow reads a number from 0 to 3 here",
        ),
        TF_GPU_DEVICE,
    ),
    Row("TF_CPP_VMODULE", Text("more messages from these parts of TensorFlow"), TF_GPU_DEVICE),
    Row(
        "TF_DETERMINISTIC_OPS",
        _tf_flag(
            "operations give the same result each time, or fail", "operations may vary", "off"
        ),
        TF_ENV_VAR,
    ),
    Row(
        "TF_CUDNN_DETERMINISTIC",
        _tf_flag("cuDNN gives the same result each time", "cuDNN's results may vary", "off"),
        TF_ENV_VAR,
    ),
    Row(
        "TF_CUDNN_USE_AUTOTUNE",
        _tf_flag("TensorFlow tries cuDNN's algorithms out", "TensorFlow takes the first one", "on"),
        TF_ENV_VAR,
    ),
    Row(
        "TF_ENABLE_ONEDNN_OPTS",
        _tf_flag("oneDNN speeds up the CPU; results vary a little", "oneDNN is not used", "on"),
        TF_ENV_VAR,
    ),
    Row("ONEDNN_MAX_CPU_ISA", Text("the most that oneDNN uses of the processor"), ONEDNN_GUIDE),
    Row("DNNL_MAX_CPU_ISA", Text("the most that oneDNN uses of the processor"), ONEDNN_GUIDE),
    Row(
        "TF_USE_LEGACY_KERAS",
        Words(
            (
                ("1 true True", "tf.keras is Keras 2, from the package tf-keras"),
                ("0 false False", "tf.keras is the installed Keras"),
            ),
            "TensorFlow ignores it: only 1, true and True count",
        ),
        KERAS_CONFIG,
    ),
    Row(
        "TF_XLA_FLAGS",
        Flags("--tf_", "flags for TensorFlow's use of XLA", file_allowed=True),
        XLA_GUIDE,
    ),
    # Keras
    Row(
        "KERAS_BACKEND",
        Words(
            (
                ("tensorflow", "Keras runs on TensorFlow"),
                ("jax", "Keras runs on JAX"),
                ("torch", "Keras runs on PyTorch"),
                ("numpy", "Keras runs on NumPy, which has no GPU support and cannot train"),
                ("openvino", "Keras runs on OpenVINO, which has no NVIDIA GPU support"),
            ),
            "Keras has no such backend and fails on import",
        ),
        KERAS_CONFIG,
    ),
    Row("KERAS_HOME", Text("the folder with Keras's configuration"), KERAS_CONFIG),
    # JAX and XLA
    Row(
        "JAX_PLATFORMS",
        Members(
            "JAX uses these platforms only, the first as its default",
            alone=(
                ("cpu", "JAX keeps off the GPU: it uses the CPU only"),
                ("", "JAX chooses the platform itself"),
            ),
        ),
        JAX_CONFIG,
    ),
    Row(
        "JAX_PLATFORM_NAME",
        Words((("cpu", "JAX computes on the CPU unless told otherwise"),), "", any_case=True),
        JAX_CONFIG,
    ),
    Row(
        "XLA_FLAGS",
        Flags(
            "--xla_",
            "flags for the XLA compiler",
            file_allowed=True,
            folder_flags=("--xla_gpu_cuda_data_dir",),
        ),
        XLA_GUIDE,
    ),
    Row(
        "XLA_PYTHON_CLIENT_PREALLOCATE",
        Words(
            (
                ("true True 1", "JAX takes most of the GPU's memory at start"),
                ("false False 0", "JAX takes GPU memory as it needs it"),
            ),
            "JAX takes it for true: only false, False and 0 switch preallocation off",
        ),
        JAX_CLIENT,
    ),
    Row(
        "XLA_PYTHON_CLIENT_MEM_FRACTION",
        Number(
            "JAX takes {value} of each GPU's memory",
            0,
            1,
            "it must be a fraction between 0 and 1",
            unlimited_with="TF_FORCE_UNIFIED_MEMORY",
            clashes_with="XLA_CLIENT_MEM_FRACTION",
        ),
        JAX_CLIENT,
    ),
    Row(
        "XLA_CLIENT_MEM_FRACTION",
        Number(
            "JAX takes {value} of each GPU's memory",
            0,
            1,
            "it must be a fraction between 0 and 1",
            unlimited_with="TF_FORCE_UNIFIED_MEMORY",
        ),
        JAX_CLIENT,
    ),
    Row(
        "XLA_PYTHON_CLIENT_ALLOCATOR",
        Words(
            (
                ("default bfc", "JAX manages GPU memory itself"),
                ("platform", "JAX asks CUDA for each block of memory, which is slow"),
                ("cuda_async", "JAX leaves memory management to the CUDA driver"),
                ("vmm address", "JAX manages GPU memory through virtual addresses"),
            ),
            "JAX has no such allocator and fails when it looks for GPUs",
            any_case=True,
            empty_is_unset=False,
        ),
        JAX_CLIENT,
    ),
    # PyTorch
    Row(
        "PYTORCH_CUDA_ALLOC_CONF",
        TORCH_ALLOCATOR,
        TORCH_CUDA,
    ),
    Row(
        "PYTORCH_ALLOC_CONF",
        TORCH_ALLOCATOR,
        TORCH_CUDA,
    ),
    Row(
        "TORCH_CUDA_ARCH_LIST", Text("GPU architectures extensions are built for"), TORCH_VARIABLES
    ),
    Row(
        "PYTORCH_NVML_BASED_CUDA_CHECK",
        Words((("1", "torch.cuda.is_available() asks NVML and does not start CUDA"),), ""),
        TORCH_CUDA,
    ),
    # Numba
    Row(
        "NUMBA_DISABLE_CUDA",
        _switch("Numba does not use the GPU", "Numba may use the GPU"),
        NUMBA_MANUAL,
    ),
    Row(
        "NUMBA_ENABLE_CUDASIM",
        _switch("Numba simulates a GPU on the CPU", "Numba uses a real GPU"),
        NUMBA_MANUAL,
    ),
    # AMD
    Row("HIP_VISIBLE_DEVICES", Text("AMD GPUs that programs see"), ROCM_GUIDE),
    Row("ROCR_VISIBLE_DEVICES", Text("AMD GPUs that the ROCm runtime shows"), ROCM_GUIDE),
    Row("HSA_OVERRIDE_GFX_VERSION", Text("ROCm takes the GPU for this architecture"), ROCM_GUIDE),
)

FAMILIES: tuple[Row, ...] = (
    Row("CUDA_", Text("read by CUDA or by what builds on it"), CUDA_GUIDE),
    Row("CUDNN_", Text("read by cuDNN"), "https://docs.nvidia.com/deeplearning/cudnn/"),
    Row("CUBLAS_", Text("read by cuBLAS"), "https://docs.nvidia.com/cuda/cublas/index.html"),
    Row("NVIDIA_", Text("read by the container runtime or NVIDIA's libraries"), CONTAINER_TOOLKIT),
    Row("TF_", Text("read by TensorFlow"), TF_ENV_VAR),
    Row("KERAS_", Text("read by Keras"), KERAS_CONFIG),
    Row("JAX_", Text("read by JAX"), JAX_CONFIG),
    Row("XLA_", Text("read by XLA"), XLA_GUIDE),
    Row("PYTORCH_", Text("read by PyTorch"), TORCH_VARIABLES),
    Row("TORCH_", Text("read by PyTorch"), TORCH_VARIABLES),
)
"""Families whose members are reported even if they have no row of their own."""

FOREIGN = late(
    r"TF_(VAR|CLI|LOG|DATA_DIR|WORKSPACE|PLUGIN|REGISTRY|INPUT|IN_AUTOMATION|CONFIG)(_.*)?"
    r"|JAX_COORDINATOR.*|KERAS_REMOTE.*|NVIDIA_REQUIRE_.*"
)
"""Names that only look like members (Terraform also uses TF_), are irrelevant here, or name other
computers."""

SECRET_NAME = late(r"TOKEN|KEY|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTH|PRIVATE", re.IGNORECASE)

SECRET_VALUE = late(
    r"-----BEGIN|://[^/\s]*:[^/\s]*@|\beyJ[\w-]{10}"
    r"|\b(sk|pk|nvapi|ghp|gho|ghs|hf|glpat|pypi|xox[abp])[-_][\w-]{8}|\bgithub_pat_|\bAKIA[0-9A-Z]{12}"
)
RANDOM_WORD = late(r"(?=[^\s,:;=/]*\d)(?=[^\s,:;=/]*[A-Za-z])[A-Za-z0-9+_-]{32,}={0,2}")
"""A long run of letters and digits, which only names of folders may contain (Nix, Spack)."""


def row_of(name: str) -> Row | None:
    """The row of a variable; None if whygpu must not read it."""
    if SECRET_NAME.search(name) or FOREIGN.fullmatch(name):
        return None
    row = _BY_NAME.get(name)
    if row is not None:
        return row
    return next((family for family in FAMILIES if name.startswith(family.name)), None)


_BY_NAME = {row.name: row for row in ROWS}

"""Logs of programs around the frameworks: servers, launchers, interfaces, compilers, profilers."""

from __future__ import annotations

from tests.cases import each
from tests.kit import explained
from whygpu.model.commands import shell_text
from whygpu.readers.log import read_text

FOUND_LIBRARY = (
    'time=2024-02-03T10:20:30.101Z level=DEBUG source=gpu.go:12 msg="discovered GPU libraries" '
    "paths=[/usr/lib/libcuda.so.535.54.03]"
)
NO_GPU = 'time=2024-02-03T10:20:30.201Z level=INFO source=gpu.go:14 msg="no GPU detected"'
LAYERS = """\
n-gpu-layers: 20
llm_load_tensors:        CPU buffer size = 4000.00 MiB
llama_kv_cache_init:        CPU KV buffer size =  500.00 MiB
Output generated in 6.00 seconds (2.00 tokens/s, 12 tokens)
"""
PROFILE = """\
device: cuda (Tesla T4)
step 10 / 40
enumerate(DataLoader)#_SingleProcessDataLoaderIter._...        {}%       40.000s
aten::convolution_backward         0.50%     100.000ms
"""
LOOP = """\
Created TensorFlow device (/job:localhost/replica:0/task:0/device:GPU:0 with 9000 MB memory) -> \
physical GPU (device: 0, name: GeForce GTX 1070, pci bus id: 0000:01:00.0, compute \
capability: 6.1)
Epoch 2/9
 400/900 [====>.......] - ETA: 1:10 - loss: 0.5
$ nvidia-smi --query-gpu=utilization.gpu,memory.used --format=csv -l 3
utilization.gpu [%], memory.used [MiB]
0 %, 7000 MiB
9 %, 7000 MiB
2 %, 7000 MiB
"""


def cause_of(log: str) -> str:
    """The first root cause, or the verdict."""
    answer = explained(log)
    return answer.root_causes[0].cause if answer.root_causes else answer.verdict


@each(
    ("lines", "cause"),
    [
        # Ollama prints the numbers of the driver's errors.
        ((FOUND_LIBRARY, "cuInit err: 999", NO_GPU), "nvidia-kernel-module-state"),
        (
            (FOUND_LIBRARY.replace("lib/", "lib/wsl/lib/"), "cuInit err: 500", NO_GPU),
            "wsl-no-gpu",
        ),
        (
            (
                FOUND_LIBRARY,
                'time=2024-02-03T10:20:30.101Z level=INFO msg="Unable to load CUDA management '
                'library libnvidia-ml.so.535.54.03: nvml vram init failure: 999"',
                NO_GPU,
            ),
            "nvidia-kernel-module-state",
        ),
        # A list of folders to search does not show that one of them exists.
        (
            (
                'time=2024-02-03T10:20:30Z level=DEBUG msg="gpu library search" globs="[/usr/lib/'
                'wsl/lib/libcuda.so* /opt/cuda/lib*/libcuda.so*]"',
                "cuInit err: 999",
                NO_GPU,
            ),
            "nvidia-kernel-module-state",
        ),
        # DeepSpeed's launcher.
        (("[ERROR] [launch.py:10] ['python'] exits with return code = -9",), "host-oom"),
        (
            (
                "RuntimeError: CUDA error: device-side assert triggered",
                "[ERROR] [launch.py:10] ['python'] exits with return code = -6",
            ),
            "device-assert-bad-input",
        ),
        # ComfyUI goes on after an exception, which it prints without its type.
        (
            (
                "VAE load device: cuda:0, offload device: cpu, dtype: torch.bfloat16",
                "!!! Exception during processing !!! mat1 and mat2 shapes cannot be multiplied "
                "(4x8 and 16x2)",
            ),
            "not-gpu",
        ),
        (
            (
                "ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other "
                "processes. pre_model_load_memory=20.5, local_gpu_memory=39.0",
            ),
            "oom-other-process",
        ),
        (
            (
                "    self.model = model.to('cuda')",
                'RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "/pytorch/c10/cuda/'
                'CUDACachingAllocator.cpp":900, please report a bug to PyTorch.',
            ),
            "oom-other-process",
        ),
        (
            (
                "RuntimeError: Error launching kernel 'f', trying to launch on device='cuda:0', "
                "but input array for argument 'x' is on device=cuda:1.",
            ),
            "tensor-device-mismatch",
        ),
        (
            ("RuntimeError: Expected is_sm80 || is_sm90 to be true, but got false.",),
            "compute-capability-too-old",
        ),
        (
            ("ValueError: implementation='triton' is unsupported on this GPU generation.",),
            "compute-capability-too-old",
        ),
        (
            ("CUDAError: cuModuleLoadData(&m, data) failed with error: CUDA_ERROR_INVALID_IMAGE",),
            "driver-too-old-for-cuda",
        ),
        (
            (
                "cupy.cuda.compiler.JitifyException: Runtime compilation failed",
                'cooperative_groups/details/helpers.h(10): error: identifier "cudaCGGetSize" is '
                "undefined",
            ),
            "cuda-version-mismatch",
        ),
        (
            (
                "Error: command buffer exited with error status.",
                "The Metal Performance Shaders operations encoded on it may not have completed.",
                "Epoch 1/20 - loss: nan",
            ),
            "non-nvidia-backend",
        ),
        (
            (
                ":1:hip_code_object.cpp      :40 : 91 us: [pid:77] Cannot create Global Var obj",
                "Aborted (core dumped)",
            ),
            "non-nvidia-backend",
        ),
        (
            ("ValueError: Unrecognized keyword arguments passed to Dense: {'weights': [1]}",),
            "keras-tf-version-mismatch",
        ),
        (
            (
                "RuntimeError: Expected one of cpu, cuda, mkldnn device type at start of device "
                "string: 0",
            ),
            "not-gpu",
        ),
        (
            (
                "XlaRuntimeError: INTERNAL: Failed to capture gpu graph: [cudnn_frontend] Error: "
                "CUDNN_STATUS_EXECUTION_FAILED",
            ),
            "kernel-bug-illegal-access",
        ),
        ((LAYERS,), "cpu-only-build"),
        ((LAYERS.replace("CPU KV", "CUDA0 KV"),), "nothing-wrong"),
        ((LAYERS.replace("20", "0"),), "nothing-wrong"),
        ((PROFILE.format("70.25"),), "slow-small-or-input-bound"),
        ((PROFILE.format("12.25"),), "nothing-wrong"),
        ((LOOP,), "slow-small-or-input-bound"),
    ],
)
def test_the_cause(lines: tuple[str, ...], cause: str) -> None:
    assert cause_of("\n".join(lines)) == cause


@each(
    "lines",
    [
        # Another framework of the same program has the GPU.
        (
            "INFO Torch detected GPU: NVIDIA A10 VRAM 22000 Arch (8, 6) Cores 72",
            "I external/local_tsl/tsl/cuda/cudart_stub.cc:31] Could not find cuda drivers on your "
            "machine, GPU will not be used.",
            "Running on local URL:  http://127.0.0.1:7000",
        ),
        # It has no GPU, and its results are written.
        (
            "E tensorflow/stream_executor/cuda/cuda_driver.cc:314] failed call to cuInit: UNKNOWN "
            "ERROR (303)",
            "I tensorflow/stream_executor/cuda/cuda_diagnostics.cc:156] kernel driver does not "
            "appear to be running on this host (box): /proc/driver/nvidia/version does not exist",
            "Output saved to output.hdf5",
        ),
    ],
)
def test_programs_that_work(lines: tuple[str, ...]) -> None:
    assert cause_of("\n".join(lines)) == "nothing-wrong"


def test_a_fault_of_the_hardware_explains_the_failure_above_it() -> None:
    log = (
        "CUDA error: unspecified launch failure\n"
        "Aborted (core dumped)\n"
        "root@box:~# journalctl -k | grep NVRM\n"
        "Feb 03 10:20:30 box kernel: NVRM: Xid (PCI:0000:01:00): 62, 00000001 00000002\n"
    )
    root = explained(log).root_causes[0]
    assert (root.cause, root.confidence) == ("ecc-xid-hardware-error", "certain")
    assert 2 in {evidence.line for evidence in root.evidence}


@each(("named", "about_gpu"), [("libnvidia-compute-535", True), ("libreoffice-core", False)])
def test_a_package_manager_names_the_packages_above_its_error(named: str, about_gpu: bool) -> None:
    log = (
        "Failed to initialize NVML: Driver/library version mismatch\n$ sudo apt install -f\n"
        "Reading package lists...\nBuilding dependency tree...\nCorrecting dependencies...\n"
        f" {named} : Depends: x but it is not installed\nE: Unable to correct dependencies\n"
    )
    assert [failure.about_gpu for failure in read_text(log).failures] == [about_gpu]
    assert cause_of(log) == ("driver-library-version-mismatch" if about_gpu else "not-gpu")


TWO_PROCESSES = (
    "OutOfMemoryError: CUDA out of memory. Tried to allocate 800.00 MiB. GPU 0 has a total "
    "capacity of 24.00 GiB of which 100.00 MiB is free. Process 77 has {} memory in use. "
    "Including non-PyTorch memory, this process has 14.00 GiB memory in use. Of the allocated "
    "memory 13.50 GiB is allocated by PyTorch, and 50.00 MiB is reserved by PyTorch but "
    "unallocated."
)


@each(
    ("held", "cause"),
    [
        ("9.50 GiB", "oom-other-process"),
        ("2.00 GiB", "oom-model-too-big"),
    ],
)
def test_pytorch_names_another_process(held: str, cause: str) -> None:
    assert cause_of(TWO_PROCESSES.format(held)) == cause


DATA = "Epoch: [0][{}/50]\tTime 0.1 (2.0)\tData 0.1 ({})\tLoss 0.5"


@each(
    ("lines", "cause"),
    [
        # Ollama's list of variables has no value here.
        (
            (
                'time=2024-02-03T10:20:30Z level=INFO msg="server config" env="map['
                'CUDA_VISIBLE_DEVICES: GPU_DEVICE_ORDINAL: OLLAMA_DEBUG:INFO]"',
                'time=2024-02-03T10:20:31Z level=INFO msg="no nvidia devices detected by library '
                '/usr/lib64/libcuda.so.535.54.03"',
            ),
            "nvidia-kernel-module-state",
        ),
        (
            (
                'time=2024-02-03T10:20:30Z level=INFO msg="inference compute" id=GPU-1 '
                'library=cuda name="NVIDIA A10"',
            ),
            "nothing-wrong",
        ),
        (
            (
                "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 500: named symbol "
                "not found",
            ),
            "wsl-no-gpu",
        ),
        (("Iteration 0, Testing net (#0)", "ERROR: error code -9"), "host-oom"),
        (
            ("RuntimeError: DataLoader worker (pid 7) is killed by signal: Segmentation fault.",),
            "unknown",
        ),
        (("!!! Exception during processing !!! Numpy is not available",), "numpy-abi"),
        (
            ("CUDA error (/src/hopper/flash_fwd_launch_template.h:7): invalid argument",),
            "kernel-bug-illegal-access",
        ),
        (("RuntimeError: moe_mm: no kernel for sm_120",), "compute-capability-too-new"),
        (
            ("RuntimeError: Marlin kernel requires compute capability >= 8.0",),
            "compute-capability-too-old",
        ),
        (
            ("AssertionError: SM90 kernel is not available. Use another GPU.",),
            "compute-capability-too-old",
        ),
        (
            ("RuntimeError: device >= 0 && device < num_gpus INTERNAL ASSERT FAILED at x.cpp",),
            "invalid-device-ordinal",
        ),
        (
            ("ValueError: Could not find any GPU device matching index 3",),
            "invalid-device-ordinal",
        ),
        (
            (
                "RuntimeError: Tensor parallel size (4) cannot be larger than the number of "
                "available GPUs (2).",
            ),
            "invalid-device-ordinal",
        ),
        (
            (
                'CMake Error: Could not find CUDA: Found unsuitable version "10.1", but required '
                'is at least "11.0" (found /usr/local/cuda)',
            ),
            "cuda-version-mismatch",
        ),
        (
            ('Error: failed to stat CDI host device "/dev/nvidia-uvm": no such file',),
            "docker-no-gpu-runtime",
        ),
        (("ImportError: libnccl.so.2: cannot open shared object file: x",), "cuda-runtime-missing"),
        (
            ("ImportError: /x/torch/_C.cpython-36m.so: undefined symbol: cudnnSetGroupCount",),
            "cudnn-version-mismatch",
        ),
        (
            ("NotFoundError: /x/my_ops.so: undefined symbol: _ZN10tensorflow8OpKernelE",),
            "keras-tf-version-mismatch",
        ),
        (
            ("ImportError: dlopen: cannot load any more object with static TLS",),
            "library-path-conflict",
        ),
        (("ModuleNotFoundError: No module named 'triton'",), "not-gpu"),
        (("RuntimeError: Failed to find C compiler. Please specify via CC.",), "not-gpu"),
        (("train.py: error: unrecognized arguments: --gpus 2",), "not-gpu"),
        (tuple(DATA.format(n, 1.8) for n in range(4)), "slow-small-or-input-bound"),
        (tuple(DATA.format(n, 0.2) for n in range(4)), "nothing-wrong"),
        (tuple(DATA.format(n, 1.8) for n in range(2)), "nothing-wrong"),
        (
            tuple(f"INFO - Iter [{n}/90] time: 2.1, data_time: 1.9, loss: 0.5" for n in range(3)),
            "slow-small-or-input-bound",
        ),
    ],
)
def test_their_relatives(lines: tuple[str, ...], cause: str) -> None:
    assert cause_of("\n".join(lines)) == cause


@each(
    ("line", "cause"),
    [
        (
            "ERROR: CUDA.jl could not find an appropriate CUDA runtime to use.",
            "cuda-runtime-missing",
        ),
        (
            "thread 'main' panicked at mod.rs:7: Unable to dynamically load the \"cuda\" shared "
            "library",
            "no-nvidia-driver",
        ),
        ("RuntimeError: CUDA failed with error unknown error", "nvidia-kernel-module-state"),
        (
            "UserWarning: You will need a GPU with NVIDIA Volta or newer architecture",
            "compute-capability-too-old",
        ),
        (
            "NvvmError: Failed to compile: error: -arch=compute_35 is an unsupported option",
            "compute-capability-too-old",
        ),
        (
            "UserWarning: CUDA driver 11.0 is not supported, at least 11.5 is required",
            "driver-too-old-for-cuda",
        ),
        ("[TRT] [W] CUDA initialization failure with error: 35", "driver-too-old-for-cuda"),
        (
            "[TRT] [E] 6: The engine plan file is generated on an incompatible device",
            "cuda-version-mismatch",
        ),
        (
            "RuntimeError: gemm.cu:3 in function f: cuBLAS Error: the requested functionality is "
            "not supported",
            "kernel-bug-illegal-access",
        ),
        # Two versions in one sentence: the required one, and the one that is there.
        ("EngineError: needs driver 525.60 or newer, found 470.57", "driver-too-old-for-cuda"),
        ("RuntimeError: kernels need compute capability 8.0; this GPU has 7.5",
         "compute-capability-too-old"),
        ("RuntimeError: GPU with compute capability 12.0; this build supports 5.0, 6.0 or 7.0",
         "compute-capability-too-new"),
        ("ImportError: compiled for CUDA 12.4, the toolkit here is CUDA 11.8",
         "cuda-version-mismatch"),
        ("[error] this release only supports drivers for CUDA 11.x or 12.x, yours is for CUDA 13.0",
         "cuda-version-mismatch"),
        ("RuntimeError: built with cuDNN 9.1 but found 8.9.2", "cudnn-version-mismatch"),
        ("RuntimeError: torch 2.1 needs tokenizers 0.14 or newer for CUDA, found 0.13", "unknown"),
        # A part of the toolkit that ends a build.
        ("ops/gemm.h:6:10: fatal error: cuda_profiler_api.h: No such file or directory",
         "cuda-runtime-missing"),
        ("CMake Error at build.cmake:7 (message):\n  Failed to find nvcc.", "cuda-runtime-missing"),
        ("nvcc fatal   : Cannot find compiler 'cl.exe' in PATH", "not-gpu"),
        ("crt/host_config.h:139:2: error: #error -- unsupported GNU version! gcc versions later "
         "than 11 are not supported!", "cuda-version-mismatch"),
        # Words of a container engine, and of NVIDIA's part of it.
        ("Error: crun: error executing hook `/usr/bin/nvidia-container-toolkit` (exit code: 1)",
         "docker-no-gpu-runtime"),
        ("docker: Error response from daemon: Bind for 0.0.0.0:80 failed: port of nvidia-app",
         "unknown"),
        # Libraries in the words of other languages.
        ("System.DllNotFoundException: Unable to load DLL 'cudnn64_8.dll' or a dependency",
         "cudnn-missing"),
        ('thread \'main\' panicked at lib.rs:1: Unable to dynamically load the "cublas" shared '
         "library", "cuda-runtime-missing"),
        ("java.lang.UnsatisfiedLinkError: no jnicudart in java.library.path",
         "cuda-runtime-missing"),
        ("Failed to load shared library 'libcufft.so.11'\nRuntimeError: Failed to load backend",
         "cuda-runtime-missing"),
        ("com.example.CudaException: CUDA driver not found", "no-nvidia-driver"),
        ("thread 'main' panicked at build.rs:5: Failed to execute `nvcc`: NotFound",
         "cuda-runtime-missing"),
        ('{"level":"error","msg":"inference failed","error":"CUDA error: out of memory"}',
         "oom-model-too-big"),
        # Numbers of GPUs.
        ("Error: requested GPU 3 but only 2 devices are present", "invalid-device-ordinal"),
        ("terminate called after throwing an instance of 'x'\n  what():  Invalid GPU device 4",
         "invalid-device-ordinal"),
        # Errors of programs that say nothing else.
        ("Error: listen tcp 127.0.0.1:11434: bind: address already in use", "not-gpu"),
        ("Error: pull model manifest: file does not exist", "not-gpu"),
        ("llama: error loading model: unknown model architecture: 'abc'", "not-gpu"),
        ("Error: the GPU did something odd", "unknown"),
        # Software of other makers.
        ("RuntimeError: MPS does not support cumsum op with int64 input", "non-nvidia-backend"),
        ("RuntimeError: Can't detect Intel GPU: Level Zero loader missing", "non-nvidia-backend"),
        ("LightGBMError: No OpenCL device found, error -1", "non-nvidia-backend"),
        ("RuntimeError: the MPS server failed", "unknown"),
        ("RuntimeError: CUDA error: the remote procedural call between the MPS server and the MPS "
         "client failed", "mps-server-refuses"),
        ("failed call to cuInit: CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", "mps-server-refuses"),
        ('level=WARN source=amd.go:9 msg="amdgpu is not supported" gpu_type=gfx1031',
         "non-nvidia-backend"),
        ('level=WARN msg="get mem info" error="failed call to hipMemGetInfo: 1011"',
         "non-nvidia-backend"),
        ("LLVM ERROR: Cannot select: intrinsic %llvm.nvvm.shfl.sync.bfly.i32",
         "compute-capability-too-old"),
        ("Tesla M40 24GB\nRuntimeError: cublas error: CUBLAS_STATUS_NOT_SUPPORTED",
         "compute-capability-too-old"),
        ("RuntimeError: NVML_SUCCESS == DriverAPI::get()->nvmlInit_v2_() INTERNAL ASSERT FAILED at "
         '"../c10/cuda/CUDACachingAllocator.cpp":963', "nvidia-kernel-module-state"),
        ('ERROR: An error occurred while performing the step: "Building kernel modules". See '
         "/var/log/nvidia-installer.log", "nvidia-kernel-module-state"),
        ("$ kubectl logs vllm-0\nRuntimeError: Failed to infer device type",
         "docker-no-gpu-runtime"),
        # The name of the native source file shows that it may be about a GPU.
        ("CatBoostError: /src/cuda_manager.cpp:7: Condition violated: x", "unknown"),
    ],
)  # fmt: skip
def test_programs_in_other_languages_and_of_other_kinds(line: str, cause: str) -> None:
    assert cause_of(line) == cause


def test_a_compiler_that_is_too_new_for_nvcc_is_named_as_the_reason() -> None:
    (finding,) = explained(
        "crt/host_config.h:139:2: error: #error -- unsupported GNU version! gcc versions later "
        "than 11 are not supported!"
    ).root_causes
    assert finding.message.endswith("nvcc) supports: it supports gcc up to 11")
    assert shell_text(finding.remedies[0].action) == "export NVCC_PREPEND_FLAGS='-ccbin g++-11'"
    (other,) = explained(
        "crt/host_config.h(151): fatal error C1189: #error: -- unsupported Microsoft Visual Studio "
        "version! Only the versions between 2017 and 2022 (inclusive) are supported!"
    ).root_causes
    assert other.message.endswith("the CUDA toolkit (nvcc) supports")


@each(
    ("text", "roots"),
    [
        (
            "I have a Radeon RX 6700 XT on Windows 10. Tensorflow does not find my gpu.",
            ["non-nvidia-backend"],
        ),
        (
            "torch.cuda.is_available() returns False on my laptop with Intel Iris Xe graphics.",
            ["non-nvidia-backend"],
        ),
        # It has one of NVIDIA, too.
        ("torch.cuda.is_available() is False. Intel UHD Graphics, GeForce MX450", None),
        # A processor, and not a card.
        ("torch.cuda.is_available() is False. AMD Ryzen 7 5800H with Radeon Graphics", None),
    ],
)
def test_a_card_of_another_maker_that_a_person_names(text: str, roots: list[str] | None) -> None:
    found = [root.cause for root in explained(text).root_causes]
    assert "non-nvidia-backend" not in found if roots is None else found == roots

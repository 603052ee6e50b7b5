"""Logs of the tools around a program: installers, container engines, schedulers, compilers."""

from __future__ import annotations

from tests.cases import each
from tests.causes.test_logs_other_programs import cause_of
from tests.kit import explained


@each(
    ("log", "cause"),
    [
        # The driver's kernel module is built or loaded by other programs.
        ("Building initial module for 6.1.0\n"
         "ERROR: Cannot create report: [Errno 17] File exists: '/var/crash/x.crash'\n"
         "Error! Bad return status for module build on kernel: 6.1.0 (x86_64)\n"
         "dpkg: error processing package nvidia-dkms-535 (--configure):\n"
         "Errors were encountered while processing:\n nvidia-dkms-535\n"
         "E: Sub-process /usr/bin/dpkg returned an error code (1)",
         "nvidia-kernel-module-state"),
        ("[ 5.1] Loading of module with unavailable key is rejected\n"
         "[ 5.2] nvidia: module verification failed", "nvidia-kernel-module-state"),
        ("dkms: running auto installation for kernel 6.1 nvidia/550.54 failed",
         "nvidia-kernel-module-state"),
        # nvidia-smi writes ERR! into its table; other programs write it as well.
        ("| ERR!   52C    P2    ERR! / 250W |   900MiB / 11019MiB |    12%      Default |",
         "ecc-xid-hardware-error"),
        ("npm ERR! code ENOENT\nnpm ERR! path /app/package.json", "not-gpu"),
        # Container engines
        ("docker: Error response from daemon: failed to discover GPU vendor from CDI: none found",
         "docker-no-gpu-runtime"),
        ("docker: Error response from daemon: driver failed programming external connectivity on "
         "endpoint a: Bind for 0.0.0.0:80 failed: port is already allocated.", "not-gpu"),
        ("docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", "not-gpu"),
        ('Failed to pull image "nvcr.io/nvidia/x:1": not found\nError: ImagePullBackOff',
         "not-gpu"),
        # Windows: 126 is a missing library, 127 one of another release.
        ('[E:onnxruntime:Default] LoadLibrary failed with error 126 "" when trying to load '
         '"C:\\a\\onnxruntime_providers_cuda.dll"', "cuda-runtime-missing"),
        ('[E:onnxruntime:Default] LoadLibrary failed with error 127 "The procedure could not be '
         'found." when trying to load "C:\\a\\onnxruntime_providers_cuda.dll"',
         "windows-dll-load-failed"),
        ('level=INFO source=gpu.go:3 msg="[0] CUDA GPU is too old. Compute Capability detected: '
         '3.0"\nlevel=INFO source=gpu.go:9 msg="no compatible GPUs were discovered"',
         "compute-capability-too-old"),
        # Compilers, launchers, schedulers, services
        ("nvcc -o a a.cu\na.cu(12): error: identifier \"n\" is undefined", "not-gpu"),
        ("-- CUDA 12.1 found\nfatal: unable to access 'https://x/': Could not resolve host: x",
         "not-gpu"),
        ("sbatch: error: Batch job submission failed: Requested node configuration is not "
         "available", "not-gpu"),
        ("mpirun was unable to find the specified executable file", "not-gpu"),
        ("Cannot connect to GPU backend\nYou cannot currently connect to a GPU due to usage limits "
         "in Colab.", "not-gpu"),
        ("Device: cuda:0 NVIDIA A10 : cudaMallocAsync\ngot prompt\nFailed to validate prompt for "
         "output 9:\nOutput will be ignored", "not-gpu"),
        # The Trainer of Transformers, on a machine where PyTorch sees no GPU.
        ("ValueError: FP16 Mixed precision training with AMP can only be used on CUDA devices.",
         "cpu-only-build"),
    ],
)  # fmt: skip
def test_the_cause(log: str, cause: str) -> None:
    assert cause_of(log) == cause


def test_the_driver_of_a_jetson_board_is_opened_by_members_of_a_group() -> None:
    root = explained("NvRmMemInitNvmap failed with Permission denied\n").root_causes[0]
    assert root.cause == "device-permission-denied"


@each(
    ("log", "understood"),
    [
        ("Cannot connect to GPU backend", "Colab gives this account no machine with a GPU now"),
        ("srun: error: Unable to allocate resources: Invalid account", "the scheduler refuses"),
        ("docker: Error response from daemon: pull access denied for x", "image could not be fetc"),
    ],
)
def test_what_happened_is_said(log: str, understood: str) -> None:
    assert understood in explained(log).headline


@each(
    ("log", "cause"),
    [
        # The reason stands above an exception that gives none.
        ("[TRT] [W] CUDA initialization failure with error: 35\n"
         "TypeError: pybind11::init(): factory function returned nullptr",
         "driver-too-old-for-cuda"),
        ("terminate called after throwing an instance of 'vk::DeviceLostError'\n"
         "  what():  vk::Queue::submit: ErrorDeviceLost", "non-nvidia-backend"),
        ("NotFoundError: Could not find registered platform with id: 0x1", "non-nvidia-backend"),
        # ComfyUI's own times, and an exception without its type
        ("2025-03-15T22:57:28.208512 - Device: cuda:0 NVIDIA A10 : cudaMallocAsync\n"
         "2025-03-15T22:59:31.110306 - !!! Exception during processing !!! CUDA error: operation "
         "not supported", "kernel-bug-illegal-access"),
        # Names of exceptions without "Error"
        ("GPU: NVIDIA A10\npyarrow.lib.ArrowInvalid: offset overflow", "not-gpu"),
        ("GPU: NVIDIA A10\ntorch._dynamo.exc.Unsupported: call_function print", "not-gpu"),
        ("torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:", "unknown"),
        ("CalledProcessError: Command '['where', 'cl']' returned non-zero exit status 1.",
         "not-gpu"),
    ],
)  # fmt: skip
def test_where_the_reason_is(log: str, cause: str) -> None:
    assert cause_of(log) == cause


def test_a_missing_tool_is_not_a_missing_framework() -> None:
    root = explained("sudo: nvidia-smi: command not found\n").root_causes[0]
    assert root.cause == "no-nvidia-driver"
    assert root.message.startswith(
        "the program nvidia-smi, a part of NVIDIA's driver, is not installed"
    )


FLAGS = "flags : fpu vme de pse tsc msr sse sse2 ssse3 sse4_1 sse4_2 popcnt aes xsave {}"


@each(
    ("flags", "cause"),
    [
        (FLAGS.format("f16c"), "avx-missing-sigill"),
        (FLAGS.format("avx f16c"), "avx-missing-sigill"),
        (FLAGS.format("avx f16c avx2"), "unknown"),
    ],
)
def test_the_list_of_the_processor_shows_what_it_lacks(flags: str, cause: str) -> None:
    log = (
        f">>> import tensorflow\nIllegal instruction (core dumped)\n$ cat /proc/cpuinfo\n{flags}\n"
    )
    assert cause_of(log) == cause


def test_a_processor_with_avx_is_not_said_to_lack_it() -> None:
    log = f"Illegal instruction (core dumped)\n{FLAGS.format('avx')}\n"
    assert "has AVX, but not AVX2" in explained(log).headline


REFUSED = (
    "RuntimeError: CUDA out of memory. Tried to allocate {asked} (GPU 0; 18.00 GiB total capacity; "
    "{held} already allocated; {free} free; {reserved} reserved in total by PyTorch)"
)


@each(
    ("asked", "held", "free", "reserved", "cause", "confidence"),
    [
        # Reserved and hardly used: enough together with what is free, but in pieces.
        ("9.60 GiB", "400.00 KiB", "8.60 GiB", "8.30 GiB", "oom-leak-or-fragmentation", "likely"),
        # The program itself holds it.
        ("9.60 GiB", "8.00 GiB", "8.60 GiB", "8.30 GiB", "oom-model-too-big", "certain"),
        # Free memory that is refused: the figures do not say why.
        ("128.00 MiB", "2.00 GiB", "15.00 GiB", "2.00 GiB", "oom-leak-or-fragmentation",
         "possible"),
    ],
)  # fmt: skip
def test_figures_of_pytorch(
    asked: str, held: str, free: str, reserved: str, cause: str, confidence: str
) -> None:
    log = REFUSED.format(asked=asked, held=held, free=free, reserved=reserved)
    root = explained(log).root_causes[0]
    assert (root.cause, root.confidence) == (cause, confidence)


@each(("needs", "cause"), [("12.00MiB", "oom-other-process"), ("9.00GiB", "oom-model-too-big")])
def test_xla_says_what_a_computation_needs(needs: str, cause: str) -> None:
    log = (
        "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 6000000 "
        f"bytes.\nBufferAssignment stats:\n                 total allocation:   {needs}\n"
    )
    assert cause_of(log) == cause


RELAY = "I0216 16:34:49.313503 13997 run_docker.py:222] "


def test_a_program_that_logs_the_output_of_another_is_no_source_of_records() -> None:
    log = (
        f"{RELAY}I0216 08:34:49.312897 14001 xla_bridge.py:212] Unable to initialize backend "
        "'tpu_driver': Not found: Unable to find driver in registry\n"
        f"{RELAY}RuntimeError: the search failed\n"
    )
    assert cause_of(log) == "not-gpu"
    # Alone, it may be a record like any other.
    assert cause_of(log.partition("\n")[2]) != "not-gpu"


@each(
    ("log", "cause"),
    [
        # The driver's own tool fails as well, so no variable hides the GPU.
        ("# nvidia-smi\nFailed to initialize NVML: Unknown Error\n"
         "RuntimeError: No CUDA GPUs are available", "docker-no-gpu-runtime"),
        ("RuntimeError: No CUDA GPUs are available", "visible-devices-hides-gpu"),
        ("| N/A    0C    P8   N/A /  N/A |    501MiB / 49152MiB |      0%   Prohibited |\n"
         'level=INFO msg="no compatible GPUs were discovered"', "compute-mode-blocks"),
        ("Platform CUDA: no supported devices found\nStreamExecutor cuda device (0) is of "
         "insufficient compute capability: 3.5 required, device has 3.0",
         "compute-capability-too-old"),
        ("UserWarning: cuDNN library not found. Check your LD_LIBRARY_PATH", "cudnn-missing"),
        # The function is of the package that could not be loaded.
        ("xFormers was built for:\n    PyTorch 2.3.0+cu121 with CUDA 1201 (you have 2.1.0+cu121)\n"
         "NotImplementedError: No operator found for `memory_efficient_attention_forward`",
         "cuda-version-mismatch"),
        ("F tensorflow/core/common_runtime/dml/dml_adapter_impl.cc:305] HRESULT failed with "
         "0xd0000001: DXCoreCreateAdapterFactory(x)\nAborted", "non-nvidia-backend"),
        *((f"RuntimeError: Expected one of cpu, cuda device type at start of device string: {name}",
           cause) for name, cause in (("mps", "non-nvidia-backend"), ("dml", "non-nvidia-backend"),
                                      ("gpu", "not-gpu"))),
        ("Step 6/6 : RUN make\n ---> Running in 91d783d212aa\nCMake Error at CMakeLists.txt:54 "
         "(message):\n  Nvidia GPU not found.  Abort.", "docker-no-gpu-runtime"),
        ("RuntimeError: [/src/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out "
         "waiting 1800000ms for recv operation to complete", "unknown"),
    ],
)  # fmt: skip
def test_which_line_decides(log: str, cause: str) -> None:
    assert cause_of(log) == cause


SEEN = 'level=INFO msg="inference compute" id=GPU-1 library=cuda name="NVIDIA A100"\n'


def test_a_model_that_stays_on_the_cpu_has_several_reasons() -> None:
    answer = explained(f"{SEEN}load_tensors: offloaded 0/27 layers to GPU\n")
    (root,) = answer.root_causes
    assert (root.cause, root.confidence) == ("gpu-unused", "possible")
    assert cause_of(f"{SEEN}load_tensors: offloaded 27/27 layers to GPU\n") == "nothing-wrong"


@each(
    ("log", "cause"),
    [
        # An old ptxas is used; only a later failure makes it a suspect.
        ("W asm_compiler.cc:111] *** WARNING *** You are using ptxas 10.2.300, which is older than "
         "11.1.", "nothing-wrong"),
        ("W tensorflow/x/asm_compiler.cc:111] *** WARNING *** You are using ptxas 10.2.300, which "
         "is older than 11.1.\nInternalError: CUDA code gave a wrong address",
         "ptxas-libdevice-missing"),
        ("gcc: fatal error: Killed signal terminated program cc1plus\ncompilation terminated.",
         "host-oom"),
        ("RuntimeError: Insufficient VRAM for model and cache", "oom-model-too-big"),
        ("****NvRmMemInit failed**** error type: 196626\nCuda failure: no CUDA-capable device is "
         "detected", "nvidia-kernel-module-state"),
        # The same words about something else.
        ("ValueError: SSE4 is not supported on this architecture", "not-gpu"),
        ("Not enough VRAM? Start with --lowvram.\nEpoch 1 loss 0.5\nEpoch 2 loss 0.4",
         "nothing-wrong"),
        ("[ 5.1] Loading of unsigned module is rejected\n[ 5.2] vboxdrv: failed\n"
         "ValueError: no data", "not-gpu"),
        # An object that was never completed does not show that the work was finished.
        ("Exception ignored in: <function Adam.__del__ at 0x7f>\nTraceback (most recent call "
         'last):\n  File "a.py", line 9, in __del__\n    self.op.close()\n'
         "AttributeError: 'Adam' object has no attribute 'op'", "unknown"),
        ("Exception ignored in: <function Adam.__del__ at 0x7f>\nTraceback (most recent call "
         'last):\n  File "a.py", line 9, in __del__\n    self.op.close()\n'
         "AttributeError: 'NoneType' object has no attribute 'op'", "nothing-wrong"),
    ],
)  # fmt: skip
def test_what_only_looks_alike(log: str, cause: str) -> None:
    assert cause_of(log) == cause


@each(
    ("log", "cause"),
    [
        # What the container says explains what the program says.
        ("INFO:    Could not find any nv files on this host!\n"
         "RuntimeError: No CUDA GPUs are available", "docker-no-gpu-runtime"),
        ("Linux box 4.4.0-19041-Microsoft x86_64\nE x/cuda_driver.cc:271] failed call to cuInit: "
         "CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected", "wsl-no-gpu"),
        ("ERROR: The Compose file './docker-compose.yml' is invalid because:\nservices.a.deploy "
         "value Additional properties are not allowed ('devices' was unexpected)",
         "docker-no-gpu-runtime"),
        ("ERROR: The Compose file './docker-compose.yml' is invalid because:\nservices.a.port "
         "value is no number", "not-gpu"),
        ("ValueError: type fp8e4nv not supported in this architecture.",
         "compute-capability-too-old"),
        ("RuntimeError: No available kernel. Aborting execution.", "unknown"),
        # Steps of an image build, whose own failure says nothing.
        ('#12 2.311 Traceback (most recent call last):\n#12 2.311   File "<string>", line 1, in '
         '<module>\n#12 2.311 AssertionError\nERROR: failed to solve: process "/bin/sh -c x" did '
         "not complete successfully: exit code: 1", "unknown"),
        ("#9 1.204 ModuleNotFoundError: No module named 'yaml'\nERROR: failed to solve: process "
         '"/bin/sh -c x" did not complete successfully: exit code: 1', "not-gpu"),
        # A plain error just above a failure without a reason is its reason.
        ("found 1 CUDA devices\nerror loading model: unknown (magic, version) combination: 4655\n"
         "AssertionError", "not-gpu"),
        ("found 1 CUDA devices\nerror loading model: the CUDA file is corrupt\nAssertionError",
         "unknown"),
        ("RuntimeError: Cannot find a working triton installation. It is not installed or too old.",
         "not-gpu"),
    ],
)  # fmt: skip
def test_containers_and_builds_explain_what_programs_say(log: str, cause: str) -> None:
    assert cause_of(log) == cause

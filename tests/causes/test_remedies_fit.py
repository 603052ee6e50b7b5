"""Each remedy fits the machine or the log: its system, its versions, its kind of program."""

from __future__ import annotations

import os
import subprocess

from tests.cases import each
from tests.kit import cause_named, command_of, lint, machine, run
from tests.pasting import BASH
from whygpu import diagnose, explain
from whygpu.model.commands import shell_text
from whygpu.model.finding import Finding

GIGABYTES = "Tried to allocate 2.00 GiB (GPU 0; 11.00 GiB total capacity; 5.00 GiB already "
FRAGMENTED = (
    f"torch.cuda.OutOfMemoryError: CUDA out of memory. {GIGABYTES}allocated; 1.00 GiB free; "
    "9.50 GiB reserved in total by PyTorch)"
)
ON_WINDOWS = 'File "C:\\Users\\lee\\train.py", line 3, in <module>'
TRACEBACK = "Traceback (most recent call last):"


def found(log: str, slug: str) -> Finding:
    explanation = explain(log + "\n")
    every = (*explanation.root_causes, *explanation.symptoms, *explanation.noise)
    return next(finding for finding in every if finding.cause == slug)


def commands(log: str, slug: str) -> list[str]:
    """The commands of a finding as they are printed for this log."""
    installer = explain(log + "\n").installer
    texts = (shell_text(remedy.action, installer) for remedy in found(log, slug).remedies)
    return [text for text in texts if text is not None]


def advice(log: str, slug: str) -> str:
    return " ".join(remedy.text for remedy in found(log, slug).remedies)


_SPLIT = "max_split_size_mb:128"
_GROW = "expandable_segments:True"


@each(
    ("log", "command"),
    [
        (f"torch 1.13.1\n{FRAGMENTED}", f"export PYTORCH_CUDA_ALLOC_CONF={_SPLIT}"),
        (f"torch 2.0.1\n{FRAGMENTED}", f"export PYTORCH_CUDA_ALLOC_CONF={_SPLIT}"),
        (f"torch 2.1.0\n{FRAGMENTED}", f"export PYTORCH_CUDA_ALLOC_CONF={_GROW}"),
        (FRAGMENTED, f"export PYTORCH_CUDA_ALLOC_CONF={_SPLIT}"),
        (
            FRAGMENTED.replace("torch.cuda.Out", "torch.Out"),
            f"export PYTORCH_CUDA_ALLOC_CONF={_GROW}",
        ),
        (
            f"{FRAGMENTED} try setting PYTORCH_ALLOC_CONF=expandable_segments:True",
            f"export PYTORCH_ALLOC_CONF={_GROW}",
        ),
        (
            f"torch 2.4.0\n{TRACEBACK}\n  {ON_WINDOWS}\n{FRAGMENTED}",
            f"$env:PYTORCH_CUDA_ALLOC_CONF = '{_SPLIT}'",
        ),
        (
            "torch 2.4.0\n" + FRAGMENTED.replace("CUDA out", "HIP out"),
            f"export PYTORCH_HIP_ALLOC_CONF={_SPLIT}",
        ),
    ],
)
def test_segments_grow_only_where_pytorch_has_that_setting(log: str, command: str) -> None:
    assert command in commands(log, "oom-leak-or-fragmentation")


MPS = (
    "RuntimeError: MPS backend out of memory (MPS allocated: 17.00 GB, other allocations: "
    "384.00 KB, max allowed: 18.13 GB). Tried to allocate 2.00 GB on private pool."
)


def test_a_mac_gets_no_tool_of_nvidia() -> None:
    root = found(MPS, "oom-model-too-big")
    assert "nvidia" not in str(root.remedies)
    assert "nvidia" not in (root.ask or "")
    assert "CUDA" not in str(root.remedies)


BIG = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a "
    "total capacity of 11.00 GiB of which 1.00 GiB is free. Of the allocated memory 9.80 GiB is "
    "allocated by PyTorch, and 10.00 MiB is reserved by PyTorch but unallocated."
)


@each(
    ("frame", "trains"),
    [
        ("loss.backward()", True),
        ("out = model.generate(ids)", False),
        ("image = pipeline(prompt)", False),
        ("loss = trainer.train(llama)", True),
    ],
)
def test_only_a_program_that_trains_is_told_to_accumulate_gradients(
    frame: str, trains: bool
) -> None:
    log = f'{TRACEBACK}\n  File "/srv/a.py", line 3, in <module>\n    {frame}\n{BIG}'
    text = advice(log, "oom-model-too-big")
    assert ("accumulate" in text) is trains
    assert ("inference_mode" in text) is not trains


BUS = "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that"


@each(
    ("place", "command"),
    [
        ("docker run -it image", "docker run --shm-size=8g ..."),
        ("podman run -it image", "podman run --shm-size=8g ..."),
        ("kubectl logs train-0", None),
    ],
)
def test_shared_memory_grows_by_the_tool_that_runs_the_container(
    place: str, command: str | None
) -> None:
    log = f"$ {place}\n{BUS} dataloader's workers are out of shared memory."
    assert [c for c in commands(log, "host-oom") if "shm-size" in c] == (
        [command] if command else []
    )
    assert ("emptyDir" in advice(log, "host-oom")) is (command is None)


SYSTEM_ERROR = "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:492, unhandled system error"
NO_ROOM = (
    "host:7:7 [0] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on "
    f"device\n{SYSTEM_ERROR}"
)


@each(
    ("log", "first"),
    [
        (NO_ROOM, "docker run --shm-size=8g ..."),
        (f"$ podman run image\n{NO_ROOM}", "podman run --shm-size=8g ..."),
        (f"$ docker run image\n{SYSTEM_ERROR}", "export NCCL_DEBUG=INFO"),
        (SYSTEM_ERROR, "export NCCL_DEBUG=INFO"),
    ],
)
def test_nccl_hears_of_shared_memory(log: str, first: str) -> None:
    printed = commands(log, "nccl-failure")
    assert printed[0] == first
    assert any("shm-size" in command for command in printed) is (log != SYSTEM_ERROR)


def test_a_pod_gets_a_volume_as_shared_memory() -> None:
    log = f"$ kubectl logs train-0\n{NO_ROOM}"
    assert not any("docker" in command for command in commands(log, "nccl-failure"))
    assert "emptyDir" in advice(log, "nccl-failure")


@each(
    ("log", "variable"),
    [
        (NO_ROOM, "NCCL_SHM_DISABLE"),
        (
            "host:7:7 [0] NCCL WARN Net : Connection refused\n" + SYSTEM_ERROR,
            "NCCL_IB_DISABLE",
        ),
        (SYSTEM_ERROR, "NCCL_P2P_DISABLE"),
    ],
)
def test_the_path_between_gpus_that_failed_is_turned_off_first(log: str, variable: str) -> None:
    set_here = [c for c in commands(log, "nccl-failure") if "_DISABLE" in c]
    assert set_here == [f"export {variable}=1"]


BY_NCCL = (
    "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:268, unhandled system error, "
    "NCCL version 2.21.5\nncclSystemError: System call (e.g. socket, malloc) or external library "
    "call failed or device error. \nLast error:\n"
)


@each(
    ("last", "part", "variable"),
    [
        (
            "Error while creating shared memory segment /dev/shm/nccl-aB (size 738)",
            "/dev/shm",
            "SHM",
        ),
        ("socketStartConnect: Connect to node2 failed", "over the network", "IB"),
        ("something that nobody has seen", "NCCL says: something that nobody", "P2P"),
    ],
)
def test_nccl_says_what_has_failed_and_its_code_does_not(
    last: str, part: str, variable: str
) -> None:
    finding = found(BY_NCCL + last, "nccl-failure")
    assert part in finding.message
    assert last in str(finding.evidence)
    assert f"export NCCL_{variable}_DISABLE=1" in commands(BY_NCCL + last, "nccl-failure")


def test_a_code_alone_is_not_taken_for_the_network() -> None:
    log = BY_NCCL.partition("Last error")[0]
    assert "network" not in found(log, "nccl-failure").message


def test_nccl_needs_shared_memory_whatever_the_number_of_workers() -> None:
    log = (
        "kubectl logs train-0\n[3] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No "
        "space left on device\n"
    )
    assert "num_workers" not in advice(log, "host-oom")
    assert "export NCCL_SHM_DISABLE=1" in commands(log, "host-oom")


def test_a_build_without_nccl_gets_no_variables() -> None:
    log = "RuntimeError: Distributed package doesn't have NCCL built in"
    assert commands(log, "nccl-failure") == []


def test_the_container_toolkit_has_no_command_of_one_distribution() -> None:
    log = (
        'docker: Error response from daemon: could not select device driver "" with '
        "capabilities: [[gpu]]."
    )
    assert not any("apt" in command for command in commands(log, "docker-no-gpu-runtime"))
    assert "https://docs.nvidia.com/" in advice(log, "docker-no-gpu-runtime")


def on_machine(slug: str, text: str) -> tuple[Finding, list[str]]:
    """The first finding on a machine, and its commands."""
    seen = machine(text)
    first = run(cause_named(slug), seen).findings[0]
    texts = (command_of(remedy, seen) for remedy in first.remedies)
    return first, [text for text in texts if text is not None]


NO_DRIVER = """
[[graphics]]
vendor = "nvidia"
address = "0000:01:00.0"
device_id = "{device}"
kernel_driver = "nouveau"
[system]
distribution = "{distribution}"
[driver]
state = "missing"
version = {{absent = "NVIDIA driver"}}
cuda = {{absent = "NVIDIA driver"}}
kernel_module = {{absent = "/proc/driver/nvidia/version"}}
uvm = false
cuda_library = {{absent = "libcuda.so.1 in the usual folders"}}
nvml_library = {{absent = "libnvidia-ml.so.1 in the usual folders"}}
device_nodes = {{absent = "/dev/nvidia*"}}
gpus = {{absent = "NVIDIA driver"}}
"""


@each(
    ("device", "open_modules"),
    [("1b80", False), ("1db4", False), ("1e04", True), ("2684", True)],
    ids=["Pascal", "Volta", "Turing", "Ada"],
)
def test_arch_gets_the_open_modules_only_for_gpus_that_they_drive(
    device: str, open_modules: bool
) -> None:
    text = NO_DRIVER.format(device=device, distribution="Arch Linux")
    finding, printed = on_machine("no-nvidia-driver", text)
    assert ("sudo pacman -S nvidia-open nvidia-utils" in printed) is open_modules
    assert ("proprietary" in finding.remedies[0].text) is not open_modules


LOST = """
[system.container]
runtime = "{runtime}"
driver_mounts = ["/dev/nvidia0", "/usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06"]
[driver]
state = "failed"
detail = "Unknown Error"
[probes.cuda]
facts = [["cuInit", "999 CUDA_ERROR_UNKNOWN"]]
"""


@each(("runtime", "docker"), [("docker", True), ("podman", False), ("kubernetes", False)])
def test_only_docker_gets_a_command_of_docker(runtime: str, docker: bool) -> None:
    _, printed = on_machine("docker-no-gpu-runtime", LOST.format(runtime=runtime))
    assert any("docker" in command for command in printed) is docker


WITHHELD = """
[environment.variables.NVIDIA_VISIBLE_DEVICES]
value = "void"
[system.container]
runtime = "{runtime}"
driver_mounts = {{absent = "mountinfo"}}
[driver]
state = "missing"
cuda_library = {{absent = "libcuda.so.1"}}
nvml_library = {{absent = "libnvidia-ml.so.1"}}
device_nodes = {{absent = "/dev/nvidia*"}}
gpus = {{unknown = "NVML could not tell"}}
"""


@each(
    ("runtime", "printed"),
    [
        ("docker", ["docker run --gpus all -e NVIDIA_VISIBLE_DEVICES=all ..."]),
        ("podman", ["podman run --device nvidia.com/gpu=all ..."]),
        ("kubernetes", []),
    ],
)
def test_a_container_without_its_gpu_is_started_by_its_own_tool(
    runtime: str, printed: list[str]
) -> None:
    text = WITHHELD.format(runtime=runtime)
    assert on_machine("visible-devices-hides-gpu", text)[1] == printed


NO_LIBDEVICE = "error: Can't find libdevice directory ${CUDA_DIR}/nvvm/libdevice"
OPENED = "dso_loader.cc:53] Successfully opened dynamic library {}"
NVCC = "python -m pip install --upgrade nvidia-cuda-nvcc"
NAMED = (
    'export XLA_FLAGS="--xla_gpu_cuda_data_dir='
    "$(python -c 'import nvidia; print(list(nvidia.__path__)[0])')/cuda_nvcc\""
)
SEARCHED = "Searched for CUDA in the following directories:\n  ./cuda_sdk_lib\n"


@each(
    ("log", "command"),
    [
        ("tensorflow 2.12.0", f"{NVCC}-cu11 && {NAMED}"),
        ("tensorflow 2.14.1", f"{NVCC}-cu11"),
        ("tensorflow 2.16.1", f"{NVCC}-cu12"),
        (OPENED.format("libcudart.so.11.0"), f"{NVCC}-cu11 && {NAMED}"),
        (f"tensorflow 2.16.1\n{SEARCHED}  /usr/local/cuda", f"{NVCC}-cu12 && {NAMED}"),
        (f"tensorflow 2.16.1\n{SEARCHED}  /env/nvidia/cuda_nvcc", f"{NVCC}-cu12"),
        ("jax-cuda13-plugin 0.9.0", NVCC),
        ("tensorflow 2.3.0", None),
        ("tensorflow", None),
        ('File "C:\\Users\\lee\\a.py", line 3\ntensorflow 2.10.0', None),
    ],
)
def test_the_compiler_is_that_of_the_builds_cuda(log: str, command: str | None) -> None:
    printed = commands(f"{log}\n{NO_LIBDEVICE}", "ptxas-libdevice-missing")
    assert [text for text in printed if "nvcc" in text] == ([command] if command else [])
    assert ("/usr/local/cuda" in str(printed)) is ("C:" not in log)


NO_CUDNN = (
    "W dso_loader.cc:64] Could not load dynamic library '{}'; dlerror: {}: cannot open shared "
    "object file: No such file or directory"
)


@each(
    ("log", "library", "command"),
    [
        ("tensorflow 2.14.0", "libcudnn.so.8", "python -m pip install 'nvidia-cudnn-cu11==8.*'"),
        ("tensorflow 2.16.1", "libcudnn.so.8", "python -m pip install 'nvidia-cudnn-cu12==8.*'"),
        ("tensorflow 2.18.0", "libcudnn.so.9", "python -m pip install 'nvidia-cudnn-cu12==9.*'"),
        ("tensorflow 2.11.0", "libcudnn.so.8", "conda install -c conda-forge cudnn=8"),
        ("tensorflow 2.3.0", "libcudnn.so.7", "conda install -c conda-forge cudnn=7"),
        ("jax-cuda13-plugin", "libcudnn.so.9", "python -m pip install 'nvidia-cudnn-cu13==9.*'"),
        ("tensorflow", "libcudnn.so.8", None),
    ],
)
def test_the_cudnn_is_that_of_the_builds_cuda(log: str, library: str, command: str | None) -> None:
    printed = commands(f"{log}\n{NO_CUDNN.format(library, library)}", "cudnn-missing")
    assert [text for text in printed if "install" in text] == ([command] if command else [])


OLDER_CUDNN = """
only = ["tensorflow"]
[target.frameworks.tensorflow.libraries."libcudnn.so.9"]
path = "/opt/cudnn/lib/libcudnn.so.9"
[cuda.copies.old]
soname = "libcudnn.so.9"
path = "/opt/cudnn/lib/libcudnn.so.9"
version = "9.1.0"
origin = "system"
owner = ""
"""


def test_a_newer_copy_that_is_not_loaded_is_not_called_missing() -> None:
    finding, printed = on_machine("cudnn-version-mismatch", OLDER_CUDNN)
    assert "missing" not in " ".join(remedy.text for remedy in finding.remedies)
    assert printed[0] == "whygpu run -- python PROGRAM.py"
    assert any("LD_LIBRARY_PATH" in command and "cudnn/lib" in command for command in printed)
    assert not any("pip" in command for command in printed)


def test_no_copy_that_is_new_enough_means_an_installation() -> None:
    text = OLDER_CUDNN + "[cuda.copies.cudnn]\nremove = true\n"
    _, printed = on_machine("cudnn-version-mismatch", text)
    assert any("nvidia-cudnn-cu12>=9." in command for command in printed)


def test_windows_gets_no_folder_of_linux() -> None:
    log = f"{TRACEBACK}\n  {ON_WINDOWS}\nOSError: CUDA_HOME environment variable is not set"
    assert commands(log, "cuda-runtime-missing") == []
    assert "CUDA_PATH" in advice(log, "cuda-runtime-missing")


REMOVED = "AttributeError: module 'tensorflow' has no attribute 'placeholder'"


def test_code_for_tensorflow_1_can_be_run_at_once() -> None:
    assert commands(REMOVED, "session-api-removed-in-tf2")[0] == (
        "whygpu run --tf1 -- python FILE.py"
    )
    (linted,) = lint("import tensorflow as tf\nx = tf.placeholder(tf.float32)\ntf.Session()\n")
    assert "whygpu run --tf1 -- python FILE" in linted.finding.remedies[0].text


UNKNOWN_FLAG = "F0000 parse_flags_from_env.cc:226] Unknown flags in XLA_FLAGS: --xla_gpu_old=1"


def test_only_the_wrong_flag_is_removed() -> None:
    (command,) = commands(UNKNOWN_FLAG, "environment-variable-ineffective")
    before = "--xla_a=2 --xla_gpu_old=1 --xla_gpu_old_too=3"
    shown = subprocess.run(
        [BASH, "-c", f'{command}; printf %s "$XLA_FLAGS"'],
        env={"XLA_FLAGS": before, "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout == "--xla_a=2 --xla_gpu_old_too=3"


def test_the_other_flags_of_a_variable_stay() -> None:
    text = """
[environment.variables.XLA_FLAGS]
value = "--xla_gpu_autotune_level=2 --xla_gpu_cuda_data_dir=/nowhere"
problem = "--xla_gpu_cuda_data_dir names a folder that does not exist"
"""
    _, printed = on_machine("environment-variable-ineffective", text)
    assert printed == ["export XLA_FLAGS=--xla_gpu_autotune_level=2"]


def test_a_shadowing_file_is_named() -> None:
    text = """
[probes.torch]
ended = "exception"
stage = "import"
how = "ImportError: cannot import name 'Random' from 'random' (/srv/app/random.py)"
"""
    finding, _ = on_machine("framework-import-fails", text)
    assert finding.remedies[0].text.startswith("Rename /srv/app/random.py")
    installed = text.replace("/srv/app", "/venv/lib/python3.11/site-packages/x")
    finding, _ = on_machine("framework-import-fails", installed)
    assert "Rename" not in finding.remedies[0].text


@each(
    ("architecture", "slug"),
    [("sm_37", "compute-capability-too-old"), ("sm_90", "compute-capability-too-new")],
)
def test_an_architecture_that_ptxas_lacks_is_too_old_or_too_new(
    architecture: str, slug: str
) -> None:
    log = f"ptxas fatal   : Value '{architecture}' is not defined for option 'gpu-name'"
    assert [finding.cause for finding in explain(log + "\n").root_causes] == [slug]


@each(
    ("opened", "slugs"),
    [
        ("libcudart.so.13", ["compute-capability-too-old"]),
        ("libcudart.so.9.0", ["compute-capability-too-new"]),
    ],
)
def test_a_compiler_that_dropped_a_gpu_does_not_make_it_new(opened: str, slugs: list[str]) -> None:
    log = (
        f"{OPENED.format(opened)}\n"
        "ptxas fatal   : Value 'sm_70' is not defined for option 'gpu-name'\n"
    )
    assert [finding.cause for finding in explain(log).root_causes] == slugs


NEW_GPU = (
    "UserWarning: NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the "
    "current PyTorch installation.\nThe current PyTorch install supports CUDA capabilities sm_50 "
    "sm_80 sm_90."
)


def test_a_gpu_in_the_log_is_planned_for() -> None:
    assert commands(NEW_GPU, "compute-capability-too-new") == ["whygpu plan torch --gpu 12.0"]


JIT = (
    "gpu_device.cc:2433] TensorFlow was not built with CUDA kernel binaries compatible with "
    "compute capability {}. CUDA kernels will be jit-compiled from PTX\n"
    "InternalError: 'cuLaunchKernel(function)' failed with 'CUDA_ERROR_INVALID_HANDLE'"
)


def test_a_release_that_fails_for_others_is_not_offered() -> None:
    slug = "compute-capability-too-new"
    assert commands(JIT.format("12.0"), slug) == ["whygpu plan tensorflow --gpu 12.0"]
    assert "reported not to work on this GPU either" in advice(JIT.format("12.0"), slug)
    assert "nvcr.io/nvidia/tensorflow" in advice(JIT.format("12.0"), slug)
    assert "reported" not in advice(JIT.format("10.0"), slug)


@each(
    ("board", "printed"),
    [
        ("on my Jetson Orin Nano", False),
        ("NVIDIA Jetson, L4T", False),
        ("JetPack 6.1", False),
        ("Linux-5.10.120-tegra-aarch64", False),
        ("Jetson AGX Thor", True),
        ("JetPack 7.0", True),
        ("a server", True),
    ],
)
def test_a_jetson_is_offered_no_wheel_for_servers(board: str, printed: bool) -> None:
    log = f"{board}\n{NO_CUDA}"
    installs = [text for text in commands(log, "cpu-only-build") if "install" in text]
    assert bool(installs) is printed
    assert ("jetson-ai-lab" in advice(log, "cpu-only-build")) is not printed


def test_a_gpu_in_the_log_decides_about_the_build() -> None:
    (old,) = commands(f"GeForce GTX 1080\ntorch 2.13.0\n{NO_CUDA}", "cpu-only-build")
    assert old.endswith("torch==2.13.0 --index-url https://download.pytorch.org/whl/cu126")
    both = f"GeForce GTX 1080\nGeForce RTX 4090\ntorch 2.13.0\n{NO_CUDA}"
    (unknown,) = commands(both, "cpu-only-build")
    assert unknown.endswith("torch==2.13.0 --index-url https://download.pytorch.org/whl/cu130")


def test_without_a_known_system_the_index_is_named_which_windows_needs() -> None:
    lines = f"torch 2.13.0\n{NO_CUDA}"
    (anywhere,) = commands(lines, "cpu-only-build")
    assert "torch==2.13.0 --index-url https://download.pytorch.org/whl/cu1" in anywhere
    (linux,) = commands(f"/usr/lib/x86_64-linux-gnu/libc.so.6\n{lines}", "cpu-only-build")
    assert "--index-url" not in linux


def test_a_release_that_cannot_use_the_gpu_is_not_offered_again() -> None:
    log = "torch 2.0.1\nRuntimeError: CUDA error: device kernel image is invalid"
    (command,) = commands(log, "compute-capability-too-new")
    assert "torch==2.0" not in command


NO_CUDA = "AssertionError: Torch not compiled with CUDA enabled"


@each(
    "card",
    ["AMD Radeon RX 7900 XTX", "Intel(R) Arc Graphics", "my RX 6700 XT", "RX7600", "an MI300X"],
)
def test_other_gpus_are_offered_no_build_with_cuda(card: str) -> None:
    explanation = explain(f"{card}\n{NO_CUDA}\n")
    for finding in (*explanation.root_causes, *explanation.symptoms):
        for remedy in finding.remedies:
            assert "pip install torch" not in (shell_text(remedy.action) or "")


@each(
    ("card", "value"),
    [
        *(("gfx1031", "10.3.0"), ("gfx1103", "11.0.0"), ("gfx90c", None)),
        *(("AMD Radeon RX 7600", "11.0.0"), ("RX 6700 XT", "10.3.0"), ("RX 7900 XTX", None)),
    ],
)
def test_an_amd_card_is_taken_for_one_of_its_own_family(card: str, value: str | None) -> None:
    log = f"Name: {card}\nrocBLAS error: Cannot read TensileLibrary.dat"
    printed = commands(log, "non-nvidia-backend")
    shown = [text for text in printed if "HSA_OVERRIDE" in text]
    assert shown == ([f"export HSA_OVERRIDE_GFX_VERSION={value}"] if value else [])


def test_a_kernel_of_amd_is_not_searched_with_tools_of_nvidia() -> None:
    log = (
        "torch 2.4.0+rocm6.1\nMemory access fault by GPU node-1 (Agent handle: 0x1) on address 0x2."
    )
    assert commands(log, "kernel-bug-illegal-access") == ["AMD_SERIALIZE_KERNEL=3 python ..."]


@each(
    ("framework", "package"),
    [("tensorflow", "tensorflow"), ("torch", "pytorch")],
)
def test_the_build_without_avx_is_that_of_the_log(framework: str, package: str) -> None:
    log = f"import {framework}\n{framework} 2.1.0\nIllegal instruction (core dumped)"
    assert f"conda install -c conda-forge {package}" in commands(log, "avx-missing-sigill")


def test_what_needs_root_comes_last() -> None:
    text = """
only = ["torch"]
[driver]
version = "550.54.14"
cuda = "12.4"
[target.frameworks.torch.build]
cuda = "13.0"
"""
    _, printed = on_machine("driver-too-old-for-cuda", text)
    assert [command.startswith("sudo") for command in printed] == [False, True]


@each(
    ("log", "package"),
    [("tensorflow 2.16.1", "'tf-keras==2.16.*'"), ("import tensorflow", "tf-keras")],
)
def test_tf_keras_has_the_number_of_tensorflow(log: str, package: str) -> None:
    switch = "TF_USE_LEGACY_KERAS=1\nModuleNotFoundError: No module named 'tf_keras'"
    first = commands(f"{log}\n{switch}", "keras-legacy-missing")[0]
    assert first == f"python -m pip install {package}"


def test_only_the_library_that_fails_with_jax_is_upgraded() -> None:
    log = (
        f'{TRACEBACK}\n  File "/venv/lib/python3.11/site-packages/flax/core.py", line 3, in <m>\n'
        "    from jax import linear_util\n"
        "ImportError: cannot import name 'linear_util' from 'jax' "
        "(/venv/lib/python3.11/site-packages/jax/__init__.py)"
    )
    printed = commands(log, "jax-plugin-mismatch")
    assert printed[-1] == "python -m pip install --upgrade flax"


def test_the_drivers_library_is_linked_where_it_is() -> None:
    log = "/usr/bin/ld: cannot find -lcuda: No such file or directory"
    assert not any("x86_64" in command for command in commands(log, "library-path-conflict"))


def k80(python: str) -> Finding:
    snapshot = machine(f"""
        start = "healthy"
        only = ["torch"]
        probes_left_out = "--no-probe"
        [target.interpreter]
        version = "{python}"
        [driver]
        version = "470.256.02"
        [driver.gpus.0]
        name = "Tesla K80"
        compute_capability = "3.7"
    """)
    return next(f for f in diagnose(snapshot).findings if f.cause == "driver-too-old-for-cuda")


def test_a_release_that_may_not_work_has_no_command_if_another_python_has_a_better_one() -> None:
    first = k80("3.11.7").remedies[0]
    assert first.action is None
    assert "No such reports are known of torch 1.12.1" in first.text
    assert "possible with Python 3.10" in first.text
    assert "torch==1.12.1" in str(k80("3.10.9").remedies[0].action)

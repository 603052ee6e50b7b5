"""Builds of frameworks, Python packages, and code that crashes or hangs."""

from __future__ import annotations

from pathlib import Path

from tests.elfwriter import Library, write
from tests.lab.bench import Bench, site_of
from tests.lab.driver import StubDriver, StubGpu
from tests.lab.machines import GPU_MACHINE, complete_cuda, install, remove, run_first
from tests.lab.programs import JAX_DEVICES, LIST_GPUS, TORCH_CUDA
from tests.lab.scenario import Does, Root, Scenario, warning
from tests.lab.stage import Stage

ON_CPU = {"tensorflow": "cpu", "keras": "cpu"}
BROKEN = {"tensorflow": "broken", "keras": "broken"}

SLEEPS = "import time\ntime.sleep(600)\n"
WRITES_A_GIGABYTE = "import os\nfor _ in range(16384): os.write(2, b'word\\n' * 13107)\n"

CPU_WITHOUT_AVX = """\
processor\t: 0
vendor_id\t: GenuineIntel
model name\t: Intel(R) Pentium(R) CPU G620 @ 2.60GHz
flags\t\t: fpu vme sse sse2 ssse3 sse4_1 sse4_2 popcnt lm
"""


def _set_that_this_processor_lacks() -> str:
    """So that it traps here for certain, whatever /proc/cpuinfo says on a stage."""
    listed = Path("/proc/cpuinfo").read_text().split()
    known = ("avx512_fp16", "avx_vnni", "avx512_bf16", "avx512f", "avx2", "amx_fp16")
    return next((name for name in known if name not in listed), known[0])


CPU_THAT_LISTS_TOO_MUCH = f"""\
processor\t: 0
vendor_id\t: GenuineIntel
model name\t: Intel(R) Xeon(R) Processor
flags\t\t: fpu vme sse sse2 ssse3 sse4_1 sse4_2 avx {_set_that_this_processor_lacks()} lm
"""

LITTLE_MEMORY = """\
MemTotal:        2000000 kB
MemFree:          150000 kB
MemAvailable:     200000 kB
SwapTotal:             0 kB
"""

ILLEGAL_INSTRUCTION = bytes.fromhex("0f0b")
TRAPS_ANYWAY = "the lab's library traps whatever the variables say; oneDNN would obey them"


def _illegal_instruction(bench: Bench) -> None:
    """Native code of TensorFlow that uses an instruction which no processor has."""
    path = "tensorflow/python/platform/_pywrap_cpu_feature_guard.so"
    name = "PyInit__pywrap_cpu_feature_guard"
    bench.replace(path, write(Library(defines=(name,), code=ILLEGAL_INSTRUCTION)))


def _glibc_of_tomorrow(bench: Bench) -> None:
    path = "tensorflow/python/platform/_pywrap_cpu_feature_guard.so"
    library = Library(needed=("libc.so.6",), version_needs={"libc.so.6": ("GLIBC_2.99",)})
    bench.replace(path, write(library))


def _tensorflow_cpu_beside(bench: Bench) -> None:
    """As pip leaves it when both are installed, tensorflow last: the same files, twice owned."""
    files = {
        path: (bench.site / path).read_bytes()
        for path in bench.distribution_files("tensorflow")
        if path.startswith("tensorflow/python/platform/") and path.endswith(".py")
    }
    bench.add_distribution("tensorflow-cpu", "2.21.0", files)


def _half_uninstalled(bench: Bench) -> None:
    """What is left of tensorflow after `pip uninstall tensorflow-cpu`, which had the same files."""
    bench.remove("tensorflow", keep_metadata=True)


def _packages_of_another_python(bench: Bench) -> None:
    bench.prepend("PYTHONPATH", site_of("jax"))


def _keras_on_the_path(bench: Bench) -> None:
    place = bench.folder / "old-packages"
    bench.unpack("keras-2", place)
    bench.prepend("PYTHONPATH", place)


SCENARIOS = (
    Scenario(
        "cpu-build-of-pytorch-on-a-gpu-machine",
        "torch",
        Does(TORCH_CUDA, "CUDA: False None"),
        driver=StubDriver(),
        stage=GPU_MACHINE,
        environ={"KERAS_BACKEND": "torch"},
        roots=(Root("cpu-only-build", "torch"),),
        verdicts={"torch": "cpu", "keras": "cpu"},
        verdict="cpu",
    ),
    Scenario(
        "cpu-build-of-jax-on-a-gpu-machine",
        "jax",
        Does(JAX_DEVICES, r"devices: \['cpu'\]"),
        driver=StubDriver(),
        stage=GPU_MACHINE,
        environ={"KERAS_BACKEND": "jax"},
        roots=(Root("cpu-only-build", "jax"),),
        verdicts={"jax": "cpu", "keras": "cpu"},
        verdict="cpu",
    ),
    Scenario(
        "gpu-too-old",
        "tensorflow-2.21",
        Does(LIST_GPUS, r"Cuda compute capability 3\.0[\s\S]*GPUs: 0"),
        driver=StubDriver(gpus=(StubGpu("GeForce GTX 680", compute_capability="3.0"),)),
        stage=GPU_MACHINE,
        lay_out=(complete_cuda,),
        roots=(Root("compute-capability-too-old", "tensorflow"),),
        verdicts=ON_CPU,
        verdict="cpu",
    ),
    Scenario(
        "gpu-newer-than-the-build",
        "tensorflow-2.21",
        Does(LIST_GPUS, r"jit-compiled from PTX[\s\S]*GPUs: 1"),
        driver=StubDriver(gpus=(StubGpu("NVIDIA RTX 5090", compute_capability="12.0"),)),
        stage=GPU_MACHINE,
        lay_out=(complete_cuda,),
        probe=False,
        roots=(warning("kernels-compiled-from-ptx", "tensorflow"),),
        verdicts={"tensorflow": "unknown", "keras": "unknown"},
        verdict="unknown",
    ),
    Scenario(
        "processor-without-avx",
        "tensorflow-2.21",
        Does("import tensorflow", exit_code=-4),
        stage=Stage(pci=(), files={"/proc/cpuinfo": CPU_WITHOUT_AVX}),
        lay_out=(_illegal_instruction,),
        roots=(Root("avx-missing-sigill", "tensorflow"),),
        verdicts=BROKEN,
        verdict="broken",
    ),
    Scenario(
        "processor-that-lists-what-traps",
        "tensorflow-2.21",
        Does("import tensorflow", exit_code=-4),
        stage=Stage(pci=(), files={"/proc/cpuinfo": CPU_THAT_LISTS_TOO_MUCH}),
        lay_out=(_illegal_instruction,),
        unmendable=TRAPS_ANYWAY,
        roots=(Root("listed-instruction-traps", "tensorflow"),),
        verdicts=BROKEN,
        verdict="broken",
    ),
    Scenario(
        "illegal-instruction-that-nothing-explains",
        "tensorflow-2.21",
        Does("import tensorflow", exit_code=-4),
        stage=Stage(pci=()),
        lay_out=(_illegal_instruction,),
        unmendable=TRAPS_ANYWAY,
        roots=(Root("framework-crashes", "tensorflow"),),
        verdicts=BROKEN,
        verdict="broken",
        like=("garbage-in-tf-xla-flags",),
    ),
    Scenario(
        "built-for-a-newer-c-library",
        "tensorflow-2.21",
        Does("import tensorflow", "version `GLIBC_2.99' not found", exit_code=1),
        lay_out=(_glibc_of_tomorrow,),
        roots=(Root("glibc-too-old", "tensorflow"),),
        verdicts=BROKEN,
        verdict="broken",
    ),
    Scenario(
        "protobuf-4",
        "tensorflow-2.21",
        Does("import tensorflow", "cannot import name 'runtime_version'", exit_code=1),
        lay_out=(install("protobuf-4"),),
        roots=(Root("protobuf-conflict", "tensorflow"),),
        verdicts=BROKEN,
        verdict="broken",
    ),
    Scenario(
        "protobuf-5",
        "tensorflow-2.21",
        Does("import tensorflow", "mismatched Protobuf Gencode/Runtime", exit_code=1),
        lay_out=(install("protobuf-5"),),
        roots=(Root("protobuf-conflict", "tensorflow"),),
        verdicts=BROKEN,
        verdict="broken",
        like=("protobuf-4",),
    ),
    Scenario(
        "jax-and-jaxlib-of-different-releases",
        "jax",
        Does("import jax", "jaxlib", exit_code=1),
        environ={"KERAS_BACKEND": "jax"},
        lay_out=(install("jax-old"),),
        roots=(Root("jax-plugin-mismatch", "jax"),),
        verdicts={"jax": "broken", "keras": "broken"},
        verdict="broken",
    ),
    Scenario(
        "jax-plugin-of-another-release",
        "jax",
        Does(JAX_DEVICES, r"not compatible[\s\S]*devices: \['cpu'\]"),
        driver=StubDriver(),
        stage=GPU_MACHINE,
        environ={"KERAS_BACKEND": "jax"},
        lay_out=(install("jax-cuda12-plugin"),),
        roots=(Root("jax-plugin-mismatch", "jax"),),
        verdicts={"jax": "cpu", "keras": "cpu"},
        verdict="cpu",
    ),
    Scenario(
        "tensorflow-cpu-beside-tensorflow",
        "tensorflow-2.21",
        Does(
            "import importlib.metadata as metadata\n"
            "print(sorted(metadata.packages_distributions()['tensorflow']))",
            r"\['tensorflow', 'tensorflow-cpu'\]",
        ),
        driver=StubDriver(),
        stage=GPU_MACHINE,
        lay_out=(complete_cuda, _tensorflow_cpu_beside),
        probe=False,
        roots=(warning("two-packages-one-module", "tensorflow"),),
        verdicts={"tensorflow": "unknown", "keras": "unknown"},
        verdict="unknown",
    ),
    Scenario(
        "required-package-missing",
        "tensorflow-2.21",
        Does("import tensorflow", "No module named 'wrapt'", exit_code=1),
        lay_out=(remove("wrapt"),),
        roots=(Root("framework-import-fails", "tensorflow"),),
        verdicts=BROKEN,
        verdict="broken",
    ),
    Scenario(
        "garbage-in-tf-xla-flags",
        "tensorflow-2.21",
        Does("import tensorflow as tf\ntf.ones(1)", "TF_XLA_FLAGS", exit_code=1),
        environ={"TF_XLA_FLAGS": "--no_such_flag"},
        roots=(Root("framework-crashes", "tensorflow"),),
        log_shows=("environment-variable-ineffective",),
        verdicts=BROKEN,
        verdict="broken",
    ),
    Scenario(
        "import-hangs",
        "tensorflow-2.21",
        Does("import tensorflow", hangs_for=4),
        lay_out=(run_first("tensorflow", SLEEPS),),
        timeout=4,
        roots=(Root("framework-hangs", "tensorflow"),),
        verdicts=BROKEN,
        verdict="broken",
    ),
    Scenario(
        "killed-for-memory",
        "tensorflow-2.21",
        Does("import tensorflow", exit_code=-9),
        stage=Stage(pci=(), files={"/proc/meminfo": LITTLE_MEMORY}),
        lay_out=(run_first("tensorflow", "import os\nos.kill(os.getpid(), 9)\n"),),
        roots=(Root("host-oom", "tensorflow"),),
        verdicts=BROKEN,
        verdict="broken",
    ),
    Scenario(
        "gigabyte-of-words",
        "tensorflow-2.21",
        Does(LIST_GPUS, "GPUs: 0"),
        lay_out=(run_first("tensorflow", WRITES_A_GIGABYTE),),
        roots=(),
        verdicts=ON_CPU,
        verdict="no-gpu",
        exit_code=0,
        like=("tensorflow-without-gpu",),
    ),
    Scenario(
        "older-keras-on-pythonpath",
        "tensorflow-2.21",
        Does("import keras", "old-packages/keras[\\s\\S]*AttributeError", exit_code=1),
        lay_out=(_keras_on_the_path,),
        roots=(Root("keras-tf-version-mismatch", "keras"), warning("package-shadowed", "keras")),
        verdicts={"tensorflow": "cpu", "keras": "broken"},
        verdict="broken",
    ),
    Scenario(
        "one-of-two-tensorflows-uninstalled",
        "tensorflow-2.21",
        Does("import tensorflow as tf\ntf.ones(1)", "No module named|no attribute", exit_code=1),
        lay_out=(_half_uninstalled,),
        roots=(Root("framework-import-fails", "tensorflow"),),
        verdicts=BROKEN,
        verdict="broken",
        like=("required-package-missing",),
    ),
    Scenario(
        "packages-of-another-python",
        "tensorflow-2.21",
        Does("import numpy", "from .*site-packages|C-extensions failed", exit_code=1),
        lay_out=(_packages_of_another_python,),
        roots=(
            Root("wheel-does-not-fit", "machine"),
            warning("requirement-conflict", "tensorflow"),
        ),
        verdicts={**BROKEN, "jax": "broken"},
        verdict="broken",
    ),
    Scenario(
        "numpy-of-another-abi",
        "tensorflow-2.21",
        Does("import tensorflow", "compiled using NumPy 1.x cannot be run in", exit_code=1),
        lay_out=(install("ml-dtypes-for-numpy-1"),),
        roots=(Root("numpy-abi", "tensorflow"),),
        verdicts=BROKEN,
        verdict="broken",
    ),
    Scenario(
        "numpy-too-old",
        "tensorflow-2.21",
        Does("import tensorflow", "'numpy' has no attribute 'exceptions'", exit_code=1),
        lay_out=(install("numpy-1"),),
        roots=(Root("numpy-abi", "tensorflow"), warning("requirement-conflict", "machine")),
        verdicts=BROKEN,
        verdict="broken",
        like=("numpy-of-another-abi", "packages-of-another-python"),
    ),
    Scenario(
        # TensorFlow asks for an older one: pip would object, Python does not.
        "requirement-not-met",
        "tensorflow-2.21",
        Does(
            LIST_GPUS + "import importlib.metadata as m\nprint('has', m.version('h5py'))",
            r"GPUs: 0[\s\S]*has 3\.15\.1",
        ),
        lay_out=(install("h5py-new"),),
        roots=(warning("requirement-conflict", "tensorflow"),),
        verdicts=ON_CPU,
        verdict="no-gpu",
    ),
)

"""Steps that several answers to people's words give."""

from __future__ import annotations

from whygpu.model.finding import Remedy
from whygpu.model.remedy import a_name, command_line, shell_script

CHECK = Remedy(
    "Check the machine, in the environment of the program.",
    command_line("whygpu check"),
)
PLAN = Remedy(
    "See which releases fit this machine's driver and GPU, and the command that installs them.",
    command_line("whygpu plan FRAMEWORK"),
)
PROFILE = Remedy(
    "Let whygpu measure what the training steps wait for.",
    command_line("whygpu run --profile -- python PROGRAM.py"),
)
WHICH_DEVICE = Remedy(
    "Let whygpu show on which device the work is done.",
    command_line("whygpu run --trace -- python PROGRAM.py"),
)
WHOLE_OUTPUT = Remedy(
    "Explain the whole output, including standard error.",
    shell_script("python PROGRAM.py 2>&1 | whygpu explain"),
)
WHO_HOLDS_MEMORY = Remedy("See which processes hold it.", command_line("whygpu memory"))
LIMIT_MEMORY = Remedy(
    "Let it take what it needs at the time (growth), or set a limit: 0.5 or 4GiB.",
    command_line("whygpu run --memory growth -- python PROGRAM.py"),
)
ON_ANOTHER_GPU = Remedy(
    "Run it on another GPU than the first, by its number in nvidia-smi.",
    command_line("whygpu run --device gpu:1 -- python PROGRAM.py"),
)
ON_SEVERAL_GPUS = Remedy(
    "One program uses one GPU unless it is written for several: PyTorch with torchrun and "
    "DistributedDataParallel, Keras on TensorFlow in the scope of a MirroredStrategy, JAX with "
    "arrays that have a sharding."
)


def tutorial(name: str) -> Remedy:
    return Remedy(f"Read https://whygpu.readthedocs.io/en/latest/tutorials/{name}/")


def page(code: str) -> Remedy:
    """The page of a cause that is what somebody speaks of."""
    return Remedy(f"Read about it: {code}.", command_line("whygpu rule", a_name(code)))

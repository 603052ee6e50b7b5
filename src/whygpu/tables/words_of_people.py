"""The words in which people describe a symptom or ask a question, and advice for several rows."""

from __future__ import annotations

import re
from typing import NamedTuple

from whygpu.model.finding import Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.remedy import a_name, command_line, shell_script


class Complaint(NamedTuple):
    """One symptom or question."""

    words: tuple[re.Pattern[str], ...]
    """A sentence that has all of them, in whatever order, is about this."""
    says: str
    """The rest of a sentence that begins with "somebody says that", or "somebody asks"."""
    steps: tuple[Remedy, ...] = ()
    candidates: tuple[str, ...] = ()
    """The usual reasons, most common first."""
    ask: str | None = None
    """The question whose answer would decide."""

    @property
    def is_question(self) -> bool:
        return self.says.startswith(("how ", "whether ", "about ", "which ", "why "))

    @property
    def asks_for_use(self) -> bool:
        """Whether a log answers it that shows the GPU at work."""
        return "whether" in self.says


def any_case(pattern: str) -> re.Pattern[str]:
    return late(pattern, re.IGNORECASE)


def one_of(*words: str) -> re.Pattern[str]:
    """Each is a word, or the beginning of one if it ends with a hyphen; some are patterns."""
    ends = (f"{word[:-1]}\\w{{0,12}}" if word.endswith("-") else word for word in words)
    return any_case(rf"(?<![\w])(?:{'|'.join(ends)})(?![\w])")


FRAMEWORK = one_of("tensorflow", "tf", "keras", "py ?torch", "torch", "jax", "tensorflow-gpu")
GPU = one_of(
    *("GPUs?", "(?<!and-)CUDA", "graphics? cards?", "RTX", "GTX", "Tesla", "Quadro", "GeForce"),
    *("Radeon", r"RX ?\d{3,4}\w{0,4}", r"Arc [AB]\d{3}"),
)
CPU = one_of("CPUs?")
MEMORY = one_of("memory", "VRAM")
ISNT = r"(?:\w{2,6}n['’]t|(?:do|does|did|is|are|was|were|ca|wo|could|would|should|has|have)nt)"
"""People leave out the apostrophe, but "want" is no denial."""
ZERO = r"(?<![\d.:#])(?<!GPU )(?<!device )(?<!card )(?<!cuda )0(?![-.:])"
"""Neither the number of a GPU nor a part of a version."""
NOT = rf"(?:not|{ISNT}|no|never|cannot|unable|fail\w{{0,3}}|{ZERO}|zero)"
USE = ("us(?:e|es|ed|ing)", "utili[sz](?:e|es|ed|ing)", "runs?", "running", "train-", "work-")
HOW = any_case(
    r"(?<!\w)(?:how(?! come)|way to|possible|can i|could i|(?:want|need|like) to|is there"
    r"|can (?:tf\.)?(?:keras|tensorflow|pytorch|torch|jax))(?!\w)"
    # As typed into a search box. What programs write is longer, or has such marks.
    r"|^\W{0,3}(?:(?:force|make|use|run|limit|disable|turn off|hide|select|choose|set up|install"
    r"|free|clear|enable|train)(?!\w)[^\n:()=`'\"]{4,70}$)"
)
_CARDS = (
    r"(?:(?:my|the|our|of|different) ){0,2}(?:[\w-]{1,12} ){0,2}?(?:GPUs?|(?:graphics? )?cards?)"
)
_BETWEEN = (
    r"(?:(?:us(?:e|es|ing|age)|of|the|my|an?|any|all|both|its?|from|running|on|tf|tensorflow|keras"
    r"|pytorch|torch|jax|nvidia|second|first|other|broken|integrated) ){0,6}"
)
_DETAILS = (
    r"(?! ?(?:memory|growth|warnings?|errors?|messages?|logs?|logging|bench\w{1,6}|auto\w{1,6}))"
)


def without(thing: str) -> re.Pattern[str]:
    """That a program leaves out this thing: "train on the GPU without errors" is no such wish."""
    return any_case(
        rf"(?<!\w)(?:disabl(?:e|es|ed|ing)|hid(?:e|ing)|without|(?:turn|switch)(?:ing)? off"
        rf"|avoid(?:ing)?|ignor(?:e|ing)|(?:prevent|stop|keep)(?:ing)?(?: \w{{1,12}}){{0,2}} from) "
        rf"{_BETWEEN}{thing}(?!\w){_DETAILS}"
        rf"|(?:turn|switch)(?:ing)? {_BETWEEN}{thing} off(?!\w)"
        rf"|(?<!\w){thing}(?: \w{{1,12}})? (?:be )?(?:disabled|hidden)(?!\w)"
    )


MANY_GPUS = (
    rf"(?:both|two|2|three|3|four|4|eight|8|multi(?:ple)?|several|many|all|dual)[ -]{_CARDS}",
    r"(?:GPUs?|RTX|GTX|[TVPALH]\d{1,3}0?|[234]0[5-9]0)(?: \w{1,6})? ?[x×] ?[2-8]",
    r"[2-8] ?[x×] ?(?:\w{1,8} )?(?:GPUs?|RTX|GTX|[TVPALH]\d{1,3}0?|[234]0[5-9]0)",
    r"[2-8] (?:RTX |GTX )?(?:[TVPALH]\d{1,3}0?|[2-5]0[5-9]0)s",
)
ANOTHER_GPU = (
    *(rf"(?:second|2nd|third|3rd|other|another) {_CARDS}", r"GPU ?[:#]? ?[1-7]", "only one"),
    r"only (?:the )?GPU ?[:#]? ?0",
)

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

"""What the variables and the command of a service, a pod or a job say about a GPU."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

from whygpu.model.deployment import Reason, VariableSetting
from whygpu.model.requirement_file import FileLine

DEFAULT_RUNTIME = "where NVIDIA's runtime is the default, the variable gives it GPUs"
_ONLY_A_VARIABLE = "only a variable says so"
_LAYERS_ON_CPUS = "llama.cpp works without one as well"
_OFTEN_ON_CPUS = "its processes may work on the CPU as well"

_DEVICE_NAME = re.compile(r"(?:[A-Za-z]\w{0,40}_)?DEVICE(?:_TYPE)?", re.IGNORECASE)
_CHOICE = re.compile(r"\$|#.{0,200}\bcpu\b", re.IGNORECASE)
_DEVICE = re.compile(r"(?:cuda|gpu)(?::\d{1,2})?", re.IGNORECASE)
_SWITCH_NAME = re.compile(
    r"(?:\w{1,40}_)?(?:USE|ENABLE|REQUIRE)_(?:GPU|CUDA)|(?:\w{1,40}_)?(?:GPU|CUDA)_ENABLED",
    re.IGNORECASE,
)
_COUNT_NAME = re.compile(r"(?:N|NUM_?|N_)GPUS?(?:_PER_NODE)?|GPUS_PER_NODE", re.IGNORECASE)
_ON = frozenset({"1", "true", "yes", "on"})
_NUMBERS = re.compile(r"\d{1,2}(?:,\d{1,2}){0,15}")
_NO_GPUS = frozenset({"", "none", "void"})

_END = r"(?=['\"\s,;)\]]|$)"
_OPTIONS = (
    # --device cuda, --whisper-device=cuda:0
    r"--?(?:[a-z]{1,20}[-_]){0,2}(?:device|accelerator)[= ]['\"]?(?:cuda|gpu)(?::\d{1,2})?" + _END,
    r"--gpus?[= ]['\"]?(?:all|auto|\d[\d,]{0,30})" + _END,
    r"--(?:n|num)[-_]?gpus?(?:[-_]per[-_]node)?[= ][1-9]",
    r"--(?:use|enable)[-_](?:gpu|cuda)(?:[= ](?:true|1|yes))?" + _END,
    r"--multi[-_]gpu" + _END,
    r"--nproc[-_]per[-_]node[= ]gpu" + _END,
    r"--(?:dist[-_])?backend[= ]nccl" + _END,
    # Hydra and Lightning: device=cuda, trainer.accelerator=gpu
    r"(?:trainer\.)?accelerator=(?:gpu|cuda)" + _END,
    r"trainer\.gpus=[1-9]",
    r"device=['\"]?cuda(?::\d{1,2})?" + _END,
)
_SAYS = re.compile(rf"(?:^|[\s'\"])(?P<what>{'|'.join(_OPTIONS)})", re.IGNORECASE)
_NOT = re.compile(r"--gpus[= ]['\"]?0" + _END)
"""Lightning and others mean the CPU by it."""
_NEEDS = re.compile(
    r"(?:^|[\s/;&|('\"])(?P<what>vllm serve|text-generation-launcher|trtllm-serve|lmdeploy serve"
    r"|deepspeed(?: --?[\w-]{1,30}(?:[= ][\w.:,/$@{}]{1,60})?){0,6} [\w./$@{}-]{1,80}\.py"
    r"|-m (?:vllm\.entrypoints|sglang\.launch_server)[\w.]{0,60})(?=[\s'\"]|$)"
)
"""Programs that end without a GPU."""
_CODE = re.compile(
    r"(?P<what>assert torch\.cuda\.is_available\(\)|\.cuda\(\)|\.to\(['\"]cuda['\"]\))"
)
_HAS_A_CHOICE = re.compile(r"is_available\(\) else|if (?:not )?torch\.cuda\.is_available")
_SMI = re.compile(r"(?:^|[\s/;&|('\"])(?P<what>nvidia-smi)(?![^\n;&|]{0,100}(?:\|\||2>/dev/null))")
_CPU_OPTION = re.compile(
    r"(?:^|\s)--?(?:[a-z]{1,20}[-_]){0,2}(?:(?:use[-_])?cpu(?:[-_]only)?|no[-_]?(?:gpu|cuda)"
    r"|(?:device|accelerator|platform|backend)[= ]['\"]?cpu)(?=['\"\s]|$)"
)
_LAYERS = re.compile(r"(?:^|\s)(?P<what>(?:-ngl|--n[-_]gpu[-_]layers)[= ][1-9]\d{0,3})")
_SUBMITS = re.compile(
    r"submit|\b(?:sbatch|qsub|kubectl|docker (?:run|compose)|sky|modal)\b", re.IGNORECASE
)
"""It starts another job or container, and names the GPUs of that one."""
_SEVERAL = re.compile(r"--nproc[-_]per[-_]node[= ](?P<what>[2-9]|1\d)(?=\s|$)")
_LONGEST = 20_000
_OFFERS = re.compile(
    r"uncomment|optional|to (?:enable|use)|if you (?:have|want)|if available|requires?\b|support",
    re.IGNORECASE,
)
_MOST_AROUND = 12
"""Lines above a line that is commented out which may speak of it."""


def of_variables(settings: Sequence[VariableSetting]) -> Iterator[Reason]:
    """DEVICE=cuda means a GPU; variables that only choose among GPUs may be there by habit."""
    for setting in settings:
        value = (setting.known or "").strip()
        if _DEVICE_NAME.fullmatch(setting.name) and _DEVICE.fullmatch(value):
            # DEVICE=${DEVICE:-cuda}, or DEVICE=cuda  # or cpu: somebody may set another one.
            is_choice = _CHOICE.search(setting.place.text) is not None
            doubt = _ONLY_A_VARIABLE if is_choice else ""
            yield Reason(f"it sets {setting.name} to {value}", setting.place, doubt)
        elif _is_count_or_switch(setting.name, value):
            yield Reason(f"it sets {setting.name} to {value}", setting.place, _ONLY_A_VARIABLE)
        elif setting.name == "CUDA_VISIBLE_DEVICES" and _NUMBERS.fullmatch(value):
            yield Reason("it sets CUDA_VISIBLE_DEVICES", setting.place, _ONLY_A_VARIABLE)
        elif setting.name == "NVIDIA_VISIBLE_DEVICES" and value not in _NO_GPUS:
            yield Reason("it sets NVIDIA_VISIBLE_DEVICES", setting.place, DEFAULT_RUNTIME)
        elif setting.name == "NVIDIA_DRIVER_CAPABILITIES" and value:
            yield Reason("it sets NVIDIA_DRIVER_CAPABILITIES", setting.place, _ONLY_A_VARIABLE)


def _is_count_or_switch(name: str, value: str) -> bool:
    """USE_GPU=true, NUM_GPUS=4"""
    if _SWITCH_NAME.fullmatch(name):
        return value.lower() in _ON
    return bool(_COUNT_NAME.fullmatch(name)) and re.fullmatch(r"[1-9]\d?", value) is not None


def of_command(words: Sequence[str], place: FileLine) -> Iterator[Reason]:
    """Options and programs that only make sense with a GPU."""
    text = " ".join(words)[:_LONGEST]
    if asks_for_cpu(words) or _SUBMITS.search(text) or _HAS_A_CHOICE.search(text):
        return
    for pattern in (_SAYS, _NEEDS, _SMI, _CODE):
        found = pattern.search(text)
        if found is not None and not _NOT.match(found["what"]):
            yield Reason(f"its command has {found['what'].strip()}", place)
    layers, several = _LAYERS.search(text), _SEVERAL.search(text)
    if layers is not None:
        yield Reason(f"its command has {layers['what']}", place, _LAYERS_ON_CPUS)
    if several is not None:
        yield Reason(f"its command starts {several['what']} processes", place, _OFTEN_ON_CPUS)


def by_the_default_runtime(
    settings: Sequence[VariableSetting], reasons: Iterable[Reason]
) -> Iterator[Reason]:
    """The reasons; if NVIDIA's runtime is the default of the machine, a variable gives GPUs."""
    named = any(
        setting.name == "NVIDIA_VISIBLE_DEVICES" and setting.value not in _NO_GPUS
        for setting in settings
    )
    doubt = DEFAULT_RUNTIME if named else ""
    yield from (reason._replace(doubt=reason.doubt or doubt) for reason in reasons)


def is_offer(text: str, commented: FileLine | None) -> bool:
    """Whether the comments around a line that is commented out call it an option."""
    if commented is None:
        return False
    lines = text.split("\n")[: commented.line]
    around = itertools.takewhile(lambda line: line.lstrip().startswith("#"), reversed(lines))
    return _OFFERS.search("\n".join(itertools.islice(around, _MOST_AROUND))) is not None


def asks_for_cpu(words: Sequence[str]) -> bool:
    return _CPU_OPTION.search(" ".join(words)[:_LONGEST]) is not None

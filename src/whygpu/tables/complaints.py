"""Symptoms and questions in a person's own words, and what to do about each.

Some people paste no output at all: they describe what they see, or ask how something is done. No
cause can be found in such a sentence, but what would find it depends on the symptom.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from whygpu.model.finding import Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.remedy import command_line, shell_script
from whygpu.tables.failures_without_reason import WHY_NO_SESSION


def _one_of(*words: str) -> re.Pattern[str]:
    """Each is a word, or the beginning of one if it ends with a hyphen; some are patterns."""
    ends = (f"{word[:-1]}\\w{{0,12}}" if word.endswith("-") else word for word in words)
    return late(rf"(?<![\w])(?:{'|'.join(ends)})(?![\w])", re.IGNORECASE)


_FRAMEWORK = _one_of("tensorflow", "tf", "keras", "py ?torch", "torch", "jax", "tensorflow-gpu")
_GPU = _one_of("GPUs?", "CUDA", "graphics? cards?", "RTX", "GTX", "Tesla", "Quadro", "GeForce")
_CPU = _one_of("CPUs?")
_ISNT = r"(?:\w{2,6}n['’]t|(?:do|does|did|is|are|was|were|ca|wo|could|would|should|has|have)nt)"
"""People leave out the apostrophe, but "want" is no denial."""
_NOT = rf"(?:not|{_ISNT}|no|never|cannot|unable|fail\w{{0,3}}|0|zero)"
_HOW = _one_of(
    *("how", "way to", "possible", "can i", "could i", "(?:want|need|like) to", "is there"),
    r"can (?:tf\.)?(?:keras|tensorflow|pytorch|torch|jax)",
)
_CARDS = (
    r"(?:(?:my|the|our|of|different) ){0,2}(?:[\w-]{1,12} ){0,2}?(?:GPUs?|(?:graphics? )?cards?)"
)
_MANY_GPUS = _one_of(
    rf"(?:both|two|2|three|3|four|4|eight|8|multi(?:ple)?|several|many|all|dual)[ -]{_CARDS}",
    r"(?:GPUs?|RTX|GTX|[TVPALH]\d{1,3}0?|[234]0[5-9]0)(?: \w{1,6})? ?[x×] ?[2-8]",
    r"[2-8] ?[x×] ?(?:\w{1,8} )?(?:GPUs?|RTX|GTX|[TVPALH]\d{1,3}0?|[234]0[5-9]0)",
)
_ANOTHER_GPU = _one_of(
    rf"(?:second|2nd|third|3rd|other|another) {_CARDS}", r"GPU ?[:#]? ?[1-7]", "only one"
)
_LITTLE = late(
    r"(?<!\w)(?:low|lower|poor|bad|idle|idling|idles|drops?)(?!\w)|(?<![\d.])[0-4]?\d(?:\.\d)? ?%",
    re.IGNORECASE,
)

PROFILE = Remedy(
    "Let whygpu measure what the training steps wait for.",
    command_line("whygpu run --profile -- python PROGRAM.py"),
)
_WHICH_DEVICE = Remedy(
    "Let whygpu show on which device the work is done.",
    command_line("whygpu run --trace -- python PROGRAM.py"),
)
CHECK = Remedy(
    "Check the machine, in the environment of the program.",
    command_line("whygpu check"),
)

_WHOLE_OUTPUT = Remedy(
    "Explain the whole output, including standard error.",
    shell_script("python PROGRAM.py 2>&1 | whygpu explain"),
)


def _tutorial(name: str) -> Remedy:
    return Remedy(f"Read https://whygpu.readthedocs.io/en/latest/tutorials/{name}/")


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


_SEE = (
    r"(?:see(?:s|n|ing)?|f(?:i|ou)nd(?:s|ing)?|(?:detect|show|list)\w{0,3}|recogni[sz]\w{1,3}"
    r"|identif\w{1,4}|discover\w{0,3}|visible|available|pick(?:s|ed|ing)? up)"
)
_USE = ("us(?:e|es|ed|ing)", "utili[sz]e?d?", "runs?", "running", "train-", "work-")

SEES_NONE = Complaint(
    (
        _GPU,
        _one_of(
            rf"{_NOT}(?:\W{{1,3}}[\w-]{{1,14}}){{0,3}}?\W{{1,3}}{_SEE}", rf"{_SEE} (?:no|0) GPUs?"
        ),
    ),
    "the framework sees no GPU",
)
"""The reasons and steps are those for a log that says so."""
_LISTS_NONE = late(
    r"(?:list_(?:physical|logical|local)_devices|device_count|get_visible_devices|jax\.devices)"
    r"[^\n<>=!]{0,40}?(?<!\w)(?:empty|nothing|none|zero|0)(?!\w)",
    re.IGNORECASE,
)

_TRIES_TO_SHOW = late(
    r"(?<!\w)(?:try|tried|trying|struggl\w{1,4}|managed?|get|getting)(?!\w)[^.\n]{0,90}"
    r"(?<!\w)(?:detect|see|recogni[sz]e|find|identify)(?!\w)[^.\n]{0,20}(?<!\w)GPUs?(?!\w)",
    re.IGNORECASE,
)
"""What somebody does whose framework does not see the GPU."""

IDLE = Complaint(
    (
        _one_of("GPUs?", "nvidia-smi", r"GPU[ _-]?util\w{0,9}"),
        _one_of(
            "util-", r"GPU[ _-]?util\w{0,9}", "usage", "use", "rate", "load", "is", "are", "at"
        ),
        _LITTLE,
    ),
    "the GPU is hardly used while the program works",
    (_WHICH_DEVICE, PROFILE),
    (
        "input that is read or decoded too slowly",
        "batches or operations that are too small to fill the GPU",
        "a result that is read from the GPU in every step",
        "work that is done on the CPU",
    ),
    "Does nvidia-smi list the program among the processes of the GPU? If not, it works on the CPU.",
)

_SOME = r"(?:\W{1,3}[\w-]{1,14})"
NOT_USED = Complaint(
    (
        _GPU,
        _one_of(
            # The words are near each other: "the build did not work" is about another thing.
            rf"{_NOT}{_SOME}{{0,3}}?\W{{1,3}}(?:us(?:e|es|ed|ing|age)|utili[sz]\w{{1,4}}|run\w{{0,4}}"
            r"|train\w{0,4}|process\w{0,3})",
            rf"GPUs?{_SOME}{{0,3}}?\W{{1,3}}(?:not|{_ISNT}|never){_SOME}{{0,2}}?\W{{1,3}}"
            r"(?:work\w{0,3}|being|involved|active|engaged)",
            rf"(?:on|us(?:e|es|ed|ing)|only|to|with|by){_SOME}{{0,2}}?\W{{1,3}}CPUs?"
            r"(?! ?(?:and|or|/|,|&) ?(?:the )?GPU)",
            rf"CPUs?{_SOME}{{0,3}}?\W{{1,3}}(?:us(?:e|es|ed|ing|age)|instead|works|working|load)",
            "no process",
        ),
    ),
    "the work is not done on the GPU",
    (CHECK, _WHICH_DEVICE),
    (
        "the framework sees no GPU",
        "the model or its input was not moved to the GPU, which PyTorch leaves to the program",
        "the program was told to use the CPU",
    ),
    "What does the framework print if it is asked for its GPUs?",
)

_IDLE_IN_CHINESE = late(
    r"(?i:GPU) ?的?(?:利用率|使用率|占用率?)[^\n]{0,12}(?:低|(?<!\d)[0-4]?\d ?%)"
)
SAY_MOST = (SEES_NONE, NOT_USED, IDLE)
"""These say what does not work, and others only that something fails."""

_ONLY_KERAS = late(
    r"(?<!\w)keras(?!\w)[^\n]{0,30}(?:not|n['’]?t|cannot|unable)(?!\w)[^\n]{0,60}"
    r"(?:but|while|although|though|and|[,;]) {0,2}tensorflow(?!\w)"
    r"|(?:tf\.\w|(?<!\w)tensorflow(?!\w))[^\n]{0,80}but (?:tf\.)?keras (?:only |always )?"
    r"(?:uses|runs on|works on|sees) (?:only )?the cpu"
    r"|(?<!\w)tensorflow(?!\w)[^\n]{0,60}(?:but|while|although|though|and|yet|[,;])"
    r"(?: with| in| using)? {0,2}(?:tf\.)?keras(?!\w)[^\n]{0,30}"
    r"(?:not|n['’]?t|cannot|unable)(?!\w)",
    re.IGNORECASE,
)
_HELD = _one_of("full", "used", "occupied", "in use", "taken", "held", "stuck", "stays?", "still")
_AND_NOBODY = late(
    r"(?<!\w)(?:no|without)(?: \w{1,10}){0,2} process|(?<!\w)nothing (?:is |was )?running"
    r"|(?<!\w)not (?:freed|released|cleared)|n['’]t (?:free|release|clear|get freed)"
    r"|(?<!\w)after[^\n]{0,30}(?:kill|stop|clos|end|finish|exit|crash|interrupt|ctrl)",
    re.IGNORECASE,
)
_ON_SEVERAL = (
    Remedy(
        "Run it on another GPU than the first, by its number in nvidia-smi.",
        command_line("whygpu run --device gpu:1 -- python PROGRAM.py"),
    ),
    Remedy(
        "One program uses one GPU unless it is written for several: PyTorch with torchrun and "
        "DistributedDataParallel, Keras on TensorFlow in the scope of a MirroredStrategy, JAX with "
        "arrays that have a sharding."
    ),
)
_PLAN = Remedy(
    "See which releases fit this machine's driver and GPU, and the command that installs them.",
    command_line("whygpu plan FRAMEWORK"),
)
_ON_CPU = Remedy(
    "Run it on the CPU; nothing in the program has to change.",
    command_line("whygpu run --device cpu -- python PROGRAM.py"),
)
_HIDE = Remedy(
    "Without whygpu: hide all GPUs before the program starts.",
    shell_script("CUDA_VISIBLE_DEVICES=-1 python PROGRAM.py"),
)
_SLOW = late(
    r"(?<!\w)(?:GPUs?|CUDA|graphics? cards?)(?!\w)[^\n]{0,200}(?<!\w)(?:slow|slowly|speed)(?!\w)"
    r"|(?<!\w)(?:slow|slowly|speed)(?!\w)[^\n]{0,200}(?<!\w)(?:GPUs?|CUDA|graphics? cards?)(?!\w)"
    r"|(?<!\w)(?:so|very|too|extremely|terribly|really|incredibly|super|painfully|ridiculously)"
    r" (?:slow|slowly|long)(?!\w)"
    r"|(?<!\w)(?:takes?|took|taking)(?!\w)(?: [\w~]{1,12}){0,3} "
    r"(?:forever|ages|hours|\d{1,3} ?(?:minutes?|mins?|hours?|h))(?!\w)",
    re.IGNORECASE,
)
"""Which device is meant need not be said: whoever asks here means the work of the GPU."""
_DISABLE = ("disabl-", "hide", "without", "(?:turn|switch)(?:ing)? off", "avoid", "ignore")

FAILS = Complaint(
    (
        _GPU,
        _one_of("exceptions?", "errors?", "crash-", "fails?", "failing", "fail(?:ed|ure)"),
        _one_of("us(?:e|es|ed|ing)", "on", "to", "with", "when", "train-", "runs?", "running"),
    ),
    "a program fails when it uses the GPU",
    (_WHOLE_OUTPUT, CHECK, _tutorial("exceptions")),
    (
        "CUDA libraries or a cuDNN of another release than the framework needs",
        "memory that is used up, or held by another program",
        "a driver that is too old",
        "a GPU that is newer or older than the build",
    ),
    "What is the last line of the traceback, and the first error above it?",
)
POINTS_BELOW = late(
    r"(?<!\w)(?:follow\w{1,4}|these|below)(?: [\w-]{1,12}){0,2} (?:errors|warnings|messages|lines)"
    r"(?!\w)"
    r"|(?<!\w)(?:errors|warnings|messages|lines) (?:below|as follows)(?!\w)",
    re.IGNORECASE,
)
"""The errors that a person speaks of are the lines that follow."""

WHETHER_USED = Complaint(
    (
        late(
            r"(?:^|[,;:] |(?<!\w)(?:so|but|and|or|hi|hello|means?) )"
            r"(?:is|are|am|was|were|does|do|did|will|can|has|have)(?!\w)[^\n?]{0,200}\?",
            re.IGNORECASE,
        ),
        _GPU,
        _one_of(*_USE, "ok", "okay", "fine", "active", "there", "really", "actually"),
    ),
    "whether the GPU is used",
    (CHECK, _WHICH_DEVICE),
    ask="Does `nvidia-smi` list the program among the processes of the GPU while it works?",
)
_ABOUT_THE_GPU = Complaint(
    (
        late(r"\?\W{0,4}$"),
        _one_of("GPUs?", "CUDA", "graphics? cards?", "RTX", "GTX", "devices?", "CPUs?"),
    ),
    "about the GPU",
    WHETHER_USED.steps,
    ask=WHETHER_USED.ask,
)
"""Any other question. It comes last."""

_LIMIT_MEMORY = Remedy(
    "Let it take what it needs at the time (growth), or set a limit: 0.5 or 4GiB.",
    command_line("whygpu run --memory growth -- python PROGRAM.py"),
)
SLOW = Complaint(
    (_SLOW,),
    "the program is slow",
    (_WHICH_DEVICE, PROFILE),
    IDLE.candidates,
    "How long does one step take, and how busy is the GPU then (nvidia-smi)?",
)
HOW_TO_USE = Complaint(
    (_HOW, _GPU, _one_of(*_USE, "enable", "make", "set up", "setup", "force")),
    "how to let a program use the GPU",
    (
        CHECK,
        Remedy(
            "Run it on the GPU, or let it end at once with the reason why it cannot.",
            command_line("whygpu run --require gpu -- python PROGRAM.py"),
        ),
    ),
)
ABOUT_USE = (SEES_NONE, NOT_USED, SLOW, FAILS, HOW_TO_USE)
"""What people say of a GPU that the framework cannot use well."""

_ALL: tuple[Complaint, ...] = (
    Complaint(
        (_ONLY_KERAS, _one_of("GPUs?", "CUDA", r"is_gpu_available(?:\(\))?", "CPU")),
        "Keras does not use the GPU that TensorFlow sees",
        (CHECK, _tutorial("keras-without-gpu")),
        (
            "Keras works on another backend than TensorFlow (KERAS_BACKEND, ~/.keras/keras.json)",
            "the two were run in different environments",
            "the work was fixed to the CPU",
        ),
        "What does `python -c 'import keras; print(keras.backend.backend())'` print?",
    ),
    Complaint(
        (
            _one_of("ignor-", "bypass-", "skip-", "circumvent-", "override", "get(?:ting)? around"),
            late(r"\b(?:un)?certif|requirement|compatib", re.IGNORECASE),
        ),
        "how to use a GPU that does not meet the requirements",
        (
            Remedy(
                "There is no such switch, and nothing asks for a certificate. If the driver, the "
                "libraries or the GPU do not fit, TensorFlow usually works on the CPU without an "
                "error, and PyTorch raises one. See what does not fit.",
                command_line("whygpu check"),
            ),
            Remedy(
                "Let the program end with the reason, instead of working on the CPU.",
                command_line("whygpu run --require gpu -- python PROGRAM.py"),
            ),
            _tutorial("session-on-the-cpu"),
        ),
    ),
    Complaint(
        (
            _one_of(rf"{_NOT}(?:ing)?(?: to)? (?:create|start|open|make)", "creat-"),
            late(r"(?<!\w)(?:tf\.)?session(?!\w)", re.IGNORECASE),
            _one_of(_NOT, "fail-", "error"),
        ),
        "TensorFlow cannot create a session",
        (_WHOLE_OUTPUT, CHECK, _tutorial("session-fails")),
        WHY_NO_SESSION,
        "What is the first error above it in the whole output?",
    ),
    Complaint(
        (_HOW, _one_of("cuDNN"), _one_of(*_DISABLE)),
        "how to run a program without cuDNN",
        (
            Remedy(
                "PyTorch, and the recurrent layers of Keras, work without it on the same GPU. "
                "TensorFlow's convolutions have no such switch.",
                command_line("whygpu run --cudnn off -- python PROGRAM.py"),
            ),
            Remedy(
                "Or run everything on the CPU.",
                command_line("whygpu run --device cpu -- python PROGRAM.py"),
            ),
            _tutorial("without-cudnn"),
        ),
    ),
    Complaint(
        (
            late(r"nvidia-smi|driver", re.IGNORECASE),
            late(
                r"(?<!\w)nvcc|version\.cuda|toolkit|(?<!\w)cuda version[^\n]{0,60}cuda",
                re.IGNORECASE,
            ),
            _one_of("differ-", "mismatch-", "not the same", "but", "while", "vs", "whereas"),
            late(r"version|release|(?<![\d.])(?:8|9|1[0-3])\.\d(?![\d.])", re.IGNORECASE),
        ),
        "why nvidia-smi and other programs show different CUDA releases",
        (
            Remedy(
                "This is usual, and no fault by itself: nvidia-smi shows the newest CUDA that the "
                "driver can run, nvcc the toolkit that is installed, and a framework the CUDA that "
                "it was built with. See whether they fit together.",
                command_line("whygpu check"),
            ),
        ),
    ),
    Complaint(
        (
            _one_of("which", "what", "matching", "right", "correct", "compatib-"),
            _one_of("version", "versions", "releases?", "CUDA", "cuDNN", "driver"),
            _one_of("CUDA", "cuDNN", "drivers?", "GPUs?", "RTX", "GTX", "tensorflow-gpu"),
            _one_of(
                *("for", "needs?", "compatib-", "support-", "install-", "requires?", "matching"),
                *("match", "works? with", "should", "fits?"),
            ),
            _FRAMEWORK,
        ),
        "which releases of a framework, of CUDA and of the driver fit together",
        (_PLAN,),
    ),
    Complaint(
        (_HOW, _one_of("install-", "set ?up", "setting up"), _FRAMEWORK, _GPU),
        "how to install a framework for the GPU",
        (_PLAN, CHECK),
    ),
    Complaint(
        (
            late(r"(?<!\w)(?:do|must|should|need)(?!\w)[^\n]{0,40}install", re.IGNORECASE),
            _one_of("CUDA", "cuDNN", "toolkit"),
            late(r"separate|manual|myself|too|also|already|\?", re.IGNORECASE),
        ),
        "about what must be installed beside a framework",
        (
            Remedy(
                "The driver always. CUDA and cuDNN come with PyTorch, and with TensorFlow and JAX "
                "if they are installed with an extra (tensorflow[and-cuda], jax[cuda13]). See what "
                "this machine has, and what is missing.",
                command_line("whygpu check"),
            ),
            _PLAN,
        ),
    ),
    Complaint(
        (
            late(
                r"(?<!\w)(?:how (?:large|big|much|many)|what|which|maxim\w{1,3}|max|largest|biggest"
                r"|highest|optimal|will)(?!\w)",
                re.IGNORECASE,
            ),
            late(
                r"batch(?:[ _-]?size)?(?!\w)|(?<!\w)fit(?!\w)|(?:memory|VRAM)[^\n]{0,30}need", re.I
            ),
            _one_of("GPUs?", "memory", "VRAM", "GB", r"\d{1,3} ?GB", "RAM"),
        ),
        "which batch fits into the GPU's memory",
        (
            Remedy(
                "Try batches in turn, and find the largest that fits.",
                command_line("whygpu memory find PROGRAM.py:build_model"),
            ),
            Remedy(
                "Or compute the memory that a model needs, without a GPU.",
                command_line("whygpu memory estimate PROGRAM.py:build_model"),
            ),
        ),
    ),
    Complaint(
        (
            _HOW,
            _one_of("memory", "VRAM"),
            _one_of("free", "freeing", "release", "releasing", "clear-", "empty", "reset"),
        ),
        "how to free GPU memory",
        (
            Remedy("See which processes hold it.", command_line("whygpu memory")),
            Remedy(
                "A process gives its memory back when it ends; in a notebook, restart the kernel. "
                "torch.cuda.empty_cache() only gives back what no tensor uses, and TensorFlow and "
                "JAX give nothing back before they end."
            ),
        ),
    ),
    Complaint(
        (
            _one_of("memory", "VRAM"),
            _one_of("GPUs?", "VRAM", "nvidia-smi", "CUDA"),
            _HELD,
            _AND_NOBODY,
        ),
        "GPU memory stays in use although no program is seen that uses it",
        (
            Remedy("See which processes hold it.", command_line("whygpu memory")),
            Remedy(
                "List every process that has the GPU open, also of other users.",
                shell_script("sudo fuser -v /dev/nvidia*"),
            ),
        ),
        (
            "a process that did not end: a notebook's kernel, or a worker of a data loader",
            "a process of another user or in another container, which nvidia-smi does not list",
            "the display",
        ),
        "What does `sudo fuser -v /dev/nvidia*` list?",
    ),
    Complaint(
        (_GPU, _CPU, _one_of("slower", "longer"), _one_of("than")),
        "the work takes longer on the GPU than on the CPU",
        (PROFILE,),
        (
            "batches or operations that are too small to fill the GPU",
            "data that is copied to the GPU and back in every step",
            "compilation in the first steps, if only these were timed",
        ),
        "Is a step still slower with a batch that is ten times as large?",
    ),
    Complaint(
        (_GPU, _CPU, _one_of("differ-", "same results?", "wrong", "NaN", "inaccura-", "mismatch-")),
        "the results on the GPU are not those of the CPU",
        (
            Remedy(
                "Compare the devices layer by layer: rounding, TF32 or a fault.",
                command_line("whygpu compare PROGRAM.py:build_model --lanes cpu,gpu"),
            ),
        ),
        (
            "rounding, which every order of the same sums does in another way",
            "TF32 or float16, which GPUs use for speed",
            "random numbers that differ between the devices",
        ),
        "How large is the difference, relative to the values, and is it the same in each run?",
    ),
    Complaint(
        (
            _GPU,
            _one_of("computer", "pc", "machine", "laptop", "system", "server", "windows", "screen"),
            _one_of(
                "restarts?", "reboots?", "shuts? down", "turns? off", "crash-", "black", "blue"
            ),
        ),
        "the computer stops while the GPU works",
        (
            Remedy(
                "Explain what the kernel wrote before it stopped.",
                shell_script("journalctl -k -b -1 | whygpu explain"),
            ),
        ),
        ("a power supply that is too weak for the GPU", "heat", "a faulty GPU or driver"),
        "Does it also happen with a lower power limit (sudo nvidia-smi -pl WATTS)?",
    ),
    IDLE,
    IDLE._replace(words=(late(r"\bGPUs? (?:mostly |often )?idle\b[^\n]{0,20}\d ?%", re.I),)),
    IDLE._replace(words=(_IDLE_IN_CHINESE,)),
    Complaint(
        (
            _HOW,
            _one_of("memory", "VRAM"),
            _one_of(
                "limit-", "restrict-", "reduce", "cap", "prevent-", "stop", "control", "fraction"
            ),
        ),
        "how to limit the GPU memory that a program takes",
        (_LIMIT_MEMORY,),
    ),
    Complaint(
        (
            _one_of("GPUs?", "VRAM", "graphics? cards?"),
            _one_of("memory", "VRAM"),
            _one_of("all", "whole", "entire", "full", "fully", r"(?:9\d|100) ?%"),
            _one_of(
                "allocat-", "takes?", "taking", "occup-", "grabs?", "reserv-", "eats?", "uses?"
            ),
        ),
        "the framework takes all of the GPU's memory",
        (_LIMIT_MEMORY,),
        ("TensorFlow and JAX reserve nearly all of it when they start, whatever a model needs",),
        "Does another program need that memory, or does this one run out of it?",
    ),
    Complaint(
        (
            _HOW,
            _GPU,
            _one_of(*_DISABLE),
        ),
        "how to run a program without the GPU",
        (_ON_CPU, _HIDE),
    ),
    Complaint(
        (
            _HOW,
            late(
                r"^(?![^\n]*(?<!\w)(?:GPU|CUDA))[^\n]*(?<!\w)CPUs?(?!\w)"
                r"|(?<!\w)CPU(?: only)?,? (?:instead of|rather than|(?:and )?not)(?!\w)[^\n]{0,20}"
                r"GPU",
                re.IGNORECASE,
            ),
            _one_of(*_USE, "on", "only", "force", "forcing", "switch"),
        ),
        "how to run a program without the GPU",
        (_ON_CPU, _HIDE),
    ),
    Complaint(
        (_HOW, _MANY_GPUS, _one_of(*_USE, "on", "distribut-", "split-", "parallel-", "scale")),
        "how to use several GPUs at once",
        _ON_SEVERAL[::-1],
    ),
    Complaint(
        (
            _HOW,
            _GPU,
            _one_of(
                "select", "choose", "pick", "specif-", "particular", "single", "second GPU", "one"
            ),
        ),
        "how to choose the GPU that a program uses",
        (
            Remedy(
                "Run it on one GPU, by its number in nvidia-smi.",
                command_line("whygpu run --device gpu:1 -- python PROGRAM.py"),
            ),
        ),
    ),
    Complaint(
        (
            _one_of("how", "check", "tell", "know", "verify", "confirm", "sure", "find out"),
            _one_of("if", "whether"),
            _GPU,
            _one_of(*_USE),
        ),
        "how to find out whether a program uses its GPU",
        (CHECK, _WHICH_DEVICE),
    ),
    SEES_NONE,
    SEES_NONE._replace(words=(_LISTS_NONE,)),
    SEES_NONE._replace(words=(_TRIES_TO_SHOW,)),
    Complaint(
        (
            _GPU,
            _one_of(
                rf"{_NOT}(?:\W{{1,3}}[\w-]{{1,14}}){{0,3}}?\W{{1,3}}support\w{{0,3}}", "unsupported"
            ),
            # Something that the GPU cannot do is another matter.
            late(
                r"^(?![^\n]*(?:peer access|operation|feature|attribute|data ?type))", re.IGNORECASE
            ),
        ),
        "the GPU is not supported",
        (
            Remedy(
                "Let whygpu find the release that works with that GPU.",
                command_line("whygpu plan FRAMEWORK --gpu NAME"),
            ),
            CHECK,
        ),
        (
            "a release of the framework that is older than the GPU",
            "a release that no longer has code for an old GPU",
        ),
        "Which release of the framework is it, and which GPU?",
    ),
    Complaint(
        (_one_of("hang-", "hung", "stuck", "freez-", "frozen", "forever", "nothing happens"),),
        "the program does not go on",
        (
            Remedy(
                "Look at what it waits for, while it does.",
                shell_script("pip install py-spy && py-spy dump --pid PID"),
            ),
        ),
        (
            "GPU code that is compiled at the first start, for minutes",
            "processes that wait for each other (NCCL, the workers of a data loader)",
            "memory that TensorFlow waits for",
        ),
        "Does it use the CPU or the GPU while it hangs (top, nvidia-smi)?",
    ),
    SLOW,
    WHETHER_USED,
    Complaint(
        (
            late(f"{_MANY_GPUS.pattern}|{_ANOTHER_GPU.pattern}", re.IGNORECASE),
            _one_of(
                "only",
                "not",
                r"\w{2,6}n['’]?t",
                "never",
                "idle",
                "idles",
                "unused",
                "empty",
                "0 ?%",
            ),
            _one_of(*_USE, "unused", "idle", "idles", "empty", "busy", "active", "0 ?%", "GPUs?"),
            _GPU,
        ),
        "only one of several GPUs is used",
        _ON_SEVERAL,
        (
            "the program is written for one GPU",
            "CUDA_VISIBLE_DEVICES, or the scheduler, gives it only one",
        ),
        "Does the program start a process for each GPU, or use a strategy? And how many GPUs does "
        "`whygpu check` list?",
    ),
    NOT_USED,
    HOW_TO_USE,
    FAILS,
    _ABOUT_THE_GPU,
)
_PERSON = late(
    r"(?<![\w.])(?:I|I['’]\w{1,2}|[Mm]y|[Ww]e|[Oo]ur|[Ww]hy|[Hh]ow)(?![\w.])|\?$"
    # Many write no capital letters; "i" alone is a variable.
    r"|(?<![\w.\[(])i(?:['’]m|['’]ve|m| (?:am|have|had|get|got|want|need|use|used|run|ran|tried|try"
    r"|install|installed|did|do|don['’]?t|can|can['’]?t|cannot|could|see|saw|think|train|trained))(?!\w)"
    r"|(?<![\w.])[Ii]t(?:['’]s| is| just| always| only)? (?:stuck|hangs|freezes|crashes|takes)(?!\w)"
    # Chinese, German, French, Spanish, Russian
    r"|我|为什么|为何|怎么|请问|如何|只有|[吗呢？]$"
    r"|(?<!\w)(?:[Ii]ch|[Mm]eine?|[Ww]arum|[Ww]ieso|[Jj]e|[Pp]ourquoi|[Pp]or qué|[Пп]очему"
    r"|[Уу] меня)(?!\w)"
)
FAULT_HEADING = late(
    r"^\W{0,8}(?:(?i:(?:current|actual|unexpected|observed) behaviou?r|describe the (?:bug|problem|issue"
    r"|current behaviou?r)|what happened|what went wrong|bug description|problem description))\W{0,8}$"
)
"""The heading of a form for faults, below which somebody says what is wrong."""
_SENTENCE = late(r"[^\n]+?(?:[.?!;](?=\s|$)|$)")


def complaint_in(line: str) -> Complaint | None:
    """What the first sentence that says or asks something about the GPU is about.

    A later sentence counts if the first only says that something fails. The sentences together
    come last: the GPU may be named in one, and "not detected" in another.
    """
    rows = [row for found in _SENTENCE.finditer(line) if (row := _about(found[0])) is not None]
    says_most = {symptom.says for symptom in SAY_MOST}
    if rows and rows[0] is FAILS:
        return next((row for row in rows if row.says in says_most), FAILS)
    return rows[0] if rows else _about(line)


def _about(text: str) -> Complaint | None:
    return next((row for row in _ALL if all(word.search(text) for word in row.words)), None)


_TROUBLE = _one_of(
    *("not", "no", r"\w{2,6}n['’]?t", "cannot", "never", "unable", "fail-", "errors?", "wrong"),
    *("problems?", "issues?", "troubles?", "crash-", "hang-", "stuck", "missing", "instead"),
    *("only", "always", "alway", "slow-", "help", "bug", "same error", "unexpected-"),
)
_ORDINARY = _one_of(
    *("the", "a", "an", "is", "was", "it", "to", "with", "but", "and", "after", "while"),
    *("on", "in", "for", "this", "that", "have", "has", "uses?", "using", "i", "my", "we"),
    *("get", "gets", "getting", "got", "when", "why", "from", "there", "be"),
)
_LIKE_OUTPUT = late(r"^\W|^\S{0,80}[:=\[/\\|]|^\d|[{}<>]|\w=\S|\w\(\)?")
_FEWEST_WORDS = 6


def reports_trouble(line: str) -> bool:
    """Whether a line is a sentence, in the words of a person, about something that goes wrong."""
    text = line.strip()
    if _LIKE_OUTPUT.search(text) or len(text.split()) < _FEWEST_WORDS:
        return False
    found = complaint_in(text)
    if found is not None and found.says in {each.says for each in (*SAY_MOST, FAILS)}:
        return True
    return _TROUBLE.search(text) is not None and len(_ORDINARY.findall(text)) > 1


def goes_on_after(sentence: str, line: str) -> bool:
    """Whether the line ends a sentence of a person that the line before it began."""
    return (
        bool(sentence)
        and sentence.rstrip()[-1:].isalpha()
        and not line.startswith(("  ", "\t", "File"))
    )


def is_of_a_person(line: str) -> bool:
    """Whether somebody speaks of himself, or asks. Programs seldom do."""
    return _PERSON.search(line) is not None

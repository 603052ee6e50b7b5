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


_GPU = _one_of("GPUs?", "CUDA", "graphics? cards?", "RTX", "GTX", "Tesla", "Quadro", "GeForce")
_CPU = _one_of("CPUs?")
_NOT = r"(?:not|\w{2,6}n['’]?t|no|never|cannot|unable|fail\w{0,3}|0|zero)"
_HOW = _one_of(
    *("how", "way to", "possible", "can i", "could i", "(?:want|need|like) to", "is there"),
    r"can (?:tf\.)?(?:keras|tensorflow|pytorch|torch|jax)",
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
        return self.says.startswith(("how ", "whether ", "about "))

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

NOT_USED = Complaint(
    (
        _GPU,
        _one_of("not", r"\w{2,6}n['’]?t", "cannot", "never", "no process", "CPU"),
        _one_of(*_USE, "process-"),
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
    IDLE._replace(words=(late(r"GPU ?的?(?:利用率|使用率|占用率)[^\n]{0,12}(?:低|[0-4]?\d ?%)"),)),
    Complaint(
        (
            _HOW,
            _one_of("memory", "VRAM"),
            _one_of(
                "limit-", "restrict-", "reduce", "cap", "prevent-", "stop", "control", "fraction"
            ),
        ),
        "how to limit the GPU memory that a program takes",
        (
            Remedy(
                "Let it take what it needs at the time (growth), or set a limit: 0.5 or 4GiB.",
                command_line("whygpu run --memory growth -- python PROGRAM.py"),
            ),
        ),
    ),
    Complaint(
        (
            _HOW,
            _GPU,
            _one_of(*_DISABLE),
        ),
        "how to run a program without the GPU",
        (
            Remedy(
                "Run it on the CPU; nothing in the program has to change.",
                command_line("whygpu run --device cpu -- python PROGRAM.py"),
            ),
        ),
    ),
    Complaint(
        (
            _HOW,
            _GPU,
            _one_of("select", "choose", "pick", "specif-", "particular", "single", "second", "one"),
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
    Complaint(
        (
            _GPU,
            _one_of(
                rf"{_NOT}(?:\W{{1,3}}[\w-]{{1,14}}){{0,3}}?\W{{1,3}}support\w{{0,3}}", "unsupported"
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
    Complaint(
        (_GPU, _one_of("slow", "slowly", "takes? (?:too |very |so )?long", "speed")),
        "the program is slow",
        (_WHICH_DEVICE, PROFILE),
        IDLE.candidates,
        "How long does one step take, and how busy is the GPU then (nvidia-smi)?",
    ),
    WHETHER_USED,
    NOT_USED,
    Complaint(
        (_HOW, _GPU, _one_of(*_USE, "enable", "make", "set up", "setup", "force")),
        "how to let a program use the GPU",
        (
            CHECK,
            Remedy(
                "Run it on the GPU, or let it end at once with the reason why it cannot.",
                command_line("whygpu run --require gpu -- python PROGRAM.py"),
            ),
        ),
    ),
    FAILS,
    _ABOUT_THE_GPU,
)
_PERSON = late(r"(?<![\w.])(?:I|I['’]\w{1,2}|[Mm]y|[Ww]e|[Oo]ur|[Ww]hy|[Hh]ow)(?![\w.])|\?$")
_SENTENCE = late(r"[^\n]+?(?:[.?!;](?=\s|$)|$)")


def complaint_in(line: str) -> Complaint | None:
    """What the first sentence that says or asks something about the GPU is about.

    The sentences together come last: the GPU may be named in one, and "not detected" in another.
    """
    for sentence in (*(found[0] for found in _SENTENCE.finditer(line)), line):
        for row in _ALL:
            if all(word.search(sentence) for word in row.words):
                return row
    return None


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
    if complaint_in(text) in (SEES_NONE, NOT_USED, IDLE, FAILS):
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

"""Symptoms and questions in a person's own words, and what to do about each.

Some people paste no output at all: they describe what they see, or ask how something is done. No
cause can be found in such a sentence, but what would find it depends on the symptom.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from whygpu.model.finding import Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.remedy import command_line, shell_script
from whygpu.tables.failures_without_reason import WHY_NO_SESSION
from whygpu.tables.questions import QUESTIONS
from whygpu.tables.symptoms import IN_OTHER_LANGUAGES, ONE_OF_SEVERAL, SYMPTOMS
from whygpu.tables.words_of_people import (
    CHECK,
    CPU,
    GPU,
    HOW,
    ISNT,
    LIMIT_MEMORY,
    MEMORY,
    NOT,
    PROFILE,
    USE,
    WHICH_DEVICE,
    WHOLE_OUTPUT,
    ZERO,
    Complaint,
    one_of,
    tutorial,
)

_LITTLE = late(
    r"(?<!\w)(?:low|lower|poor|bad|idle|idling|idles|drops?|fluctuat\w{1,4})(?!\w)"
    r"|(?<![\d.])[0-4]?\d(?:\.\d)? ?%",
    re.IGNORECASE,
)

_SEE = (
    r"(?:see(?:s|n|ing)?|f(?:i|ou)nd(?:s|ing)?|(?:detect|show|list)\w{0,3}|recogni[sz]\w{1,3}"
    r"|identif\w{1,4}|discover\w{0,3}|visible|available|pick(?:s|ed|ing)? up)"
)
SEES_NONE = Complaint(
    (
        GPU,
        one_of(
            rf"{NOT}(?:\W{{1,3}}[\w-]{{1,14}}){{0,3}}?\W{{1,3}}{_SEE}", rf"{_SEE} (?:no|0) GPUs?"
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
        one_of("GPUs?", "nvidia-smi", r"GPU[ _-]?util\w{0,9}"),
        one_of("util-", r"GPU[ _-]?util\w{0,9}", "usage", "use", "rate", "load", "is", "are", "at"),
        _LITTLE,
    ),
    "the GPU is hardly used while the program works",
    (WHICH_DEVICE, PROFILE),
    (
        "input that is read or decoded too slowly",
        "batches or operations that are too small to fill the GPU",
        "a result that is read from the GPU in every step",
        "work that is done on the CPU",
    ),
    "Does nvidia-smi list the program among the processes of the GPU? If not, it works on the CPU.",
)

_NEXT = r"[ '\"`*-]{1,3}"
_SOME = rf"(?:{_NEXT}[\w-]{{1,14}})"
"""Words of the same clause: "failed to install, but running it" denies nothing."""
_DENIED = rf"(?:not|{ISNT}|no|never|cannot|unable|{ZERO}|zero|fail\w{{0,3}} to)"
"""What fails when the GPU is used is another matter than what fails to use it."""
NOT_USED = Complaint(
    (
        GPU,
        one_of(
            # The words are near each other: "the build did not work" is about another thing.
            rf"{_DENIED}{_SOME}{{0,7}}?{_NEXT}(?:us(?:e|es|ed|ing|age)|utili[sz]\w{{1,4}}|run\w{{0,4}}"
            r"|train\w{0,4}|process\w{0,3})",
            rf"GPUs?{_SOME}{{0,3}}?{_NEXT}(?:not|{ISNT}|never){_SOME}{{0,2}}?{_NEXT}"
            r"(?:work\w{0,3}|being|involved|active|engaged)",
            rf"(?:on|us(?:e|es|ed|ing)|only|to|with|by){_SOME}{{0,2}}?{_NEXT}CPUs?"
            r"(?! ?(?:and|or|/|,|&) ?(?:the )?GPU)",
            rf"CPUs?{_SOME}{{0,3}}?{_NEXT}(?:us(?:e|es|ed|ing|age)|instead|works|working|load)",
            "no process",
        ),
    ),
    "the work is not done on the GPU",
    (CHECK, WHICH_DEVICE),
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
_VERY_SLOW = late(
    r"(?<!\w)(?:so|very|too|extremely|terribly|really|incredibly|super|painfully|ridiculously)"
    r" (?:slow|slowly|long)(?!\w)"
    r"|(?<!\w)(?:takes?|took|taking)(?!\w)(?: [\w~]{1,12}){0,3} "
    r"(?:forever|ages|hours|\d{1,3} ?(?:minutes?|mins?|hours?|h))(?!\w)",
    re.IGNORECASE,
)
_MEMORY_IS_FULL = late(
    r"(?<!\w)OOM(?!\w)|(?<!\w)(?:out[- ]of[- ]memory"
    r"|(?:runs?|ran|running) out of (?:\w{2,6} )?memory|ResourceExhausted\w{0,5})(?!\w)",
    re.IGNORECASE,
)
_KEEPS_MEMORY = late(
    r"(?<!\w)(?:memory|VRAM)(?!\w)[^.\n]{0,80}(?:not|n['’]t|never|without)[^.\n]{0,30}"
    r"(?:free|release|clear|empt|flush|decrease|drop)"
    r"|(?:not|n['’]t|never|nothing|how to|unable to|cannot|want to|clear\w{0,3}|free\w{0,3})"
    r"[^.\n]{0,40}(?:free|release|clear|empty|emptie|flush|reset)\w{0,3}[^.\n]{0,30}(?:memory|VRAM)"
    r"|(?:memory|VRAM)(?: \w{2,12}){0,3} "
    r"(?:leak|grows|increases|keeps (?:growing|increasing)|steadily)",
    re.IGNORECASE,
)
FAILS = Complaint(
    (
        GPU,
        one_of("exceptions?", "errors?", "crash-", "fails?", "failing", "fail(?:ed|ure)"),
        one_of("us(?:e|es|ed|ing)", "on", "to", "with", "when", "train-", "runs?", "running"),
    ),
    "a program fails when it uses the GPU",
    (WHOLE_OUTPUT, CHECK, tutorial("exceptions")),
    (
        "CUDA libraries or a cuDNN of another release than the framework needs",
        "memory that is used up, or held by another program",
        "a driver that is too old",
        "a GPU that is newer or older than the build",
    ),
    "What is the last line of the traceback, and the first error above it?",
)
_OF_A_MODEL = (
    r"(?! (?:(?:the|an?|my|all|some|first|last|pre-?trained) ){0,3}(?:(?:base|first|last) )?"
    r"(?:layers?|graphs?|weights?|backbones?|models?|encoders?|parameters?|embeddings?))"
)
"""What is frozen on purpose: "pip freeze" is no trouble either."""
_NO_MEASURE = late(
    r"^(?![^\n]*(?<!\w)(?:accuracy|loss|auc|score|reward)(?!\w)[^\n]{0,30}(?<!\w)stuck(?!\w))"
    r"(?![^\n]*(?<!\w)stuck(?!\w)[^\n]{0,30}(?<!\w)(?:accuracy|loss|auc|score|reward)(?!\w))",
    re.IGNORECASE,
)
"""A model that no longer learns is another matter."""
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
        GPU,
        one_of(*USE, "ok", "okay", "fine", "active", "there", "really", "actually"),
    ),
    "whether the GPU is used",
    (CHECK, WHICH_DEVICE),
    ask="Does `nvidia-smi` list the program among the processes of the GPU while it works?",
)
_ABOUT_THE_GPU = Complaint(
    (
        late(r"\?\W{0,4}$"),
        one_of("GPUs?", "CUDA", "graphics? cards?", "RTX", "GTX", "devices?", "CPUs?"),
    ),
    "about the GPU",
    WHETHER_USED.steps,
    ask=WHETHER_USED.ask,
)
"""Any other question. It comes last."""

SLOW = Complaint(
    (GPU, one_of("slow", "slowly", "takes? (?:too |very |so )?long", "speed")),
    "the program is slow",
    (WHICH_DEVICE, PROFILE),
    IDLE.candidates,
    "How long does one step take, and how busy is the GPU then (nvidia-smi)?",
)
HOW_TO_USE = Complaint(
    (HOW, GPU, one_of(*USE, "enable", "make", "set up", "setup", "force")),
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

_OUT_OF_MEMORY = Complaint(
    (_MEMORY_IS_FULL,),
    "memory runs out",
    (
        WHOLE_OUTPUT,
        Remedy("See which programs hold the GPU's memory.", command_line("whygpu memory")),
    ),
    (
        "a batch, input or model that needs more than the GPU has",
        "another process, or an earlier run, that holds the GPU's memory",
        "models, results or graphs of earlier rounds that are kept",
    ),
    "Which message says so, and how much memory is in use before the program starts?",
)

_ALL: tuple[Complaint, ...] = (
    Complaint(
        (_ONLY_KERAS, one_of("GPUs?", "CUDA", r"is_gpu_available(?:\(\))?", "CPU")),
        "Keras does not use the GPU that TensorFlow sees",
        (CHECK, tutorial("keras-without-gpu")),
        (
            "Keras works on another backend than TensorFlow (KERAS_BACKEND, ~/.keras/keras.json)",
            "the two were run in different environments",
            "the work was fixed to the CPU",
        ),
        "What does `python -c 'import keras; print(keras.backend.backend())'` print?",
    ),
    Complaint(
        (
            one_of("ignor-", "bypass-", "skip-", "circumvent-", "override", "get(?:ting)? around"),
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
            tutorial("session-on-the-cpu"),
        ),
    ),
    Complaint(
        (
            one_of(rf"{NOT}(?:ing)?(?: to)? (?:create|start|open|make)", "creat-"),
            late(r"(?<!\w)(?:tf\.)?session(?!\w)", re.IGNORECASE),
            one_of(NOT, "fail-", "error"),
        ),
        "TensorFlow cannot create a session",
        (WHOLE_OUTPUT, CHECK, tutorial("session-fails")),
        WHY_NO_SESSION,
        "What is the first error above it in the whole output?",
    ),
    *QUESTIONS,
    Complaint(
        (GPU, CPU, one_of("slower", "longer"), one_of("than")),
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
        (
            GPU,
            CPU,
            one_of("differ-", "same results?", "wrong", "NaN", "inaccura-", "mismatch-"),
            one_of(
                *(
                    "results?",
                    "outputs?",
                    "predictions?",
                    "accuracy",
                    "loss",
                    "values?",
                    "numbers?",
                ),
                *("answers?", "NaN", "wrong", "inaccura-", "mismatch-", "scores?"),
            ),
        ),
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
            GPU,
            one_of("computer", "pc", "machine", "laptop", "system", "server", "windows", "screen"),
            one_of("restarts?", "reboots?", "shuts? down", "turns? off", "crash-", "black", "blue"),
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
    *SYMPTOMS,
    IDLE,
    IDLE._replace(words=(late(r"\bGPUs? (?:mostly |often )?idle\b[^\n]{0,20}\d ?%", re.I),)),
    IDLE._replace(words=(_IDLE_IN_CHINESE,)),
    Complaint(
        (_KEEPS_MEMORY, one_of("GPUs?", "VRAM", "graphics? cards?", "CUDA", "tf", "keras")),
        "the GPU's memory is not freed",
        (
            Remedy(
                "TensorFlow gives memory back only when its process ends: do each round in a "
                "process of its own (multiprocessing with the method spawn)."
            ),
            LIMIT_MEMORY,
            WHOLE_OUTPUT,
        ),
        (
            "the framework keeps freed memory for its next use, which is no leak",
            "models, results or graphs of earlier rounds that are still referred to",
        ),
        "Does the memory that is in use grow from round to round?",
    ),
    Complaint(
        (
            one_of("GPUs?", "VRAM", "graphics? cards?"),
            MEMORY,
            one_of("all", "whole", "entire", "full", "fully", r"(?:9\d|100) ?%"),
            one_of(
                *("allocat-", "takes?", "taking", "occup-", "grabs?", "reserv-", "eats?", "uses?"),
                r"(?:memory|VRAM) (?:(?:is|gets|was|already|always|nearly|almost) ){0,2}full",
            ),
        ),
        "the framework takes all of the GPU's memory",
        (LIMIT_MEMORY,),
        ("TensorFlow and JAX reserve nearly all of it when they start, whatever a model needs",),
        "Does another program need that memory, or does this one run out of it?",
    ),
    SEES_NONE,
    SEES_NONE._replace(words=(_LISTS_NONE,)),
    SEES_NONE._replace(words=(_TRIES_TO_SHOW,)),
    SEES_NONE._replace(words=(IN_OTHER_LANGUAGES,)),
    Complaint(
        (
            GPU,
            one_of(
                rf"{NOT}(?:\W{{1,3}}[\w-]{{1,14}}){{0,3}}?\W{{1,3}}support\w{{0,3}}", "unsupported"
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
        (
            one_of(
                "hang-",
                "hung",
                "stuck",
                f"(?<!pip )freez\\w{{0,3}}{_OF_A_MODEL}",
                f"frozen{_OF_A_MODEL}",
                "(?<!takes )(?<!take )forever",
                "nothing happens",
            ),
            _NO_MEASURE,
        ),
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
    WHETHER_USED,
    ONE_OF_SEVERAL,
    NOT_USED,
    SLOW,
    _OUT_OF_MEMORY._replace(words=(HOW, _MEMORY_IS_FULL)),
    HOW_TO_USE,
    FAILS,
    _ABOUT_THE_GPU,
)
_LAST_RESORT: tuple[Complaint, ...] = (
    _OUT_OF_MEMORY,
    SLOW._replace(words=(_VERY_SLOW,)),
)
"""Symptoms that do not name the GPU. Whoever asks here means its work, if nothing else is said."""
_SENTENCE = late(r"[^\n]+?(?:[.?!;](?=\s|$)|$)")


_LONGEST_PARAGRAPH = 4000
"""Nobody writes more in one line; programs do."""


def complaint_in(line: str) -> Complaint | None:
    """What the first sentence that says or asks something about the GPU is about.

    A later sentence counts if the first only says that something fails. The sentences together
    come last: the GPU may be named in one, and "not detected" in another.
    """
    line = line[:_LONGEST_PARAGRAPH]
    sentences = [found[0] for found in _SENTENCE.finditer(line)]
    rows = [row for sentence in sentences if (row := _about(sentence, _ALL)) is not None]
    if rows:
        return rows[most_telling(rows)]
    last = (_about(sentence, _LAST_RESORT) for sentence in (*sentences, line))
    return _about(line, _ALL) or next((row for row in last if row is not None), None)


def most_telling(rows: Sequence[Complaint]) -> int:
    """The place of the first; if that only says that something fails, of one that says what."""
    if rows[0] is not FAILS:
        return 0
    says_most = {symptom.says for symptom in SAY_MOST}
    return next((place for place, row in enumerate(rows) if row.says in says_most), 0)


def _about(text: str, rows: Sequence[Complaint]) -> Complaint | None:
    return next((row for row in rows if all(word.search(text) for word in row.words)), None)

"""What people see go wrong, in their own words, if it is more special than in `complaints`."""

from __future__ import annotations

from whygpu.model.finding import Remedy
from whygpu.model.remedy import command_line, shell_script
from whygpu.tables.words_of_people import (
    ANOTHER_GPU,
    CHECK,
    CPU,
    GPU,
    MANY_GPUS,
    MEMORY,
    NOT,
    ON_ANOTHER_GPU,
    ON_SEVERAL_GPUS,
    PLAN,
    PROFILE,
    USE,
    WHO_HOLDS_MEMORY,
    WHOLE_OUTPUT,
    Complaint,
    any_case,
    one_of,
    page,
)

_NOT_BY_ITSELF = one_of(
    *("only", "not", r"\w{2,6}n['’]?t", "never", "idle", "idles", "unused", "empty", "0 ?%")
)
_OF_THE_GPU = one_of("GPUs?", "VRAM", "nvidia-smi", "CUDA")
_NOBODY_RUNS = any_case(
    r"(?<!\w)(?:no|without)(?: \w{1,10}){0,2} process|(?<!\w)nothing (?:is |was )?running"
    r"|(?<!\w)after[^\n]{0,30}(?:kill|stop|clos|end|finish|exit|crash|interrupt|ctrl)"
)
_HELD = Complaint(
    (
        any_case(r"(?<!\w)(?:memory|VRAM)(?!\w)|(?<![\d.])\d{1,6} ?[GM]i?B(?!\w)"),
        _OF_THE_GPU,
        one_of("full", "used", "occupied", "in use", "taken", "held", "stuck", "stays?", "still"),
        _NOBODY_RUNS,
    ),
    "GPU memory stays in use although no program is seen that uses it",
    (
        WHO_HOLDS_MEMORY,
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
)
_NOT_GIVEN_BACK = any_case(
    r"(?<!\w)(?:not|never) (?:being )?(?:freed|released|cleared|returned)"
    r"|n['’]?t (?:being |get )?(?:free|release|clear)"
)
_NO_REASON = any_case(
    r"without (?:any |an |a )?(?:error|message|traceback|warning|exception)|silently|no error"
)

ONE_OF_SEVERAL = Complaint(
    (
        one_of(*MANY_GPUS, *ANOTHER_GPU),
        _NOT_BY_ITSELF,
        one_of(*USE, "unused", "idle", "idles", "empty", "busy", "active", "0 ?%", "GPUs?"),
        GPU,
    ),
    "only one of several GPUs is used",
    (ON_ANOTHER_GPU, ON_SEVERAL_GPUS),
    (
        "the program is written for one GPU",
        "CUDA_VISIBLE_DEVICES, or the scheduler, gives it only one",
    ),
    "Does the program start a process for each GPU, or use a strategy? And how many GPUs does "
    "`whygpu check` list?",
)

SYMPTOMS: tuple[Complaint, ...] = (
    _HELD,
    _HELD._replace(words=(MEMORY, _OF_THE_GPU, _NOT_GIVEN_BACK, _NOBODY_RUNS)),
    Complaint(
        (
            one_of("first"),
            one_of("epochs?", "steps?", "iterations?", "batch", "batches", "calls?", "runs?"),
            one_of("slow", "slowly", "long", "longer", "slower", "minutes?", "forever"),
        ),
        "the first steps take longest",
        (PROFILE,),
        (
            "compilation (XLA, tf.function, torch.compile), and the choice of cuDNN's algorithms",
            "GPU code that the driver compiles, because the build has none for this GPU",
            "data that is read from the disk for the first time",
        ),
        "For how long, and again at every start of the program?",
    ),
    Complaint(
        (
            GPU,
            any_case(r"(?<![\d.])(?:9\d|100) ?%|(?<!\w)(?:fully|full) (?:used|utili[sz]ed|load)"),
            one_of("slow", "slowly", "slower", "long", "longer"),
        ),
        "the program is slow although the GPU is busy",
        (PROFILE, CHECK),
        (
            "float32 without TF32 or mixed precision",
            "many small kernels: a GPU counts as busy while any part of it works",
            "a GPU that is slowed down by heat or by its power limit",
            "another program on the same GPU",
        ),
        "How long does one step take, and how much power does the GPU draw then (nvidia-smi)?",
    ),
    Complaint(
        (
            GPU,
            one_of(
                "temperature", "hot", "overheat-", "throttl-", "thermal-", "degrees", r"\d{2} ?°C"
            ),
        ),
        "the GPU gets hot, or slows down",
        (
            Remedy("See whether its clock is limited, and by what.", command_line("whygpu check")),
            page("WG111"),
        ),
        ("heat, which lowers the clock", "a power limit", "a full case, or a fan that fails"),
        "What does `nvidia-smi -q -d PERFORMANCE,TEMPERATURE` print while it works?",
    ),
    Complaint(
        (
            GPU,
            any_case(
                r"(?<!\w)slower than (?:an? |my |the |our )?(?:old |new )?(?:RTX|GTX|GPU|\w{0,4}\d)"
            ),
        ),
        "one GPU is slower than another",
        (
            Remedy(
                "Measure the GPU itself, without a framework's program.",
                command_line("whygpu check --stress"),
            ),
            PROFILE,
        ),
        (
            "input, or code on the CPU, that the GPU waits for",
            "a build without code for the newer GPU",
            "a GPU that is slowed down by heat, power or its slot",
        ),
        "Is the newer one busy while it works (nvidia-smi)?",
    ),
    Complaint(
        (
            one_of(r"data ?loaders?", r"input pipelines?", r"tf\.data", r"data loading"),
            one_of("bottleneck", "slow", "slowly", "speed", "faster"),
        ),
        "the input is too slow",
        (PROFILE,),
        ("too few worker processes", "decoding on the CPU", "storage that is slow"),
        "How busy are the cores and the GPU while it trains?",
    ),
    Complaint(
        (
            one_of("CUDA", "cuDNN", "driver"),
            one_of("versions?", "releases?"),
            one_of(
                "mismatch-", "incompatib-", "wrong", "not compatible", r"do(?:es)?n['’]?t match"
            ),
        ),
        "releases of CUDA, of the driver or of the framework do not match",
        (CHECK, PLAN),
        (
            "CUDA libraries of another release, found before those of the framework",
            "a driver that is too old for the CUDA of the framework",
        ),
        "Which two releases does the message name?",
    ),
    Complaint(
        (
            one_of("docker", "container-", "podman", "kubernetes", "pods?", "docker-compose"),
            GPU,
            one_of(NOT),
            one_of(
                "see", "sees", "find", "detect-", "available", "visible", "access", "in", "inside"
            ),
        ),
        "a container does not see the GPU",
        (
            Remedy(
                "See whether Docker gives GPUs to containers at all.",
                command_line("docker run --rm --gpus all ubuntu nvidia-smi"),
            ),
            Remedy(
                "Then check inside of the container: it says which layer withheld the GPU.",
                command_line("whygpu check"),
            ),
            page("WG801"),
        ),
        (
            "a container that was started without --gpus all",
            "NVIDIA's container toolkit, which is not installed on the host or not registered",
            "an image without CUDA libraries, or with a CPU build",
        ),
        "Does `nvidia-smi` work inside of the container?",
    ),
    Complaint(
        (
            one_of("jupyter-", "notebooks?", "pycharm", "vs ?code", "spyder", "IDE"),
            one_of("terminal", "console", "command line", "shell", "outside", "different python"),
        ),
        "a program sees the GPU in one place and not in another",
        (
            Remedy(
                "Print the interpreter in both places. If they differ, select the right one.",
                command_line("python -c 'import sys; print(sys.executable)'"),
            ),
            Remedy("Check the other interpreter.", command_line("whygpu check --python PATH")),
        ),
        (
            "two interpreters, with other packages",
            "variables (LD_LIBRARY_PATH, CUDA_VISIBLE_DEVICES) that only a shell sets",
        ),
        "Which interpreter does each of them use?",
    ),
    Complaint(
        (
            one_of("after", "since"),
            one_of("updat-", "upgrad-", "reboot-", "reinstall-", "install-"),
            GPU,
            any_case(r"(?<!\w)(?:stop\w{0,4}|no longer|any ?more|broke|broken|gone|lost)(?!\w)"),
        ),
        "the GPU has not worked since something was updated",
        (
            CHECK,
            Remedy(
                "If a snapshot from before exists, let whygpu name the difference that matters.",
                command_line("whygpu diff BEFORE.json"),
            ),
        ),
        (
            "a driver of which only one part was updated, until a restart",
            "a framework that was replaced by a build without GPU support",
            "a kernel for which the driver's module was not built",
        ),
        "What was updated: the driver, the kernel, or packages?",
    ),
    Complaint(
        (
            CPU,
            one_of("works?", "fine", "runs?"),
            one_of("but"),
            GPU,
            one_of("error-", "fail-", "crash-"),
        ),
        "a program fails on the GPU and works on the CPU",
        (WHOLE_OUTPUT, CHECK),
        (
            "CUDA libraries or a cuDNN of another release than the framework needs",
            "memory that is used up",
            "an index out of range, which the GPU reports later and in other words",
        ),
        "What is the last line of the traceback, and the first error above it?",
    ),
    Complaint(
        (
            one_of("kill-", "terminated", "stops?", "ends?", "ended", "exits?", "died", "dies"),
            _NO_REASON,
        ),
        "the program was ended, without a message",
        (
            Remedy(
                "See whether the kernel ended it, because main memory was used up.",
                shell_script("sudo dmesg | grep -i 'out of memory'"),
            ),
            Remedy(
                "Let Python print where it crashes, and explain that.",
                shell_script("python -X faulthandler PROGRAM.py 2>&1 | whygpu explain"),
            ),
        ),
        (
            "main memory that was used up",
            "a crash in native code, such as a CUDA or cuDNN library",
            "a limit of a scheduler or a container",
        ),
        "What is its exit code (`echo $?`)? 137: it was killed. 139: it crashed.",
    ),
    Complaint(
        (one_of("LSTM", "GRU", "RNN", "recurrent"), one_of("cuDNN"), one_of(NOT)),
        "a recurrent layer does not use cuDNN",
        (page("WG917"),),
    ),
)

IN_OTHER_LANGUAGES = any_case(
    # German, French, Spanish, Portuguese, Russian, Chinese, Japanese, Korean.
    r"(?:GPU|Grafikkarte)[^\n]{0,40} (?:nicht|keine?) ?(?:erkannt|gefunden|genutzt|benutzt"
    r"|verwendet)?"
    r"|(?<!\w)(?:findet|sieht|erkennt|nutzt|benutzt|verwendet)(?!\w)[^\n]{0,30}(?:GPU|Grafikkarte)"
    r"[^\n]{0,6} nicht|(?:findet|sieht|erkennt|nutzt|benutzt|verwendet) keine (?:GPU|Grafikkarte)"
    r"|(?<!\w)n(?:e |['’])(?:détecte|voit|trouve|utilise|reconna[iî]t)\w{0,3} (?:pas"
    r"|aucun)[^\n]{0,20}"
    r"(?:GPU|carte graphique)|(?:GPU|carte graphique) n['’]est pas (?:détecté|reconnu|utilisé"
    r"|trouvé)"
    r"|(?<!\w)n(?:o|ão) (?:detecta|encuentra|encontra|usa|utiliza|reconoce|reconhece|ve|vê)(?!\w)"
    r"[^\n]{0,20}(?:GPU|tarjeta gr[aá]fica|placa de v[ií]deo)"
    r"|(?:GPU|gr[aá]fica) n(?:o es|ão é) (?:detectada|utilizada|usada|reconocida|reconhecida)"
    r"|(?<!\w)не (?:видит|находит|использует|определяет|обнаруживает)[^\n]{0,20}(?:GPU|видеокарт)"
    r"|(?:检测|识别|找|看|用|使用|调用)不(?:到|了|出)[^\n]{0,8}(?:GPU|显卡)"
    r"|(?:GPU|显卡)[^\n]{0,8}(?:不可用|无法使用|用不了|检测不到|没有被使用)"
    r"|GPU[^\n]{0,6}(?:認識|検出|使用|利用)(?:され(?:ない|ません)|できない|できません|しない)"
    r"|GPU[^\n]{0,6}(?:인식|감지|사용)[^\n]{0,6}(?:못|않|안)"
)
"""That a framework does not see or use the GPU."""

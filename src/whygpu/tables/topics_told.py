"""What people see go wrong, and what to do about each."""

from __future__ import annotations

from whygpu.model.finding import Remedy
from whygpu.model.remedy import command_line, shell_script
from whygpu.tables.advice import (
    CHECK,
    LIMIT_MEMORY,
    ON_ANOTHER_GPU,
    ON_SEVERAL_GPUS,
    PLAN,
    PROFILE,
    WHICH_DEVICE,
    WHO_HOLDS_MEMORY,
    WHOLE_OUTPUT,
    page,
    tutorial,
)
from whygpu.tables.failures_without_reason import WHY_NO_SESSION
from whygpu.tables.topics import Topic

SEES_NONE = Topic(
    "the framework sees no GPU",
    (
        "gpu see|-see -see|-gpu !how !process !end !nth",
        "gpu framework|terminal broke|none !memory !fail",
        "asked none|-gpu",
        "gpu -see",
        "how see gpu",
        "nogpu !how",
    ),
    wants="framework",
    says_most=True,
)
"""The reasons and steps are those for a log that says so."""

IDLE = Topic(
    "the GPU is hardly used while the program works",
    (
        "util low gpu|smi|cpu|memory|person|why|asked",
        "util very low",
        "gpu|smi low !memory !result !nth !one",
        "low run|use gpu|framework !memory !result",
    ),
    wants="gpu util smi when person",
    says_most=True,
    steps=(WHICH_DEVICE, PROFILE),
    candidates=(
        "input that is read or decoded too slowly",
        "batches or operations that are too small to fill the GPU",
        "a result that is read from the GPU in every step",
        "work that is done on the CPU",
    ),
    ask="Does nvidia-smi list the program among the processes of the GPU? If not, it works on the "
    "CPU.",
)
NOT_USED = Topic(
    "the work is not done on the GPU",
    (
        "gpu -use|-run|ignore !how",
        "~gpu -work !how",
        "-gpu use|run|cpu|on|instead !how !nogpu",
        "why /gpu !how !memory",
        "cpu only|instead use|run|see|on|framework !how !higher !memory",
        "cpu use|run why|framework !how !slow !result !end !fail !higher !memory",
        "gpu use integrated !amd",
    ),
    wants="cpu framework",
    says_most=True,
    steps=(CHECK, WHICH_DEVICE),
    candidates=(
        "the framework sees no GPU",
        "the model or its input was not moved to the GPU, which PyTorch leaves to the program",
        "the program was told to use the CPU",
    ),
    ask="What does the framework print if it is asked for its GPUs?",
)
SLOW = Topic(
    "the program is slow",
    ("slow gpu", "slow very|why|framework|run", "minutes take very|step|why|run"),
    weight=-1,
    steps=(WHICH_DEVICE, PROFILE),
    candidates=IDLE.candidates,
    ask="How long does one step take, and how busy is the GPU then (nvidia-smi)?",
)
FAILS = Topic(
    "a program fails when it uses the GPU",
    ("gpu fail|crash use|run|when|on|work", "tfgpu -run|-work|fail"),
    weight=-1,
    steps=(WHOLE_OUTPUT, CHECK, tutorial("exceptions")),
    candidates=(
        "CUDA libraries or a cuDNN of another release than the framework needs",
        "memory that is used up, or held by another program",
        "a driver that is too old",
        "a GPU that is newer or older than the build",
    ),
    ask="What is the last line of the traceback, and the first error above it?",
)
ONE_OF_SEVERAL = Topic(
    "only one of several GPUs is used",
    (
        "many gpu one|only|nth use|idle|see|work|run|low|expected|gpu !how !slow !differ !hang",
        "nth -use|-see|-run|-work|idle|ignore|low|-gpu !how",
        "many -use|-see|idle|-work !how !hang",
        "one only use|see many|nth|model !how",
        "many gpu|one expected one",
    ),
    weight=1,
    steps=(ON_ANOTHER_GPU, ON_SEVERAL_GPUS),
    candidates=(
        "the program is written for one GPU",
        "CUDA_VISIBLE_DEVICES, or the scheduler, gives it only one",
    ),
    ask="Does the program start a process for each GPU, or use a strategy? And how many GPUs does "
    "`whygpu check` list?",
)
_OUT_OF_MEMORY = Topic(
    "memory runs out",
    ("oom", "memory -take|-enough"),
    weight=1,
    wants="memory gpu batch how",
    steps=(
        WHOLE_OUTPUT,
        Remedy("See which programs hold the GPU's memory.", command_line("whygpu memory")),
    ),
    candidates=(
        "a batch, input or model that needs more than the GPU has",
        "another process, or an earlier run, that holds the GPU's memory",
        "models, results or graphs of earlier rounds that are kept",
    ),
    ask="Which message says so, and how much memory is in use before the program starts?",
)
ABOUT_USE = (SEES_NONE, NOT_USED, SLOW, FAILS)
"""What people say of a GPU that the framework cannot use well."""

SYMPTOMS: tuple[Topic, ...] = (
    Topic(
        "Keras does not use the GPU that TensorFlow sees",
        ("-keras +tensorflow gpu|cpu|asked",),
        weight=3,
        steps=(CHECK, tutorial("keras-without-gpu")),
        candidates=(
            "Keras works on another backend than TensorFlow (KERAS_BACKEND, ~/.keras/keras.json)",
            "the two were run in different environments",
            "the work was fixed to the CPU",
        ),
        ask="What does `python -c 'import keras; print(keras.backend.backend())'` print?",
    ),
    Topic(
        "TensorFlow cannot create a session",
        ("session -create", "session create|framework fail", "session fail"),
        weight=1,
        steps=(WHOLE_OUTPUT, CHECK, tutorial("session-fails")),
        candidates=WHY_NO_SESSION,
        ask="What is the first error above it in the whole output?",
    ),
    Topic(
        "the work takes longer on the GPU than on the CPU",
        ("gpu cpu slower than !higher", "gpu cpu slow than"),
        weight=1,
        steps=(PROFILE,),
        candidates=(
            "batches or operations that are too small to fill the GPU",
            "data that is copied to the GPU and back in every step",
            "compilation in the first steps, if only these were timed",
        ),
        ask="Is a step still slower with a batch that is ten times as large?",
    ),
    Topic(
        "the results on the GPU are not those of the CPU",
        (
            "gpu differ|-same result !each !determinism !release",
            "gpu cpu differ|nan|-same !each !determinism !slow",
            "gpu cpu result higher",
        ),
        weight=1,
        steps=(
            Remedy(
                "Compare the devices layer by layer: rounding, TF32 or a fault.",
                command_line("whygpu compare PROGRAM.py:build_model --lanes cpu,gpu"),
            ),
        ),
        candidates=(
            "rounding, which every order of the same sums does in another way",
            "TF32 or float16, which GPUs use for speed",
            "random numbers that differ between the devices",
        ),
        ask="How large is the difference, relative to the values, and is it the same in each run?",
    ),
    Topic(
        "the loss is not a number",
        ("nan result|gpu",),
        steps=(CHECK,),
        candidates=(
            "a learning rate that is too high",
            "float16 without loss scaling",
            "data with missing or infinite values",
            "a GPU that computes wrongly",
        ),
        ask="Does the loss stay finite on the CPU, with the same data and float32?",
    ),
    Topic(
        "the computer stops while the GPU works",
        ("computer restart", "computer crash|hang gpu|run", "restart run gpu|silent"),
        wants="run gpu hang crash silent",
        weight=1,
        steps=(
            Remedy(
                "Explain what the kernel wrote before it stopped.",
                shell_script("journalctl -k -b -1 | whygpu explain"),
            ),
        ),
        candidates=(
            "a power supply that is too weak for the GPU",
            "heat",
            "a faulty GPU or driver",
        ),
        ask="Does it also happen with a lower power limit (sudo nvidia-smi -pl WATTS)?",
    ),
    Topic(
        "GPU memory stays in use although no program is seen that uses it",
        (
            "memory|size gpu|smi held|full gone|-process !how !-free",
            "memory|size held|full after gone",
            "memory gpu -free gone",
        ),
        weight=1,
        steps=(
            WHO_HOLDS_MEMORY,
            Remedy(
                "List every process that has the GPU open, also of other users.",
                shell_script("sudo fuser -v /dev/nvidia*"),
            ),
        ),
        candidates=(
            "a process that did not end: a notebook's kernel, or a worker of a data loader",
            "a process of another user or in another container, which nvidia-smi does not list",
            "the display",
        ),
        ask="What does `sudo fuser -v /dev/nvidia*` list?",
    ),
    Topic(
        "the first steps take longest",
        ("first step slow|minutes",),
        weight=1,
        steps=(PROFILE,),
        candidates=(
            "compilation (XLA, tf.function, torch.compile), and the choice of cuDNN's algorithms",
            "GPU code that the driver compiles, because the build has none for this GPU",
            "data that is read from the disk for the first time",
        ),
        ask="For how long, and again at every start of the program?",
    ),
    Topic(
        "the program is slow although the GPU is busy",
        ("gpu|util busy slow !memory",),
        weight=1,
        steps=(PROFILE, CHECK),
        candidates=(
            "float32 without TF32 or mixed precision",
            "many small kernels: a GPU counts as busy while any part of it works",
            "a GPU that is slowed down by heat or by its power limit",
            "another program on the same GPU",
        ),
        ask="How long does one step take, and how much power does the GPU draw then (nvidia-smi)?",
    ),
    Topic(
        "the GPU gets hot, or slows down",
        ("hot gpu",),
        weight=2,
        steps=(
            Remedy("See whether its clock is limited, and by what.", command_line("whygpu check")),
            page("WG111"),
        ),
        candidates=(
            "heat, which lowers the clock",
            "a power limit",
            "a full case, or a fan that fails",
        ),
        ask="What does `nvidia-smi -q -d PERFORMANCE,TEMPERATURE` print while it works?",
    ),
    Topic(
        "nvidia-smi lists no process of a program that works",
        ("smi|gpu -process", "smi process -run|-see|idle", "smi run -see !gpu"),
        wants="smi run",
        weight=1,
        steps=(CHECK, WHICH_DEVICE),
        candidates=(
            "the work is done on the CPU",
            "nvidia-smi was run in a container, where it lists no processes",
            "the program works on the GPU of another machine",
        ),
        ask="Are the GPU's memory and its load higher while the program works than without it?",
    ),
    Topic(
        "a framework takes long to import",
        ("import slow|minutes !-slow !fail",),
        weight=1,
        steps=(
            Remedy(
                "Let Python print how long each module takes.",
                shell_script(
                    "python -X importtime -c 'import FRAMEWORK' 2>&1 | sort -t '|' -k 2 -n"
                ),
            ),
        ),
        candidates=(
            "files that are read from a slow disk, or from the network",
            "a virus scanner that reads each of them",
            "other packages that the framework imports if they are installed",
        ),
        ask="Does the second import in a row take as long as the first?",
    ),
    Topic(
        "several GPUs are slower than one, or no faster",
        ("many slow|-slow !low !idle",),
        wants="gpu than slower",
        steps=(PROFILE, ON_SEVERAL_GPUS),
        candidates=(
            "a batch that is divided: each GPU gets too little work at once",
            "gradients that are exchanged over a slow connection",
            "input that is read too slowly for several GPUs",
        ),
        ask="Is the batch for each GPU as large as with one, and what does `nvidia-smi topo -m` "
        "print?",
    ),
    Topic(
        "one GPU is slower than another",
        ("gpu slow than !cpu !many",),
        wants="old slower model",
        steps=(
            Remedy(
                "Measure the GPU itself, without a framework's program.",
                command_line("whygpu check --stress"),
            ),
            PROFILE,
        ),
        candidates=(
            "input, or code on the CPU, that the GPU waits for",
            "a build without code for the newer GPU",
            "a GPU that is slowed down by heat, power or its slot",
        ),
        ask="Is the newer one busy while it works (nvidia-smi)?",
    ),
    Topic(
        "the input is too slow",
        ("input slow|low",),
        weight=1,
        steps=(PROFILE,),
        candidates=("too few worker processes", "decoding on the CPU", "storage that is slow"),
        ask="How busy are the cores and the GPU while it trains?",
    ),
    Topic(
        "releases of CUDA, of the driver or of the framework do not match",
        (
            "cuda|cudnn|driver release|nvcc|number incompatible|-match",
            "cuda|cudnn|driver incompatible framework !result",
            "cuda|cudnn driver incompatible",
        ),
        weight=1,
        steps=(CHECK, PLAN),
        candidates=(
            "CUDA libraries of another release, found before those of the framework",
            "a driver that is too old for the CUDA of the framework",
        ),
        ask="Which two releases does the message name?",
    ),
    Topic(
        "a container does not see the GPU",
        (
            "container gpu|smi -see|-use|-work|-run|-gpu|none !terminal",
            "container asked none",
        ),
        weight=2,
        steps=(
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
        candidates=(
            "a container that was started without --gpus all",
            "NVIDIA's container toolkit, which is not installed on the host or not registered",
            "an image without CUDA libraries, or with a CPU build",
        ),
        ask="Does `nvidia-smi` work inside of the container?",
    ),
    Topic(
        "a program sees the GPU in one place and not in another",
        ("notebook terminal",),
        wants="gpu see -see work -work use -use -gpu",
        weight=1,
        steps=(
            Remedy(
                "Print the interpreter in both places. If they differ, select the right one.",
                command_line("python -c 'import sys; print(sys.executable)'"),
            ),
            Remedy("Check the other interpreter.", command_line("whygpu check --python PATH")),
        ),
        candidates=(
            "two interpreters, with other packages",
            "variables (LD_LIBRARY_PATH, CUDA_VISIBLE_DEVICES) that only a shell sets",
        ),
        ask="Which interpreter does each of them use?",
    ),
    Topic(
        "the GPU has not worked since something was updated",
        (
            "after update gpu|smi -work|-see|-use|-run|broke !number",
            "work until update gpu|smi|driver|framework",
        ),
        weight=1,
        steps=(
            CHECK,
            Remedy(
                "If a snapshot from before exists, let whygpu name the difference that matters.",
                command_line("whygpu diff BEFORE.json"),
            ),
        ),
        candidates=(
            "a driver of which only one part was updated, until a restart",
            "a framework that was replaced by a build without GPU support",
            "a kernel for which the driver's module was not built",
        ),
        ask="What was updated: the driver, the kernel, or packages?",
    ),
    Topic(
        "a program fails on the GPU and works on the CPU",
        ("cpu work|run gpu fail|crash !nan !differ",),
        steps=(WHOLE_OUTPUT, CHECK),
        candidates=(
            "CUDA libraries or a cuDNN of another release than the framework needs",
            "memory that is used up",
            "an index out of range, which the GPU reports later and in other words",
        ),
        ask="What is the last line of the traceback, and the first error above it?",
    ),
    Topic(
        "the program was ended, without a message",
        (
            "end|crash|gone|restart silent !computer",
            "crash|end|restart notebook|run|step|person|plea !oom !computer !gpu",
        ),
        wants="silent",
        weight=1,
        steps=(
            Remedy(
                "See whether the kernel ended it, because main memory was used up.",
                shell_script("sudo dmesg | grep -i 'out of memory'"),
            ),
            Remedy(
                "Let Python print where it crashes, and explain that.",
                shell_script("python -X faulthandler PROGRAM.py 2>&1 | whygpu explain"),
            ),
        ),
        candidates=(
            "main memory that was used up",
            "a crash in native code, such as a CUDA or cuDNN library",
            "a limit of a scheduler or a container",
        ),
        ask="What is its exit code (`echo $?`)? 137: it was killed. 139: it crashed.",
    ),
    Topic(
        "a recurrent layer does not use cuDNN",
        ("recurrent cudnn -use|/cudnn|-work|-see|-cudnn",),
        weight=3,
        steps=(page("WG917"),),
    ),
    Topic(
        "the GPU's memory is not freed",
        (
            "memory grow !session",
            "memory -free|-learn",
            "memory full|take each",
            "grow person gpu run",
        ),
        wants="gpu each step validation",
        weight=1,
        steps=(
            Remedy(
                "TensorFlow gives memory back only when its process ends: do each round in a "
                "process of its own (multiprocessing with the method spawn)."
            ),
            LIMIT_MEMORY,
            WHOLE_OUTPUT,
        ),
        candidates=(
            "the framework keeps freed memory for its next use, which is no leak",
            "models, results or graphs of earlier rounds that are still referred to",
        ),
        ask="Does the memory that is in use grow from round to round?",
    ),
    Topic(
        "the framework takes all of the GPU's memory",
        ("memory all take|use|full !how !nan !util", "memory gpu full !util", "why size take"),
        wants="gpu framework why",
        steps=(LIMIT_MEMORY,),
        candidates=(
            "TensorFlow and JAX reserve nearly all of it when they start, whatever a model needs",
        ),
        ask="Does another program need that memory, or does this one run out of it?",
    ),
    _OUT_OF_MEMORY._replace(
        says="memory runs out in the validation or the inference, and not in the training",
        needs=("oom validation",),
        candidates=(
            "in PyTorch, a validation that is not in `with torch.no_grad():` keeps what only a "
            "backward pass needs",
            "results of the batches that are kept on the GPU: append loss.item() or out.cpu()",
            "a larger batch or larger inputs than in the training",
        ),
        ask="In which call does it run out, and is that call within torch.no_grad()?",
    ),
    _OUT_OF_MEMORY,
    SEES_NONE,
    Topic(
        "the GPU is not supported",
        ("gpu -support|unsupported !operation", "cuda number -work !driver"),
        wants="framework model",
        weight=1,
        steps=(
            Remedy(
                "Let whygpu find the release that works with that GPU.",
                command_line("whygpu plan FRAMEWORK --gpu NAME"),
            ),
            CHECK,
        ),
        candidates=(
            "a release of the framework that is older than the GPU",
            "a release that no longer has code for an old GPU",
        ),
        ask="Which release of the framework is it, and which GPU?",
    ),
    Topic(
        "the program does not go on",
        ("hang !part !result !computer", "-goon !result"),
        wants="gpu run many first when",
        steps=(
            Remedy(
                "Look at what it waits for, while it does.",
                shell_script("pip install py-spy && py-spy dump --pid PID"),
            ),
        ),
        candidates=(
            "GPU code that is compiled at the first start, for minutes",
            "processes that wait for each other (NCCL, the workers of a data loader)",
            "memory that TensorFlow waits for",
        ),
        ask="Does it use the CPU or the GPU while it hangs (top, nvidia-smi)?",
    ),
    ONE_OF_SEVERAL,
    IDLE,
    NOT_USED,
    SLOW,
    FAILS,
    Topic(
        "the model does not learn",
        ("-learn !memory", "result hang"),
        weight=-1,
        steps=(
            Remedy(
                "See whether it learns on the CPU.",
                command_line("whygpu compare PROGRAM.py:build_model --lanes cpu,gpu"),
            ),
        ),
        candidates=(
            "a learning rate, a loss or labels that do not fit, which is the same on every device",
            "a GPU that computes wrongly",
        ),
        ask="Does the same program learn on the CPU?",
    ),
)

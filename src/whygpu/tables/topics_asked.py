"""What people ask: how something is done, which releases they need, what a difference means."""

from __future__ import annotations

from whygpu.model.finding import Remedy
from whygpu.model.remedy import command_line, shell_script
from whygpu.tables.advice import (
    CHECK,
    LIMIT_MEMORY,
    ON_ANOTHER_GPU,
    ON_SEVERAL_GPUS,
    PLAN,
    WHICH_DEVICE,
    WHO_HOLDS_MEMORY,
    page,
    tutorial,
)
from whygpu.tables.topics import Topic

HOW_TO_USE = Topic(
    "how to let a program use the GPU",
    ("how gpu use|run|enable|force|work !cpu !-use !-see !-run !/gpu !oom !session",),
    steps=(
        CHECK,
        Remedy(
            "Run it on the GPU, or let it end at once with the reason why it cannot.",
            command_line("whygpu run --require gpu -- python PROGRAM.py"),
        ),
    ),
)
_WHETHER_USED = Topic(
    "whether the GPU is used",
    (
        "whether question gpu use|run|work|see !how !know !many !install !need !-use !-see "
        "!-run !-gpu !ignore !fail !memory !slow",
    ),
    steps=(CHECK, WHICH_DEVICE),
    ask="Does `nvidia-smi` list the program among the processes of the GPU while it works?",
)

WHICH_FIT = Topic(
    "which releases of a framework, of CUDA and of the driver fit together",
    (
        "which|match framework cuda|cudnn|driver !-see !slow !fail !tfgpu",
        "whether support framework gpu !-support",
        "whether framework cuda number !-see !-use !slow !install",
        "whether|question framework python work|run|use|support|match !-work !-see !-run !-use",
        "framework cuda number question !-see !-use !slow !fail",
    ),
    wants="need release number choose",
    steps=(PLAN,),
)
HOW_WITHOUT_GPU = Topic(
    "how to run a program without the GPU",
    (
        "how /gpu !/memory !many !cudnn !fail !oom !install",
        "how cpu use|run|only|force|on|instead !gpu",
        "how cpu use|run|only|force|on gpu busy|-gpu",
        "how cpu -gpu",
    ),
    wants="disable use cpu force only",
    steps=(
        Remedy(
            "Run it on the CPU; nothing in the program has to change.",
            command_line("whygpu run --device cpu -- python PROGRAM.py"),
        ),
        Remedy(
            "Without whygpu: hide all GPUs before the program starts.",
            shell_script("CUDA_VISIBLE_DEVICES=-1 python PROGRAM.py"),
        ),
    ),
)
ABOUT_GPU = _WHETHER_USED._replace(
    says="about the GPU", needs=("question gpu|cuda|cpu", "question device"), weight=-2
)

QUESTIONS: tuple[Topic, ...] = (
    Topic(
        "how to use a GPU that does not meet the requirements",
        (
            "ignore|disable requirement how|session|gpu !cudnn",
            "ignore|-ignore requirement",
            "how force requirement",
        ),
        weight=3,
        steps=(
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
    Topic(
        "how to run a program without cuDNN",
        ("how /cudnn|-cudnn !recurrent",),
        weight=1,
        steps=(
            Remedy(
                "PyTorch, and the recurrent layers of Keras, work without it on the same GPU. "
                "TensorFlow's convolutions have no such switch.",
                command_line("whygpu run --cudnn off -- python PROGRAM.py"),
            ),
            Remedy(
                "Or run everything on the CPU.",
                command_line("whygpu run --device cpu -- python PROGRAM.py"),
            ),
            tutorial("without-cudnn"),
        ),
    ),
    Topic(
        "why nvidia-smi and other programs show different CUDA releases",
        (
            "smi|driver nvcc number|release|differ !none !fail !-work",
            "smi cuda differ release",
            "smi nvcc !fail !none",
            "smi|nvcc framework number|release !-see !-use !slow !fail !none !how",
            "install cuda framework number release !-see !-use !slow !fail !none",
        ),
        weight=1,
        steps=(
            Remedy(
                "This is usual, and no fault by itself: nvidia-smi shows the newest CUDA that the "
                "driver can run, nvcc the toolkit that is installed, and a framework the CUDA that "
                "it was built with. See whether they fit together.",
                command_line("whygpu check"),
            ),
        ),
    ),
    WHICH_FIT,
    Topic(
        "about the package tensorflow-gpu",
        ("tfgpu which|deprecated|differ|instead|fail|whether|-see|-install", "tfgpu install !how"),
        weight=1,
        steps=(
            Remedy(
                "It was removed. The package tensorflow has the GPU code; pip installs the CUDA "
                "libraries with tensorflow[and-cuda]. See the release for this machine.",
                command_line("whygpu plan tensorflow"),
            ),
        ),
    ),
    Topic(
        "about what must be installed beside a framework",
        (
            "need|whether|question install cuda|cudnn|nvcc !which !fail !-see !tfgpu",
            "gpu /cuda|/cudnn install",
            "whether need cuda|cudnn|nvcc !batch !which",
        ),
        wants="separate whether need",
        steps=(
            Remedy(
                "The driver always. CUDA and cuDNN come with PyTorch, and with TensorFlow and JAX "
                "if they are installed with an extra (tensorflow[and-cuda], jax[cuda13]). See what "
                "this machine has, and what is missing.",
                command_line("whygpu check"),
            ),
            PLAN,
        ),
    ),
    Topic(
        "how to install a framework for the GPU",
        ("how install framework gpu|cuda|tfgpu !whether",),
        steps=(PLAN, CHECK),
    ),
    Topic(
        "which batch fits into the GPU's memory",
        (
            "batch which|max|how memory|gpu|size !oom !slow !first",
            "need memory which|max|how !oom",
            "batch size !oom !slow !first",
            "which|max|whether memory|size fits !oom",
        ),
        weight=1,
        steps=(
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
    Topic(
        "how to free GPU memory",
        ("how memory free",),
        weight=1,
        steps=(
            WHO_HOLDS_MEMORY,
            Remedy(
                "A process gives its memory back when it ends; in a notebook, restart the kernel. "
                "torch.cuda.empty_cache() only gives back what no tensor uses, and TensorFlow and "
                "JAX give nothing back before they end."
            ),
        ),
    ),
    Topic(
        "how to limit the GPU memory that a program takes",
        ("how memory limit|take|/memory !oom",),
        wants="all",
        steps=(LIMIT_MEMORY,),
    ),
    HOW_WITHOUT_GPU,
    Topic(
        "how to use several GPUs at once",
        ("how many use|run|on|split|gpu !only !one !slow !fail !choose",),
        weight=1,
        steps=(ON_SEVERAL_GPUS, ON_ANOTHER_GPU),
    ),
    Topic(
        "how to choose the GPU that a program uses",
        (
            "how|which gpu choose !slow !release !cudnn !number",
            "how gpu nth|one !memory",
            "choose nth",
        ),
        wants="use run on only one nth",
        weight=1,
        steps=(
            Remedy(
                "Run it on one GPU, by its number in nvidia-smi.",
                command_line("whygpu run --device gpu:1 -- python PROGRAM.py"),
            ),
        ),
    ),
    Topic(
        "how to find out whether a program uses its GPU",
        ("know gpu use|run how|whether !many !-know !memory",),
        weight=2,
        steps=(CHECK, WHICH_DEVICE),
    ),
    Topic(
        "how to find out what a framework can use",
        ("how|whether know gpu|cudnn !-know !memory !many",),
        weight=1,
        wants="see support install",
        steps=(CHECK,),
    ),
    Topic(
        "how to get the same result in every run",
        (
            "determinism how|each|gpu|run !than !fail",
            "differ result each !cpu",
            "-same result each !cpu",
        ),
        wants="differ result each",
        weight=3,
        steps=(
            Remedy(
                "Set the seeds, and ask for deterministic operations; these are slower. "
                "TensorFlow: "
                "tf.config.experimental.enable_op_determinism(). PyTorch: "
                "torch.use_deterministic_algorithms(True), with CUBLAS_WORKSPACE_CONFIG=:4096:8. "
                "JAX: XLA_FLAGS=--xla_gpu_deterministic_ops=true."
            ),
        ),
    ),
    Topic(
        "about a processor without AVX",
        ("avx old|-support|-work|-use", "-avx|/avx"),
        weight=1,
        steps=(page("WG306"),),
    ),
    Topic(
        "about a GPU of AMD or Intel",
        ("amd framework !cpu",),
        wants="gpu how whether which work -work use",
        weight=1,
        steps=(page("WG803"),),
    ),
    _WHETHER_USED,
    HOW_TO_USE,
    ABOUT_GPU,
)

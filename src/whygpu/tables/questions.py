"""What people ask: how something is done, which releases they need, what a difference means."""

from __future__ import annotations

from whygpu.model.finding import Remedy
from whygpu.model.remedy import command_line, shell_script
from whygpu.tables.words_of_people import (
    CHECK,
    FRAMEWORK,
    GPU,
    HOW,
    LIMIT_MEMORY,
    MANY_GPUS,
    MEMORY,
    ON_ANOTHER_GPU,
    ON_SEVERAL_GPUS,
    PLAN,
    USE,
    WHICH_DEVICE,
    WHO_HOLDS_MEMORY,
    Complaint,
    any_case,
    one_of,
    page,
    tutorial,
    without,
)

_ON_CPU = (
    Remedy(
        "Run it on the CPU; nothing in the program has to change.",
        command_line("whygpu run --device cpu -- python PROGRAM.py"),
    ),
    Remedy(
        "Without whygpu: hide all GPUs before the program starts.",
        shell_script("CUDA_VISIBLE_DEVICES=-1 python PROGRAM.py"),
    ),
)
_LEAVES_GPU = without(r"(?:GPUs?|CUDA(?! out)|graphics? cards?)")
_WHAT_TO_INSTALL = Complaint(
    (
        any_case(
            r"(?<!\w)(?:do|must|should|need)(?!\w)[^\n]{0,40}install"
            r"|GPUs?(?!\w)[^\n]{0,20}without (?:installing )?(?:CUDA|cuDNN)"
        ),
        one_of("CUDA", "cuDNN", "toolkit"),
        any_case(r"separate|manual|myself|too|also|already|\?|without"),
    ),
    "about what must be installed beside a framework",
    (
        Remedy(
            "The driver always. CUDA and cuDNN come with PyTorch, and with TensorFlow and JAX if "
            "they are installed with an extra (tensorflow[and-cuda], jax[cuda13]). See what this "
            "machine has, and what is missing.",
            command_line("whygpu check"),
        ),
        PLAN,
    ),
)

QUESTIONS: tuple[Complaint, ...] = (
    Complaint(
        (HOW, without("cuDNN")),
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
            tutorial("without-cudnn"),
        ),
    ),
    Complaint(
        (
            any_case(r"nvidia-smi|driver"),
            any_case(
                r"(?<!\w)nvcc|version\.cuda|toolkit|(?<!\w)cuda version[^\n]{0,60}(?<!\w)cuda"
            ),
            one_of("differ-", "mismatch-", "not the same", "but", "while", "vs", "whereas"),
            any_case(r"version|release|(?<![\d.])(?:8|9|1[0-3])\.\d(?![\d.])"),
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
            one_of("which", "what", "matching", "right", "correct", "compatib-"),
            one_of("versions?", "releases?", "CUDA", "cuDNN", "driver"),
            one_of("CUDA", "cuDNN", "drivers?", "GPUs?", "RTX", "GTX", "tensorflow-gpu"),
            one_of(
                *("for", "needs?", "compatib-", "support-", "install-", "requires?", "matching"),
                *("match", "works? with", "should", "fits?"),
            ),
            FRAMEWORK,
        ),
        "which releases of a framework, of CUDA and of the driver fit together",
        (PLAN,),
    ),
    Complaint(
        (
            one_of("tensorflow-gpu"),
            one_of("which", "vs", "or", "difference", "deprecated", "removed", "instead"),
            one_of("install-", "packages?", "tensorflow"),
        ),
        "about the package tensorflow-gpu",
        (
            Remedy(
                "It was removed. The package tensorflow has the GPU code; pip installs the CUDA "
                "libraries with tensorflow[and-cuda]. See the release for this machine.",
                command_line("whygpu plan tensorflow"),
            ),
        ),
    ),
    _WHAT_TO_INSTALL,
    Complaint(
        (HOW, one_of("install-", "set ?up", "setting up"), FRAMEWORK, GPU),
        "how to install a framework for the GPU",
        (PLAN, CHECK),
    ),
    Complaint(
        (
            any_case(
                r"(?<!\w)(?:how (?:large|big|much|many)|what|which|maxim\w{1,3}|max|largest|biggest"
                r"|highest|optimal|will)(?!\w)"
            ),
            any_case(r"batch(?:[ _-]?size)?(?!\w)|(?<!\w)fit(?!\w)|(?:memory|VRAM)[^\n]{0,30}need"),
            one_of("GPUs?", "memory", "VRAM", "GB", r"\d{1,3} ?GB", "RAM"),
            # Who has run out already asks why.
            any_case(r"^(?![^\n]*(?:(?<!\w)OOM(?!\w)|out of (?:\w{2,6} )?memory|Exhausted))"),
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
            HOW,
            MEMORY,
            one_of("free", "freeing", "release", "releasing", "clear-", "empty", "reset"),
        ),
        "how to free GPU memory",
        (
            WHO_HOLDS_MEMORY,
            Remedy(
                "A process gives its memory back when it ends; in a notebook, restart the kernel. "
                "torch.cuda.empty_cache() only gives back what no tensor uses, and TensorFlow and "
                "JAX give nothing back before they end."
            ),
        ),
    ),
    Complaint(
        (
            HOW,
            MEMORY,
            one_of(
                "limit-", "restrict-", "reduce", "cap", "prevent-", "stop", "control", "fraction"
            ),
        ),
        "how to limit the GPU memory that a program takes",
        (LIMIT_MEMORY,),
    ),
    Complaint((HOW, _LEAVES_GPU), "how to run a program without the GPU", _ON_CPU),
    Complaint(
        (
            HOW,
            any_case(
                r"^(?![^\n]*(?<!\w)(?:GPU|CUDA))[^\n]*(?<!\w)CPUs?(?!\w)"
                r"|(?<!\w)CPU(?: only)?,? (?:instead of|rather than|(?:and )?not)(?!\w)[^\n]{0,20}"
                r"GPU"
            ),
            one_of(*USE, "on", "only", "force", "forcing", "switch"),
        ),
        "how to run a program without the GPU",
        _ON_CPU,
    ),
    Complaint(
        (HOW, one_of(*MANY_GPUS), one_of(*USE, "on", "distribut-", "split-", "parallel-", "scale")),
        "how to use several GPUs at once",
        (ON_SEVERAL_GPUS, ON_ANOTHER_GPU),
    ),
    Complaint(
        (
            HOW,
            GPU,
            one_of(
                *("select", "choose", "pick", "specif-", "particular", "single", "second GPU"),
                *("one", r"only (?:the )?GPUs? ?[:#]?\d", r"GPUs? ?[:#]?\d[\d ,and&]{0,12} only"),
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
            one_of("how", "check", "tell", "know", "verify", "confirm", "sure", "find out"),
            one_of("if", "whether"),
            GPU,
            one_of(*USE),
        ),
        "how to find out whether a program uses its GPU",
        (CHECK, WHICH_DEVICE),
    ),
    Complaint(
        (
            HOW,
            one_of("check", "tell", "know", "see", "verify", "test", "find out", "list"),
            GPU,
            one_of("has", "have", "with", "support-", "built", "install-", "available", "enabled"),
        ),
        "how to find out what a framework can use",
        (CHECK,),
    ),
    Complaint(
        (
            one_of(
                *("reproducib-", "deterministic", "determinism", "same results?"),
                r"differ\w{0,7} (?:results?|loss(?:es)?|accurac\w{1,3}|outputs?) (?:\w{1,8} )?"
                r"(?:each|every)",
            ),
            one_of("GPUs?", "CUDA", "seeds?", "each", "every", "how", "runs?"),
            any_case(r"^(?![^\n]*(?<!\w)(?:CPU|error)(?!\w))"),
        ),
        "how to get the same result in every run",
        (
            Remedy(
                "Set the seeds, and ask for deterministic operations; these are slower. "
                "TensorFlow: "
                "tf.config.experimental.enable_op_determinism(). PyTorch: "
                "torch.use_deterministic_algorithms(True), with CUBLAS_WORKSPACE_CONFIG=:4096:8. "
                "JAX: XLA_FLAGS=--xla_gpu_deterministic_ops=true."
            ),
        ),
    ),
    Complaint(
        (one_of("AVX2?", r"AVX[-_]?512\w{0,5}"), one_of("without", "no", "lacks?", "not", "old")),
        "about a processor without AVX",
        (page("WG306"),),
    ),
    Complaint(
        (
            one_of(
                "AMD", "Radeon", r"RX ?\d{3,4}\w{0,4}", "Intel", r"Arc [AB]\d{3}", "ROCm", "XPU"
            ),
            one_of("AMD", "Radeon", r"RX ?\d{3,4}\w{0,4}", r"Arc [AB]\d{3}", "GPUs?", "Arc"),
            FRAMEWORK,
            any_case(
                r"^\W{0,3}(?:[\w.-]{1,20} ){2,7}[\w.-]{1,20}\W{0,3}$|\?$|(?<!\w)(?:how|can|does"
                r"|which)(?!\w)"
            ),
            any_case(r"^(?![^\n]*(?<!\w)(?:i[3579]|ryzen|xeon|cpu))"),
        ),
        "about a GPU of AMD or Intel",
        (page("WG803"),),
    ),
)

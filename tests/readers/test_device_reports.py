"""What programs say of the devices they have and use."""

from __future__ import annotations

from tests.cases import each
from whygpu.readers.log import read_text


@each(
    ("line", "says"),
    [
        ("CUDA available: False", "no-gpu"),
        ("Is CUDA available? No", "no-gpu"),
        ("cuda_available = False", "no-gpu"),
        ("torch.cuda.is_available(): False", "no-gpu"),
        ("torch.cuda.device_count() = 0", "no-gpu"),
        ("Num GPUs Available:  0", "no-gpu"),
        ("Number of available GPUs: 0", "no-gpu"),
        ("0 Physical GPUs, 0 Logical GPU", "no-gpu"),
        ("list_physical_devices('GPU') []", "no-gpu"),
        ("GPUs: []", "no-gpu"),
        ("GPU available: False, used: False", "no-gpu"),
        ("No GPU/TPU found, falling back to CPU.", "no-gpu"),
        ("GPU not found, continuing", "no-gpu"),
        ("There are non-GPU devices in `tf.distribute.Strategy`, not using nccl", "no-gpu"),
        ("Using MirroredStrategy with devices ('/job:localhost/device:CPU:0',)", "no-gpu"),
        ("'pin_memory' argument is set as true but no accelerator is found", "no-gpu"),
        ("I see CUDA available: False. Why?", "no-gpu"),
        ("GPU available: True (cuda), used: False", "gpu-unused"),
        ("GPU available but not used. Set the --gpus flag.", "gpu-unused"),
        ("Using device: cpu", "on-cpu"),
        ("Using cpu device", "on-cpu"),
        ("device = cpu", "on-cpu"),
        ("device(type='cpu'): device=device(type='cpu')", "on-cpu"),
        ("Running on the CPU", "on-cpu"),
        ("[CpuDevice(id=0)]", "on-cpu"),
        ("Ultralytics 8.0.20 Python-3.10 torch-2.1.0+cpu CPU", "on-cpu"),
        ("Using device: cuda:0", "on-gpu"),
        ("[CudaDevice(id=0)]", "on-gpu"),
        ("GPU available: True (cuda), used: True", "on-gpu"),
        ("Did not find any GPU, using the CPU.", "no-gpu"),
        ("Please install GPU version of TF", "no-gpu"),
        ('device_type: "CPU"', "no-gpu"),
        ("FP16 is not supported on CPU; using FP32 instead", "on-cpu"),
        ("CUDA available: True", "gpu"),
        ('device_type: "GPU"', "gpu"),
        ("Num GPUs Available:  2", "gpu"),
    ],
)
def test_a_program_says_which_devices_it_has(line: str, says: str) -> None:
    assert [report.says for report in read_text(line).reports] == [says]


@each(
    "line",
    [
        "TPU available: False, using: 0 TPU cores",
        "It fails. Is CUDA available: False?",
        "It will use a generic GPU kernel as fallback when running on GPU.",
        "Tried to allocate 2.00 GiB (GPU 0; 24.00 GiB total capacity)",
        "GPU 0: Tesla T4",
        "MatMul: (MatMul): /job:localhost/replica:0/task:0/device:CPU:0",
        "Using CPU threads: 8",
        "This TensorFlow binary is optimized to use available CPU instructions",
        "    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')",
        "Epoch 1/2 loss: 0.1",
        "offload_param=OffloadConfig(device='cpu', pin_memory=True)",
        "Unable to initialize backend 'cuda': no such file",
        "Unable to initialize platform gpu",
        "False",
        "0",
    ],
)
def test_other_lines_say_nothing_of_it(line: str) -> None:
    assert not read_text(line).reports


def test_work_on_a_gpu_takes_back_what_was_said_before() -> None:
    assert not read_text("Using device: cpu\nUsing device: cuda:0").without_gpu()
    assert not read_text("Num GPUs Available: 0\nCUDA available: True").without_gpu()
    assert read_text("Using device: cpu\nCUDA available: True").without_gpu()


@each(
    ("asked", "value", "says"),
    [
        (">>> torch.cuda.is_available()", "False", ["no-gpu"]),
        (">>> torch.cuda.is_available()", "True", ["gpu"]),
        ("print(torch.cuda.is_available())", "\nFalse", ["no-gpu"]),
        (">>> torch.cuda.device_count()", "0", ["no-gpu"]),
        (">>> tf.config.list_physical_devices('GPU')", "[]", ["no-gpu"]),
        ("tf.config.experimental.list_logical_devices('GPU')", "[]", ["no-gpu"]),
        ("tf.test.is_gpu_available()", "  False", ["no-gpu"]),
        ("torch.cuda.is_available:", "False", ["no-gpu"]),
        # Below the value of another expression, and below records of the framework.
        ("print(tf.__version__, tf.config.list_physical_devices('GPU'))", "2.13.0\n[]", ["no-gpu"]),
        ("tf.test.is_gpu_available()", "W gpu_device.cc:1] a record\nFalse", ["no-gpu"]),
        # The value of something else, or of an expression further up.
        (">>> torch.backends.mps.is_built()", "False", []),
        (">>> torch.cuda.is_available()\n>>> model.training", "False", []),
        ("if torch.cuda.is_available():", "False", []),
        # No value: what the line says itself counts.
        (">>> torch.cuda.is_available()", "Using device: cpu", ["on-cpu"]),
    ],
)
def test_the_value_of_a_question_about_gpus_stands_on_the_next_line(
    asked: str, value: str, says: list[str]
) -> None:
    log = read_text(f"{asked}\n{value}\n")
    assert [report.says for report in log.reports] == says


def test_a_value_answers_one_question_only() -> None:
    log = read_text("torch.cuda.is_available()\nFalse\nFalse\n")
    assert [(report.line, report.says) for report in log.reports] == [(2, "no-gpu")]


ARTICLE = (
    "Frameworks look for devices when they start. If no GPU is available, they work on the "
    "processor instead, which takes longer. Some people prefer that, and keep using the CPU for "
    "small models. The documentation describes how devices are chosen, and which settings change "
    "the choice of a framework on every system."
)


def test_an_article_that_speaks_of_devices_reports_none() -> None:
    assert read_text(ARTICLE).reports == ()
    assert read_text("no GPU is available").reports != ()
    (report,) = read_text(f"{ARTICLE} Here torch.cuda.is_available() returns False.").reports
    assert report.says == "no-gpu"

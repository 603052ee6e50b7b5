"""What people write around output, and beside it: titles, forms, values, versions, attempts."""

from __future__ import annotations

from tests.cases import each
from whygpu import api
from whygpu.readers.log import read_text

WORKING = "Epoch 1/2\n100/100 [====] - 3s 30ms/step - loss: 0.5\nEpoch 2/2\n"
HARMLESS = (
    "2024-01-02 10:00:00.000001: W tensorflow/compiler/tf2tensorrt/utils/py_utils.cc:38] TF-TRT "
    "Warning: Could not find TensorRT\n"
)
NO_LIBRARY = (
    "2022-01-02 10:00:00.000001: W tensorflow/stream_executor/platform/default/dso_loader.cc:64] "
    "Could not load dynamic library '{0}'; dlerror: {0} not found\n"
)
SKIPPED = (
    "2023-05-02 10:00:01.000001: W tensorflow/core/common_runtime/gpu/gpu_device.cc:1956] Cannot "
    "dlopen some GPU libraries. Please make sure the missing libraries mentioned above are "
    "installed properly if you would like to use GPU.\nSkipping registering GPU devices...\n"
)


def roots(text: str) -> list[str]:
    return [finding.cause for finding in api.explain(text).root_causes]


@each(
    ("text", "understood"),
    [
        ("i got a new laptop. One epoch takes longer on the GPU than on the CPU\n", "longer on"),
        ("Why is it so slow?\n", "is slow"),
        ("When I start it,\nit's stuck at the first epoch\n", "does not go on"),
        ("One epoch takes 6 minutes, why?\n", "is slow"),
        ("I restored it and now I get OOM errors.\n", "memory runs out"),
        ("I deleted my model, and nothing will flush the GPU memory\n", "is not freed"),
        ("Why are all labels the same?\n", "asks something that no message answers"),
        ("### Current behavior?\n\nThe labels are wrong.\n\n", "report of a fault"),
        ("**Describe the bug**\nThe labels are wrong.\n", "report of a fault"),
    ],
)
def test_a_report_above_work_is_no_tick(text: str, understood: str) -> None:
    explanation = api.explain(text + WORKING)
    assert explanation.verdict == "unknown"
    assert understood in explanation.headline


@each(
    "text",
    [
        "Does this warning matter?\n" + HARMLESS + WORKING,
        "### Current behavior?\n\nA warning at the start.\n" + HARMLESS + WORKING,
    ],
)
def test_a_question_about_harmless_lines_is_answered(text: str) -> None:
    assert api.explain(text).verdict == "nothing-wrong"


@each(
    "text",
    [
        "I want to use a graphics card that I bought, and how is TensorFlow installed",
        "It works in parallel with CPU and GPU. Is a GPU needed?",
        "pip install tensorflow[and-cuda] failed to install, but running it with quotes is fine",
        "I have a GPU. The build from source did not work, so here is my report",
    ],
)
def test_words_that_are_far_apart_are_no_complaint_that_the_gpu_is_unused(text: str) -> None:
    assert "not done on the GPU" not in api.explain(text).headline


@each(
    "text",
    [
        "Why doesn't the program on our new virtual machine use the GPU?",
        "It uses only the CPU, although I have a GPU",
        "My GPU is not being used",
    ],
)
def test_a_gpu_that_is_not_used_is_understood(text: str) -> None:
    assert "not done on the GPU" in api.explain(text).headline


def test_a_sentence_about_gpus_in_general_says_nothing_of_the_program() -> None:
    for text in (
        "It seems slower than other frameworks using GPU for now.",
        "I am using GPU in Colab for my course",
        "could we support training on GPU in the next release",
    ):
        assert api.explain(text).verdict == "unknown", text
    assert api.explain("Using GPU\n" + WORKING).verdict == "nothing-wrong"


@each(
    ("comment", "says"),
    [
        ("# []", "no-gpu"),
        ("# prints: []", "no-gpu"),
        ("# -> [PhysicalDevice(name='/physical_device:GPU:0', device_type='GPU')]", "gpu"),
    ],
)
def test_a_value_in_a_comment_counts(comment: str, says: str) -> None:
    code = f"print(tf.config.list_physical_devices('GPU'))  {comment}"
    for text in (code, f"```python\nimport tensorflow as tf\n{code}\n```\n"):
        assert [report.says for report in read_text(text).reports] == [says]


def test_a_comment_that_is_no_value_is_none() -> None:
    code = "print(tf.config.list_physical_devices('GPU'))  # should list the GPU\n"
    assert read_text(code + "[]\n").reports[-1].line == 2


@each(
    ("text", "version"),
    [
        ("tf 2.9, windows 10", "2.9"),
        ("TF2.11.0 on Ubuntu", "2.11.0"),
        ("TF = 2.17.0", "2.17.0"),
        ("Tensorflow V2.11", "2.11"),
        ("conda install tensorflow-gpu=2.7.0", "2.7.0"),
        ("1. TF 1.0: `python -c ...`\n2. TF 2.0: `python -c ...`", None),
        ("utf 2.0", None),
    ],
)
def test_a_release_of_tensorflow_in_short(text: str, version: str | None) -> None:
    assert read_text(text).version_of("tensorflow") == version


def test_an_exception_in_a_sentence_is_read() -> None:
    text = "I get this error in the second epoch: KeyError: 'val_acc'\nI do not have a GPU.\n"
    explanation = api.explain(text)
    assert explanation.verdict == "not-gpu"
    assert "KeyError: 'val_acc'" in explanation.headline


def test_an_installation_that_failed_later_did_not_end_the_program() -> None:
    pip = "$ pip install 'a[b]'\nERROR: ResolutionImpossible: for help visit https://pip.pypa.io\n"
    assert roots(f"$ python a.py\n{SKIPPED}[]\n{pip}")[:1] == ["cuda-runtime-missing"]
    assert api.explain(pip).verdict == "not-gpu"


def test_a_title_is_no_earlier_run() -> None:
    error = "ImportError: DLL load failed: The specified module could not be found."
    text = f"TensorFlow import error\n\nI installed it, but to import it now is my problem\n{error}"
    assert "earlier run" not in api.explain(text).headline


@each(
    ("text", "verdict"),
    [
        ("I have a GPU in my computer.\n", "found"),
        ("My RTX 3060 should do it.\n", "found"),
        ("It is a rented server.\n", "nothing-wrong"),
        ("I have no GPU in my computer.\n", "nothing-wrong"),
    ],
)
def test_work_on_the_cpu_is_a_fault_for_those_who_have_a_gpu(text: str, verdict: str) -> None:
    log = NO_LIBRARY.format("cudart64_110.dll") + "TensorFlow version: 2.9.1\n" + WORKING
    assert api.explain(text + log).verdict == verdict


@each(
    "said",
    [
        "Runtime type is set to GPU (T4).",
        "You are connected to a GPU runtime, but not utilizing the GPU.",
        "I am on a GPU environment.",
        "the hardware accelerator is GPU",
    ],
)
def test_a_hosted_runtime_that_is_said_to_have_a_gpu_was_not_started_without(said: str) -> None:
    none = ">>> tf.config.list_physical_devices('GPU')\n[]\n"
    assert roots(f"On Colab.\n{none}") == ["no-nvidia-driver"]
    assert roots(f"On Colab. {said}\n{none}") == []
    # What CUDA itself says decides.
    refused = "failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected\n"
    assert roots(f"On Colab. {said}\n{refused}")[:1] == ["no-nvidia-driver"]


@each("path", ["tensorflow.py", "/home/me/exp/tensorflow.py", "C:\\Users\\me\\exp\\tensorflow.py"])
def test_a_program_with_the_name_of_a_package(path: str) -> None:
    text = (
        f'Traceback (most recent call last):\n  File "{path}", line 1, in <module>\n'
        '    import addon\n  File "/usr/lib/python3.8/site-packages/addon/__init__.py", line 8, in '
        "<module>\n    @tf.contrib.framework.add_arg_scope\n"
        "AttributeError: module 'tensorflow' has no attribute 'contrib'\n"
    )
    assert roots(text) == ["package-shadowed"]
    assert roots(text.replace("tensorflow.py", "train.py")) == ["session-api-removed-in-tf2"]


FOUND = (
    "2021-01-02 10:00:00.000001: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1555] Found "
    "device 0 with properties:\npciBusID: 0000:01:00.0 name: GeForce RTX {0} computeCapability: {1}"
    "\ncoreClock: 1.665GHz coreCount: 38 deviceMemorySize: 8.00GiB\n"
    "2021-01-02 10:00:00.100001: I tensorflow/stream_executor/platform/default/dso_loader.cc:44] "
    "Successfully opened dynamic library {2}\n"
)


def test_libraries_older_than_the_gpu_matter_beside_work_too() -> None:
    for library in ("cudart64_101.dll", "libcublas.so.10"):
        old = FOUND.format("3070", "8.6", library)
        assert roots(old) == ["compute-capability-too-new"]
        assert roots(old + WORKING) == ["compute-capability-too-new"]
        fits = FOUND.format("2070", "7.5", library)
        assert roots(fits + WORKING) == []


def test_a_release_and_a_gpu_that_are_only_told_are_a_guess() -> None:
    (guess,) = api.explain("tf 2.2 does not use my rtx 3070").root_causes
    assert (guess.cause, guess.confidence) == ("compute-capability-too-new", "possible")
    assert roots("tf 2.10 does not use my rtx 3070") == []
    assert roots("tf 2.2, rtx 3070. How is a tensor reshaped?") == []


def test_steps_from_more_than_a_gpu_has_are_not_the_doing_of_others() -> None:
    ladder = "".join(
        "2021-01-02 10:00:00.100001: I tensorflow/stream_executor/cuda/cuda_driver.cc:801] failed "
        f"to allocate {size}.00G ({size << 30} bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out "
        "of memory\n"
        for size in (40, 36, 32)
    )
    created = (
        "2021-01-02 10:00:00.000001: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1244] "
        "Created TensorFlow device (/job:localhost/replica:0/task:0/device:GPU:0 with {0} MB "
        "memory) -> physical GPU (device: 0, name: {1}, pci bus id: 0000:01:00.0, compute "
        "capability: 7.0)\n"
    )
    assert roots(created.format(40960, "Tesla V100-PCIE-32GB") + ladder) == []
    assert roots(created.format(40960, "A100-SXM4-40GB") + ladder) == ["oom-other-process"]


def test_what_tensorrt_lacks_is_harmless() -> None:
    line = (
        "2023-01-02 10:00:00.000001: W tensorflow/compiler/xla/stream_executor/platform/default/"
        "dso_loader.cc:64] Could not load dynamic library 'libnvinfer.so.7'; dlerror: "
        "libnvrtc.so.11.0: cannot open shared object file: No such file or directory\n"
    )
    assert api.explain(line).verdict == "nothing-wrong"


def test_lists_of_two_processes_are_no_choice_of_the_cpu() -> None:
    cpu = "[PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')]"
    both = cpu[:-1] + ", PhysicalDevice(name='/physical_device:GPU:0', device_type='GPU')]"
    assert roots(f"over SSH:\n{cpu}\nin a terminal:\n{both}\n") == []


def test_a_tpu_is_not_looked_for_among_gpus() -> None:
    (finding,) = api.explain("ValueError: Please provide a TPU Name to connect to.").root_causes
    told = " ".join(remedy.text for remedy in finding.remedies)
    assert "tpu='local'" in told
    assert "the GPU is missing" not in told


def test_a_dll_of_cuda_is_looked_for_by_old_builds_only() -> None:
    told = "TensorFlow 2.13, Windows 10. GPU not found.\n"
    assert roots(told)[:1] == ["windows-native-unsupported"]
    (first, *_) = api.explain(told + NO_LIBRARY.format("cublas64_11.dll")).root_causes
    assert first.cause == "cuda-runtime-missing"
    assert any("CUDA 11.2" in remedy.text for remedy in first.remedies)


def test_an_environment_of_conda_on_windows_is_told_to_use_conda() -> None:
    log = "tf 2.9\n" + NO_LIBRARY.format("cudart64_110.dll")
    for said, expected in (("I use Anaconda.\n", True), ("I use venv.\n", False)):
        (first, *_) = api.explain(said + log).root_causes
        commands = [str(remedy.action) for remedy in first.remedies]
        assert any("cudatoolkit=" in command for command in commands) is expected


def test_an_old_release_is_installed_with_the_numpy_that_it_works_with() -> None:
    text = (
        "C:\\Users\\me> pip install tensorflow-gpu==2.11\nERROR: Could not find a version that "
        "satisfies the requirement tensorflow-gpu==2.11 (from versions: 2.9.3, 2.10.0, 2.10.1)\n"
        "ERROR: No matching distribution found for tensorflow-gpu==2.11\n"
    )
    actions = [str(remedy.action) for remedy in api.explain(text).root_causes[0].remedies]
    assert any("tensorflow-gpu==2.10.1" in action and "numpy<2" in action for action in actions)


ON_GPU = "Using device: cuda:0\n"


@each(
    "text",
    [
        "Do you want to continue from epoch 3? [y/N] y\n" + ON_GPU + WORKING,
        "Proceed ([y]/n)? y\n" + ON_GPU + WORKING,
        ON_GPU + WORKING + "Q: Why is my GPU idle?\nA: no idea\nQ: How do I hide the GPU?\n",
        "There is no state in the folder, so it starts from scratch\n" + ON_GPU + WORKING,
        "Training crashed at step 9 before, resuming it now\n" + ON_GPU + WORKING,
        "The model is not too slow for this\n" + ON_GPU + WORKING,
        "No more errors since the update\n" + ON_GPU + WORKING,
    ],
)
def test_what_a_program_prints_is_no_report(text: str) -> None:
    assert api.explain(text).verdict == "nothing-wrong"


@each(
    "told",
    [
        "It crashed after this",
        "The loss is not going down at all",
        "Memory keeps growing until the end",
        "Wrong predictions on the GPU, correct ones on the CPU",
        "It is slower than on my old GPU",
        "tensorflow ignores my second card",
        "please help, the kernel died after epoch 2",
        "Entrenamiento muy lento con la GPU",
    ],
)
def test_a_report_of_trouble_above_work_is_heard(told: str) -> None:
    seen = api.explain(f"{told}\n{ON_GPU}{WORKING}")
    assert seen.verdict == "unknown"
    assert "works on the GPU" in seen.headline


@each(
    "text",
    [
        "  --no-cuda   do not use the GPU\n  --gpu GPU   which GPU to use\n",
        "Step 1/2 : FROM nvidia/cuda:12.1.0-cudnn8-runtime-ubuntu22.04\nStep 2/2 : RUN make\n",
        "GPU 0 is used by the server\n",
        "the accuracy is stuck at 0.5 on GPU\n",
        "how to freeze a graph for the GPU\n",
    ],
)
def test_words_about_other_things_are_no_symptom(text: str) -> None:
    seen = api.explain(text)
    assert seen.verdict == "unknown"
    assert not any(
        each in seen.headline for each in ("not done on the GPU", "does not go on", "does its work")
    )

"""Statements that a traceback shows: explain knows of them what lint knows."""

from __future__ import annotations

from tests.cases import each
from tests.kit import command_of, explained

GROWTH = "tf.config.experimental.set_memory_growth(physical_devices[0], True)"
IPYTHON = """\
---------------------------------------------------------------------------
IndexError                                Traceback (most recent call last)
<ipython-input-3-3aa5eb0b5ee6> in <module>
      1 found = tf.config.experimental.list_physical_devices('GPU')
----> 2 print(found[0].name)

IndexError: list index out of range
"""


def traceback(statement: str, error: str = "IndexError: list index out of range") -> str:
    return (
        'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n'
        f"    {statement}\n{error}\n"
    )


@each(
    "log",
    [
        traceback(GROWTH),
        traceback(GROWTH.replace("physical_devices", "gpus")),
        traceback("tf.config.experimental.set_memory_growth(device=gpu[0], enable=True)"),
        traceback("tf.config.experimental.set_virtual_device_configuration(gpus[0],"),
        traceback("tf.config.set_visible_devices([gpus[0]], 'GPU')"),
        traceback("first = tf.config.list_physical_devices('GPU')[0]"),
        traceback("if tf.config.list_physical_devices('GPU')[0].name:"),
        traceback(f"{GROWTH}\n    {' ' * 41}~~~~~~~~~~~~~~~~^^^"),
        f"{GROWTH}\nIndexError: list index out of range",
        IPYTHON,
    ],
)
def test_the_first_of_no_gpus(log: str) -> None:
    (finding,) = explained(log).root_causes
    assert finding.cause == "gpu-index-unchecked"
    assert "TensorFlow saw no GPU" in finding.message
    assert "does not show the reason" in finding.message
    assert command_of(finding.remedies[0]) == "whygpu check"


@each(
    ("statement", "words"),
    [
        ("tf.config.set_visible_devices(gpus[2], 'GPU')", "fewer than 3 GPUs"),
        ("tf.config.experimental.set_memory_growth(gpus[args.gpu], True)", "than the program"),
        ("device = jax.devices()[1]", "fewer than 2 devices"),
    ],
)
def test_one_that_is_not_in_the_list(statement: str, words: str) -> None:
    (finding,) = explained(traceback(statement)).root_causes
    assert words in finding.message


@each(
    "statement",
    [
        "x = rows[0]",
        "label = physical_devices_table[0]",
        "tf.config.set_visible_devices(cpus[0], 'CPU')",
        "cpu = tf.config.list_physical_devices('CPU')[0]",
        "this is ) no ( statement _devices",
    ],
)
def test_other_lists_are_not_the_gpus(statement: str) -> None:
    assert explained(traceback(statement)).verdict != "found"


@each(
    ("before", "cause"),
    [
        (
            "2023-02-21 17:12:32.645756: E tensorflow/compiler/xla/stream_executor/cuda/"
            "cuda_driver.cc:267] failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable "
            "device is detected",
            "visible-devices-hides-gpu",
        ),
        (
            "2021-02-21 17:12:32.645756: W tensorflow/stream_executor/platform/default/"
            "dso_loader.cc:60] Could not load dynamic library 'libcudart.so.11.0'; dlerror: "
            "libcudart.so.11.0: cannot open shared object file: No such file or directory",
            "cuda-runtime-missing",
        ),
        (
            "2021-02-21 17:12:32.645756: W tensorflow/stream_executor/platform/default/"
            "dso_loader.cc:60] Could not load dynamic library 'libcudnn.so.8'; dlerror: "
            "libcudnn.so.8: cannot open shared object file: No such file or directory\n"
            "2021-02-21 17:12:32.645757: W tensorflow/core/common_runtime/gpu/gpu_device.cc:1757] "
            "Cannot dlopen some GPU libraries.",
            "cudnn-missing",
        ),
    ],
)
def test_what_else_the_log_says_is_why(before: str, cause: str) -> None:
    explanation = explained(f"{before}\n{traceback(GROWTH)}")
    root = explanation.root_causes[0]
    assert root.cause == cause
    assert root.severity == "error", "the program ended of it"
    (symptom,) = (f for f in explanation.symptoms if f.cause == "gpu-index-unchecked")
    assert symptom.explained_by in {root.code for root in explanation.root_causes}


@each(
    ("module", "name", "right"),
    [
        ("tensorflow._api.v2.config", "set_memory_growth", "tf.config.experimental.set_memory"),
        (
            "tensorflow._api.v2.config",
            "experimental_list_physical_devices",
            "tf.config.list_physical_devices",
        ),
        ("tensorflow._api.v2.config", "list_gpus", "tf.config.list_physical_devices"),
        ("torch.cuda", "is_avaliable", "torch.cuda.is_available"),
    ],
)
def test_names_that_no_release_has(module: str, name: str, right: str) -> None:
    error = f"AttributeError: module '{module}' has no attribute '{name}'"
    (finding,) = explained(traceback("run()", error)).root_causes
    assert finding.cause == "no-such-device-name"
    assert name in finding.message
    assert right in finding.message


def test_a_name_that_another_release_has_is_another_matter() -> None:
    error = "AttributeError: module 'tensorflow._api.v2.config' has no attribute 'experimental'"
    assert "no-such-device-name" not in {f.cause for f in explained(error).root_causes}


WITHOUT_STATEMENT = """\
Traceback (most recent call last):
  File "<string>", line 2, in <module>
IndexError: list index out of range
"""
NO_LIBRARIES = (
    "W0000 00:00:1794831397.048607   22688 gpu_device.cc:2365] Cannot dlopen some GPU libraries. "
    "Please make sure the missing libraries mentioned above are installed properly\n"
    "Skipping registering GPU devices...\n"
)


def test_a_short_list_that_is_not_shown_may_be_the_list_of_gpus() -> None:
    assert explained(WITHOUT_STATEMENT).verdict == "unknown"
    lost = explained(NO_LIBRARIES + WITHOUT_STATEMENT)
    assert lost.verdict == "found"
    assert lost.root_causes[0].cause == "cuda-runtime-missing"


def test_a_short_list_of_data_is_not_the_list_of_gpus() -> None:
    shown = WITHOUT_STATEMENT.replace("IndexError", "    print(rows[5])\nIndexError")
    assert explained(NO_LIBRARIES + shown).verdict == "not-gpu"

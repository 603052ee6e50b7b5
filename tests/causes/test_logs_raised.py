"""Exceptions judged by where they were raised: between packages, or in the program."""

from __future__ import annotations

from tests.cases import each
from tests.kit import explained

PACKAGES = "/opt/env/lib/python3.9/site-packages"


def answer(log: str) -> str:
    found = explained(log)
    return found.root_causes[0].cause if found.root_causes else found.verdict


def traceback(last: str, *frames: tuple[str, str]) -> str:
    """A program whose call ended in these files, each with the line of code that it shows."""
    shown = [("train.py", "main()"), *frames]
    lines = [f'  File "{file}", line 3, in f\n    {code}' for file, code in shown]
    return "\n".join(["Traceback (most recent call last):", *lines, last])


@each(
    ("package", "code", "last", "expected"),
    [
        (
            "keras_applications/resnet.py",
            "from keras.engine import get_source_inputs",
            "ImportError: cannot import name 'get_source_inputs'",
            "keras-tf-version-mismatch",
        ),
        (
            "keras/engine/saving.py",
            "original = f.attrs['keras_version'].decode('utf8')",
            "AttributeError: 'str' object has no attribute 'decode'",
            "keras-tf-version-mismatch",
        ),
        (
            "keras/engine/training.py",
            "loss = fn(y_true, y_pred, mask=mask)",
            "TypeError: weighted() got an unexpected keyword argument 'mask'",
            "not-gpu",
        ),
        (
            "autokeras/keras_layers.py",
            "combiner = preprocessing.Normalization()._combiner",
            "AttributeError: 'Normalization' object has no attribute '_combiner'",
            "keras-tf-version-mismatch",
        ),
        (
            "keras/engine/base_layer.py",
            "self._layers.append(value)",
            "AttributeError: 'MyBlock' object has no attribute '_layers'",
            "not-gpu",
        ),
        (
            "chex/_src/fake.py",
            "from jax.interpreters.pxla import Mesh",
            "ImportError: cannot import name 'Mesh'",
            "jax-plugin-mismatch",
        ),
        (
            "optax/_src/base.py",
            "grads = model.gradient",
            "AttributeError: 'NoneType' object has no attribute 'gradient'",
            "not-gpu",
        ),
        (
            "wandb/util.py",
            "np.float_: float,",
            "AttributeError: `np.float_` was removed in the NumPy 2.0 release.",
            "numpy-abi",
        ),
        (
            "onnx/__init__.py",
            "import google.protobuf.message",
            "ModuleNotFoundError: No module named 'google'",
            "protobuf-conflict",
        ),
        (
            "requests/compat.py",
            "from markupsafe import soft_unicode",
            "ImportError: cannot import name 'soft_unicode'",
            "not-gpu",
        ),
    ],
)
def test_what_a_package_asks_of_another_is_a_matter_of_their_releases(
    package: str, code: str, last: str, expected: str
) -> None:
    assert answer(traceback(last, (f"{PACKAGES}/{package}", code))) == expected


@each(
    "last",
    [
        "AttributeError: module 'numpy' has no attribute 'float'.",
        "ImportError: cannot import name 'helpers'",
        "AttributeError: 'Batch' object has no attribute 'level'",
        "TypeError: build() got an unexpected keyword argument 'depth'",
    ],
)
def test_the_same_words_from_the_program_are_the_programs_matter(last: str) -> None:
    assert (
        answer(traceback(last, ("/home/user/project/model.py", "x = build(depth=3)"))) == "not-gpu"
    )


def test_numpys_own_frame_does_not_hide_who_asked() -> None:
    last = "AttributeError: module 'numpy' has no attribute 'object'."
    own = (f"{PACKAGES}/numpy/__init__.py", "raise AttributeError(former[name])")
    library = (f"{PACKAGES}/tensorflow/python/framework/dtypes.py", "np.object: object,")
    assert answer(traceback(last, library, own)) == "numpy-abi"
    assert answer(traceback(last, ("train.py", "np.object"), own)) == "not-gpu"


def test_the_line_that_ipython_points_at_is_the_code() -> None:
    log = (
        "ImportError                               Traceback (most recent call last)\n"
        f"{PACKAGES}/tensorflow/keras/layers/__init__.py in <module>()\n"
        "      7 \n"
        "----> 8 from tensorflow.python.keras.engine import Node\n"
        "      9 from tensorflow.python.keras import Input\n"
        "\n"
        "ImportError: cannot import name 'Node'\n"
    )
    assert answer(log) == "keras-tf-version-mismatch"


def test_ipython_names_in_its_header_what_is_raised_below() -> None:
    log = (
        "UnfilteredStackTrace                      Traceback (most recent call last)\n"
        "9 frames\n"
        "UnfilteredStackTrace: RuntimeError: INTERNAL: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n"
    )
    assert explained(log).root_causes[0].cause == "oom-model-too-big"
    assert explained(log.partition("9 frames")[0]).verdict == "unknown", "its message is missing"

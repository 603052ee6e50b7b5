"""Logs about Keras and its generations: whose code raised it decides."""

from __future__ import annotations

from tests.cases import each
from tests.kit import command_of, explained


def causes(log: str) -> list[str]:
    return [finding.cause for finding in explained(log).root_causes]


@each(
    "message",
    [
        "AttributeError: module 'keras.backend' has no attribute 'set_session'",
        "AttributeError: module 'tensorflow._api.v1.keras.layers' has no attribute 'Normalization'",
        "AttributeError: module 'tensorflow._api.v1.compat.v2' has no attribute '__internal__'",
        "AttributeError: module 'tensorflow.python.framework.ops' has no attribute '_TensorLike'",
        "ModuleNotFoundError: No module named 'keras.layers.core'",
        "ImportError: cannot import name 'dtensor' from 'tensorflow.compat.v2.experimental'",
        "ImportError: Keras requires TensorFlow 2.2 or higher. Install it via `pip`",
        "tensorflow.python.framework.errors_impl.AlreadyExistsError: Another metric with the same "
        "name already exists.",
        "ValueError: Your currently installed version of Keras is Keras 3, but this is not yet "
        "supported in Transformers. Please install the backwards-compatible tf-keras package",
        "ValueError: Only instances of `keras.Layer` can be added to a Sequential model. Received: "
        "<tensorflow_hub.keras_layer.KerasLayer object>",
        "AttributeError: module 'tensorflow' has no attribute 'estimator'",
    ],
)
def test_words_of_packages_that_do_not_fit_each_other(message: str) -> None:
    assert causes(message)[0] == "keras-tf-version-mismatch"


@each(
    "message",
    [
        "ModuleNotFoundError: No module named 'keras'",
        "ModuleNotFoundError: No module named 'tensorflow'",
        "AttributeError: module 'models.keras_net' has no attribute 'build'",
        "ImportError: cannot import name 'x' from partially initialized module 'utils'",
        "ValueError: Unrecognized keyword arguments passed to Dense: {'unit': 3}",
    ],
)
def test_a_missing_package_and_the_programs_own_mistakes_are_something_else(message: str) -> None:
    assert "keras-tf-version-mismatch" not in causes(message)


def test_an_unknown_argument_counts_while_a_model_is_loaded() -> None:
    log = (
        'Traceback (most recent call last):\n  File "p.py", line 5, in <module>\n'
        '    load_model("m.h5")\n'
        "ValueError: ('Unrecognized keyword arguments:', dict_keys(['ragged']))"
    )
    assert causes(log) == ["keras-tf-version-mismatch"]


def test_old_keras_under_tensorflow_2_is_found_by_its_own_file() -> None:
    log = (
        'Traceback (most recent call last):\n  File "p.py", line 1, in <module>\n    import keras\n'
        '  File "/opt/lib/python3.7/site-packages/keras/backend/tensorflow_backend.py", line 68, '
        "in get_uid\n    graph = tf.get_default_graph()\n"
        "AttributeError: module 'tensorflow' has no attribute 'get_default_graph'"
    )
    assert causes(log)[0] == "keras-tf-version-mismatch"


def test_keras_3_without_its_backend_is_not_a_mismatch() -> None:
    log = (
        'Traceback (most recent call last):\n  File "p.py", line 1, in <module>\n    import keras\n'
        '  File "/opt/lib/python3.11/site-packages/keras/src/backend/__init__.py", line 9, in '
        "<module>\n    import jax\nModuleNotFoundError: No module named 'jax'"
    )
    assert causes(log) == ["keras-backend-missing"]


def test_the_versions_of_the_log_are_in_the_remedy() -> None:
    log = (
        "tensorflow==2.9.1\nkeras==2.11.0\n"
        "AttributeError: module 'tensorflow.compat.v2.__internal__' has no attribute 'tracking'"
    )
    (finding, *_) = explained(log).root_causes
    assert "Keras 2.11.0 and TensorFlow 2.9.1" in finding.message
    assert command_of(finding.remedies[0]) == "python -m pip install 'keras==2.9.*'"


def inside(message: str, file: str = "train.py") -> str:
    return (
        f'Traceback (most recent call last):\n  File "{file}", line 3, in <module>\n'
        f"    from tensorflow.python.x import y\nImportError: {message}"
    )


_LINEAR = "cannot import name '_linear' from 'tensorflow.python.ops.rnn_cell_impl'"


@each(
    ("message", "remedies"),
    [
        (f"{_LINEAR} (/opt/lib/python3.11/site-packages/tensorflow/x.py)", 3),
        (f"{_LINEAR}: module 'tensorflow.python.ops.rnn_cell_impl' has no attribute '_linear'", 2),
        ("No module named 'tensorflow.python.framework.graph_util_x'", 3),
    ],
)
def test_a_program_that_imports_from_inside_tensorflow_has_nothing_to_do_with_keras(
    message: str, remedies: int
) -> None:
    (root,) = explained(inside(message)).root_causes
    assert root.cause == "session-api-removed-in-tf2"
    assert root.confidence == "likely"
    assert len(root.remedies) == remedies


def test_keras_that_imports_from_inside_tensorflow_does_not_fit_it() -> None:
    keras = "/opt/lib/python3.11/site-packages/keras/backend.py"
    assert causes(inside(_LINEAR, keras))[0] == "keras-tf-version-mismatch"
    own = "No module named 'tensorflow.python.keras.layers'"
    assert causes(inside(own))[0] == "keras-tf-version-mismatch"

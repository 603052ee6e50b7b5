"""Tables of where the names of TensorFlow 1 are now; `tf` is the TensorFlow 1 of the program.

A target is `tf.nn.relu` (a name of the surface), `tf2.name` (TensorFlow 2's own),
`python:module:name` (inside a package), or `own:module:name` (written for whygpu).
"""

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PUBLIC_API = ("tensorflow._api", "tensorflow.compat", "tf_keras", "keras")
"""Prefixes of the modules of a public API. Other modules are returned as they are."""

INSIDE = (
    "tensorflow.python",
    "tensorflow.core",
    "tensorflow.compiler",
    "tensorflow.tools",
    "tensorflow.tsl",
)
"""Parts of the package that programs import although they are not public."""

FIRST = {
    "tf.compat.v2": "tf2",
    "tf.flags": "own:flags",
    "tf.concat": "own:old_arguments:concat",
    "tf.split": "own:old_arguments:split",
}
"""Looked up before anything else."""

KERAS_2_ONLY = ("tf.keras",)
"""What Keras 3 has under the same name, and cannot do in a graph."""

_CONTRIB_LAYERS = (
    "own:contrib.layers",
    "own:contrib.convolutions",
    "own:contrib.norms",
    "own:contrib.parts",
    "own:contrib.feature_columns",
    "own:contrib.utils",
)
_KERAS = "python:tensorflow.python.keras."
_KERAS_3 = "python:keras."

SOURCES = {
    "tf.layers": ("own:layers", "python:tensorflow.python.layers.layers"),
    "tf.nn.rnn_cell": ("python:tensorflow.python.ops.rnn_cell_impl", "own:contrib.linear"),
    "tf.keras": ("python:tensorflow.python.keras",),
    "tf.keras.activations": (_KERAS + "activations",),
    "tf.keras.backend": (_KERAS + "backend",),
    "tf.keras.callbacks": (_KERAS + "callbacks_v1", _KERAS + "callbacks"),
    "tf.keras.constraints": (_KERAS + "constraints",),
    "tf.keras.datasets": (_KERAS_3 + "datasets",),
    "tf.keras.initializers": (
        _KERAS + "initializers.initializers_v1",
        "tf.initializers",
        _KERAS + "initializers",
    ),
    "tf.keras.layers": (
        "own:keras_layers",
        "own:keras_wrappers",
        _KERAS + "layers",
        _KERAS + "layers.recurrent",
    ),
    "tf.keras.losses": (_KERAS + "losses",),
    "tf.keras.metrics": (_KERAS + "metrics", _KERAS + "losses"),
    "tf.keras.models": (_KERAS + "models", _KERAS + "saving.save", _KERAS + "saving.model_config"),
    "tf.keras.optimizers": (
        _KERAS + "optimizer_v2.adadelta",
        _KERAS + "optimizer_v2.adagrad",
        _KERAS + "optimizer_v2.adam",
        _KERAS + "optimizer_v2.adamax",
        _KERAS + "optimizer_v2.ftrl",
        _KERAS + "optimizer_v2.gradient_descent",
        _KERAS + "optimizer_v2.nadam",
        _KERAS + "optimizer_v2.rmsprop",
        _KERAS + "optimizers",
    ),
    "tf.keras.optimizers.schedules": (_KERAS + "optimizer_v2.learning_rate_schedule",),
    "tf.keras.preprocessing": (),
    "tf.keras.preprocessing.image": (
        _KERAS_3 + "preprocessing.image",
        _KERAS_3 + "src.legacy.preprocessing.image",
    ),
    "tf.keras.preprocessing.sequence": (
        _KERAS_3 + "preprocessing.sequence",
        _KERAS_3 + "src.legacy.preprocessing.sequence",
    ),
    "tf.keras.preprocessing.text": (_KERAS_3 + "src.legacy.preprocessing.text",),
    "tf.keras.regularizers": (_KERAS + "regularizers",),
    "tf.keras.utils": (_KERAS + "utils.all_utils",),
    "tf.contrib": (),
    "tf.contrib.autograph": ("tf.autograph",),
    "tf.contrib.cluster_resolver": ("tf.distribute.cluster_resolver",),
    "tf.contrib.data": ("own:contrib.data", "tf.data.experimental", "tf.data"),
    "tf.contrib.distribute": ("tf.distribute",),
    "tf.contrib.distributions": (
        "own:contrib.distributions",
        "tf.distributions",
        "python:tensorflow.python.ops.distributions.util",
        "python:tensorflow_probability.distributions",
    ),
    "tf.contrib.distributions.bijectors": ("python:tensorflow_probability.bijectors",),
    "tf.contrib.eager": ("own:contrib.eager",),
    "tf.contrib.framework": ("own:contrib.framework", "own:contrib.scope"),
    "tf.contrib.framework.nest": ("python:tensorflow.python.util.nest",),
    "tf.contrib.image": ("own:contrib.misc",),
    "tf.contrib.keras": ("tf.keras",),
    "tf.contrib.crf": ("own:contrib.crf",),
    "tf.contrib.layers": _CONTRIB_LAYERS,
    "tf.contrib.learn": ("own:contrib.learn", "own:contrib.learn_estimators"),
    "tf.contrib.learn.datasets": ("own:contrib.learn",),
    "tf.contrib.learn.datasets.base": ("own:contrib.learn",),
    "tf.contrib.learn.datasets.mnist": ("own:mnist_data",),
    "tf.contrib.learn.preprocessing": ("own:contrib.learn",),
    "tf.contrib.legacy_seq2seq": ("own:contrib.rnn",),
    "tf.contrib.lookup": ("tf.lookup", "python:tensorflow.python.ops.lookup_ops"),
    "tf.contrib.losses": ("own:contrib.losses",),
    "tf.contrib.metrics": ("own:contrib.metrics",),
    "tf.contrib.rnn": ("own:contrib.rnn", "own:contrib.cells", "tf.nn.rnn_cell"),
    "tf.contrib.saved_model": ("tf.saved_model",),
    "tf.contrib.seq2seq": (
        "own:contrib.seq2seq",
        "own:contrib.decoder",
        "own:contrib.attention",
    ),
    "tf.contrib.signal": ("tf.signal",),
    "tf.contrib.slim": (_CONTRIB_LAYERS + ("tf.contrib.framework",)),
    "tf.contrib.slim.data_decoder": ("own:contrib.slim_data",),
    "tf.contrib.slim.data_provider": ("own:contrib.slim_data",),
    "tf.contrib.slim.dataset": ("own:contrib.slim_data",),
    "tf.contrib.slim.dataset_data_provider": ("own:contrib.slim_data",),
    "tf.contrib.slim.evaluation": ("own:contrib.evaluation",),
    "tf.contrib.slim.initializers": ("own:contrib.parts",),
    "tf.contrib.slim.layers": _CONTRIB_LAYERS,
    "tf.contrib.slim.learning": ("own:contrib.learning",),
    "tf.contrib.slim.losses": ("own:contrib.losses",),
    "tf.contrib.slim.metrics": ("own:contrib.metrics",),
    "tf.contrib.slim.model_analyzer": ("own:contrib.model_analyzer",),
    "tf.contrib.slim.parallel_reader": ("own:contrib.slim_data",),
    "tf.contrib.slim.prefetch_queue": ("own:contrib.slim_data",),
    "tf.contrib.slim.queues": ("own:contrib.queues",),
    "tf.contrib.slim.regularizers": ("own:contrib.parts",),
    "tf.contrib.slim.summaries": ("own:contrib.summaries",),
    "tf.contrib.slim.tfexample_decoder": ("own:contrib.tfexample_decoder",),
    "tf.contrib.slim.utils": ("own:contrib.utils",),
    "tf.contrib.stateless": ("tf.random",),
    "tf.contrib.summary": ("tf2.summary",),
    "tf.contrib.tensorboard": (),
    "tf.contrib.tensorboard.plugins": (),
    "tf.contrib.tensorboard.plugins.projector": ("python:tensorboard.plugins.projector",),
    "tf.contrib.tpu": ("own:contrib.tpu", "tf.tpu"),
    "tf.contrib.training": ("own:contrib.framework",),
    "tf.contrib.util": ("own:contrib.framework",),
    "tf.contrib.predictor": ("own:contrib.predictor",),
    "tf.estimator": (
        "own:estimator.estimator",
        "own:estimator.canned",
        "own:estimator.exporting",
        "tf.train",
    ),
    "tf.estimator.export": ("own:estimator.exporting",),
    "tf.estimator.inputs": ("own:estimator.inputs",),
    "tf.estimator.tpu": ("own:contrib.tpu",),
    "tf.examples": (),
    "tf.examples.tutorials": (),
    "tf.examples.tutorials.mnist": (),
    "tf.examples.tutorials.mnist.input_data": ("own:mnist_data",),
    "tf.examples.tutorials.mnist.mnist": ("own:mnist_model",),
}
"""Where the names of a module are looked up if TensorFlow 2 has no such module."""

RENAMED = {
    "tf.contrib.eager.enable_eager_execution": "tf.enable_eager_execution",
    "tf.contrib.eager.executing_eagerly": "tf.executing_eagerly",
    "tf.contrib.eager.py_func": "tf.py_function",
    "tf.contrib.eager.defun": "tf.function",
    "tf.contrib.eager.GradientTape": "tf.GradientTape",
    "tf.contrib.eager.Checkpoint": "tf.train.Checkpoint",
    "tf.contrib.framework.assert_global_step": "tf.train.assert_global_step",
    "tf.contrib.framework.create_global_step": "tf.train.create_global_step",
    "tf.contrib.framework.get_global_step": "tf.train.get_global_step",
    "tf.contrib.framework.get_or_create_global_step": "tf.train.get_or_create_global_step",
    "tf.contrib.framework.init_from_checkpoint": "tf.train.init_from_checkpoint",
    "tf.contrib.framework.list_variables": "tf.train.list_variables",
    "tf.contrib.framework.load_checkpoint": "tf.train.load_checkpoint",
    "tf.contrib.framework.load_variable": "tf.train.load_variable",
    "tf.contrib.framework.local_variable": "tf.Variable",
    "tf.contrib.framework.nest.is_sequence": "python:tensorflow.python.util.nest:is_nested",
    "tf.contrib.framework.is_tensor": "tf.is_tensor",
    "tf.contrib.framework.sort": "tf.sort",
    "tf.contrib.framework.argsort": "tf.argsort",
    "tf.contrib.layers.safe_embedding_lookup_sparse": "tf.nn.safe_embedding_lookup_sparse",
    "tf.contrib.learn.RunConfig": "tf.estimator.RunConfig",
    "tf.contrib.rnn.static_rnn": "tf.nn.static_rnn",
    "tf.contrib.rnn.static_state_saving_rnn": "tf.nn.static_state_saving_rnn",
    "tf.contrib.rnn.static_bidirectional_rnn": "tf.nn.static_bidirectional_rnn",
    "tf.contrib.training.HParams": "own:contrib.misc:HParams",
    "tf.contrib.util.constant_value": "tf.get_static_value",
    "tf.contrib.util.make_tensor_proto": "tf.make_tensor_proto",
    "tf.contrib.util.make_ndarray": "tf.make_ndarray",
    "tf.layers.InputSpec": "python:tensorflow.python.keras.engine.input_spec:InputSpec",
    "tf.pywrap_tensorflow": "python:tensorflow.python.pywrap_tensorflow",
    "tf.keras.estimator": "tf.estimator",
    "tf.python.util.nest.is_sequence": "python:tensorflow.python.util.nest:is_nested",
    "tf.keras.layers.Input": "python:tensorflow.python.keras.engine.input_layer:Input",
    # Names from before release 1.0, which later releases kept as aliases.
    "tf.all_variables": "tf.global_variables",
    "tf.audio_summary": "tf.summary.audio",
    "tf.batch_cholesky": "tf.cholesky",
    "tf.batch_cholesky_solve": "tf.cholesky_solve",
    "tf.batch_fft": "tf.fft",
    "tf.batch_fft2d": "tf.fft2d",
    "tf.batch_ifft": "tf.ifft",
    "tf.batch_ifft2d": "tf.ifft2d",
    "tf.batch_matmul": "tf.matmul",
    "tf.batch_matrix_band_part": "tf.matrix_band_part",
    "tf.batch_matrix_determinant": "tf.matrix_determinant",
    "tf.batch_matrix_diag": "tf.matrix_diag",
    "tf.batch_matrix_diag_part": "tf.matrix_diag_part",
    "tf.batch_matrix_inverse": "tf.matrix_inverse",
    "tf.batch_matrix_set_diag": "tf.matrix_set_diag",
    "tf.batch_matrix_solve": "tf.matrix_solve",
    "tf.batch_matrix_solve_ls": "tf.matrix_solve_ls",
    "tf.batch_matrix_transpose": "tf.matrix_transpose",
    "tf.batch_matrix_triangular_solve": "tf.matrix_triangular_solve",
    "tf.batch_self_adjoint_eig": "tf.self_adjoint_eig",
    "tf.batch_self_adjoint_eigvals": "tf.self_adjoint_eigvals",
    "tf.batch_svd": "tf.svd",
    "tf.complex_abs": "tf.abs",
    "tf.concat_v2": "tf.concat",
    "tf.histogram_summary": "tf.summary.histogram",
    "tf.image.per_image_whitening": "tf.image.per_image_standardization",
    "tf.image_summary": "tf.summary.image",
    "tf.inv": "tf.reciprocal",
    "tf.listdiff": "tf.setdiff1d",
    "tf.merge_all_summaries": "tf.summary.merge_all",
    "tf.merge_summary": "tf.summary.merge",
    "tf.mul": "tf.multiply",
    "tf.neg": "tf.negative",
    "tf.nn.bidirectional_rnn": "tf.nn.static_bidirectional_rnn",
    "tf.nn.rnn": "tf.nn.static_rnn",
    "tf.nn.seq2seq": "tf.contrib.legacy_seq2seq",
    "tf.pack": "tf.stack",
    "tf.scalar_summary": "tf.summary.scalar",
    "tf.select": "tf.where",
    "tf.split_v": "tf.split",
    "tf.sub": "tf.subtract",
    "tf.train.SummaryWriter": "tf.summary.FileWriter",
    "tf.unpack": "tf.unstack",
}

_HOMES = (
    (re.compile(r"^tf\.compat\.v1(?=\.|$)"), "tf"),
    (re.compile(r"^tf\.app\.flags(?=\.|$)"), "tf.flags"),
    # tensorflow.contrib.learn.python.learn.datasets -> tensorflow.contrib.learn.datasets
    (re.compile(r"^(tf\.contrib\.(\w+))\.python\.\2(?=\.datasets|\.preprocessing)"), r"\1"),
    (re.compile(r"^tf\.contrib\.slim\.python\.slim\.nets(?=\.|$)"), "tf.contrib.slim.nets"),
    (re.compile(r"^(tf\.contrib\.\w+)\.python(\.\w+)*$"), r"\1"),
    (re.compile(r"^tf\.contrib\.rnn\.core_rnn_cell(_impl)?$"), "tf.contrib.rnn"),
    (re.compile(r"^tf\.python\.ops\.rnn_cell(?=\._(linear|Linear)$)"), "tf.nn.rnn_cell"),
    (re.compile(r"^tf\.python\.ops\.rnn_cell_impl(?=\._(linear|Linear)$)"), "tf.nn.rnn_cell"),
    (re.compile(r"^tf\.python\.estimator\.(inputs|export)(\.\w+)*$"), r"tf.estimator.\1"),
    (
        re.compile(
            r"^tf\.python\.estimator(\.(estimator|estimator_lib|exporter|model_fn|run_config|training"
            r"|canned(\.\w+)?|api(\.\w+)*))?$"
        ),
        "tf.estimator",
    ),
    (re.compile(r"^tf\.python\.estimator\.tpu(\.\w+)*$"), "tf.contrib.tpu"),
    (re.compile(r"^tf\.python\.layers\.normalization$"), "tf.layers"),
    (re.compile(r"^tf\.python\.ops\.constant_op$"), "tf.python.framework.constant_op"),
    (re.compile(r"^tf\.python\.tpu\.tpu_(config|estimator)$"), "tf.contrib.tpu"),
    (re.compile(r"^tf\.python\.training\.training_ops$"), "tf.python.ops.gen_training_ops"),
    (re.compile(r"^tf\.keras\.backend\.(tensorflow|common|load)_backend$"), "tf.keras.backend"),
    (
        re.compile(
            r"^tf\.keras\.layers\.(advanced_activations|convolutional|core|embeddings|merge"
            r"|normalization|pooling|recurrent|wrappers|noise|local)$"
        ),
        "tf.keras.layers",
    ),
    (re.compile(r"^tf\.keras\.engine(\.\w+)?$"), "tf.keras.layers"),
    (re.compile(r"^tf\.keras\.utils\.(np|generic|io|data|layer|vis)_utils$"), "tf.keras.utils"),
)

_DEEP = re.compile(r"^tensorflow\.contrib\.\w+\.python\.(\w+\.)*(?P<last>\w+)$")
_FOLDERS = re.compile(
    r"^(bijectors|data|datasets|estimators?|feature_column|framework|layers|learn|learn_io|losses"
    r"|metrics|nets|ops|preprocessing|python|slim|summary|training|utils?)$"
)

_NO_COUNTERPART = "TensorFlow 2 has no counterpart of it"

_REASONS = (
    (
        "tf.estimator",
        "TensorFlow 2.16 and later have no estimators; --tf1 provides Estimator and the linear "
        "and deep ones (TensorFlow 2.15 is the last release that has them all)",
    ),
    (
        "tf.contrib.slim.nets",
        "copy the folder research/slim/nets of github.com/tensorflow/models, tag v1.13.0, next to "
        "the program and import it from there (`from nets import resnet_v1`)",
    ),
    ("tf.keras.applications", "the models of tf.keras need tf_keras: `pip install tf_keras`"),
    (
        "tf.keras",
        "the Keras 2 inside TensorFlow does not have it, and Keras 3 cannot work in a graph; "
        "`pip install tf_keras` gives the program the complete Keras 2",
    ),
    (
        "tf.layers",
        "this TensorFlow no longer has TensorFlow 1 layers; `pip install tf_keras` adds them",
    ),
    (
        "tf.contrib.distributions",
        "tensorflow-probability has it: `pip install tensorflow-probability tf_keras`",
    ),
    ("tf.contrib.tensorboard", "it is a part of TensorBoard: `pip install tensorboard`"),
    ("tf.contrib", _NO_COUNTERPART + ": tf.contrib was removed in TensorFlow 2.0"),
    ("tf.examples", _NO_COUNTERPART + ": tf.examples was removed in TensorFlow 2.1"),
)


def home_of(path: str) -> "Any":
    """The path under which a name is looked up, for modules that have had several."""
    for pattern, home in _HOMES:
        path = pattern.sub(home, path)
    return path


def holds_no_modules(name: str) -> bool:
    """Whether it is a file inside tf.contrib: what a program imports from it is no module."""
    deep = _DEEP.match(name)
    return deep is not None and _FOLDERS.match(deep.group("last")) is None


def is_package(path: str) -> bool:
    """Whether it is a module of the surface that TensorFlow 2 does not have."""
    return path in SOURCES


def below(path: str) -> "Any":
    """The names directly below a module that the tables know."""
    start = path + "."
    known = [name for table in (SOURCES, RENAMED, FIRST) for name in table]
    return {name[len(start) :].partition(".")[0] for name in known if name.startswith(start)}


def reason(path: str) -> "Any":
    """Why a name is missing, as text; empty if that is not known."""
    for start, words in _REASONS:
        if path == start or path.startswith(start + "."):
            return words
    return ""


def in_words(target: "Any") -> "Any":
    """A target as the notes name it."""
    kind, _, rest = target.partition(":")
    if kind == "own":
        return "whygpu's own implementation"
    return rest.replace(":", ".") if kind == "python" else target

"""Messages of a log when Keras, its add-ons, TensorFlow and a program do not match."""

from __future__ import annotations

import re

from whygpu.causes.evidence.log_exceptions import code_of, internal_import, match_at, raised_by
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Match, Raised

_KERAS = r"(?:keras|tf_keras|tensorflow(?:_core)?(?:\.\w{1,30}){0,4}\.keras)"
_ADD_ONS = (
    r"tensorflow_(?:addons|estimator|hub|probability|text|io|model_optimization|recommenders"
    r"|decision_forests|ranking|similarity|datasets)"
)
MESSAGES = late(
    rf"(?<!partially initialized )module '{_KERAS}[\w.]{{0,100}}' has no attribute"
    rf"|cannot import name '?\w{{1,60}}'? from '{_KERAS}[\w.]{{0,100}}'"
    rf"|No module named '?{_KERAS}\.[\w.]{{1,100}}'?"
    r"|No module named '?(?:tensorflow\.keras|tensorflow\.python\.keras|tf_keras)'?$"
    r"|module 'tensorflow(?:_core)?(?:\.\w{1,30}){0,3}\.compat\.v2[\w.]{0,60}' has no attribute"
    r"|module 'tensorflow(?:_core)?\.python\.[\w.]{1,80}' has no attribute"
    r"|module 'tensorflow(?:_core)?\.__internal__[\w.]{0,60}' has no attribute"
    r"|cannot import name '\w{1,60}' from 'tensorflow(?:_core)?\.compat\.v2[\w.]{0,60}'"
    r"|cannot import name '?(?!pywrap|_)\w{1,60}'? from 'tensorflow(?:_core)?\.python[\w.]{0,80}'"
    r"(?! \(most likely)"
    r"|No module named '?tensorflow(?:_core)?\.python\.(?!platform|pywrap|_)[\w.]{1,80}'?"
    r"|module 'tensorflow(?:_core)?' has no attribute '(?:keras|compat|python|__internal__)'"
    r"|No module named '?tensorflow\.compat(?:\.[\w.]{1,60})?'?"
    r"|cannot import name 'keras' from 'tensorflow' \([^u]"
    r"|module 'tensorflow(?:\.compat\.v[12])?' has no attribute 'estimator'"
    r"|No module named '?tensorflow_estimator(?:\.[\w.]{1,80})?'?|No module named 'tensorflow\.tsl"
    rf"|cannot import name '\w{{1,60}}' from '{_ADD_ONS}[\w.]{{0,80}}'"
    rf"|module '{_ADD_ONS}[\w.]{{0,80}}' has no attribute"
    r"|tensorflow_(?:io|text|addons|recommenders|decision_forests)[^\n:]{0,200}\.so: undefined "
    r"symbol"
    # A custom operation that was compiled for another TensorFlow.
    r"|undefined symbol: _ZNK?10tensorflow\d"
    r"|Cannot register 2 metrics with the same name: /tensorflow/api/keras"
    r"|Another metric with the same name already exists",
    re.MULTILINE,
)
"""Messages that name Keras, its add-ons or a part of TensorFlow that only they use."""
PHRASES = late(
    r"Keras requires TensorFlow [\d.]{1,10} or higher|requires TensorFlow version >= ?[\d.]{1,10}"
    r"|multi-backend Keras that does not support TensorFlow"
    r"|installed version of Keras is Keras 3, but this is not (?:yet )?supported"
    r"|Keras cannot be imported\. Check that it is installed"
    r"|'Node' object has no attribute 'output_masks'|'KerasHistory' object has no attribute"
    r"|'_TfDeviceCaptureOp' object has no attribute"
    r"|object has no attribute '(?:_make_predict_function|_get_distribution_strategy)'"
    r"|The added layer must be an instance of class Layer\. (?:Found|Received)"
    r"|Only instances of `?keras\.Layer`? can be added to a Sequential model"
    r"|A KerasTensor is symbolic: it's a placeholder for a shape"
    r"|A KerasTensor cannot be used as input to a TensorFlow function"
    r"|Could not interpret optimizer identifier:['\", ]{0,4}<(?:keras|tensorflow)"
    r"|Unrecognized keyword arguments(?: passed to \w{1,40})?: [\[{]'(?:batch_shape|input_shape"
    r"|batch_input_shape|time_major|weights|groups|input_length)'"
    r"|Keras 3 only supports V3 `\.keras` files"
    r"|is not available with Keras 3\b"
    r"|Could not (?:locate class|deserialize class) '(?:CuDNN(?:LSTM|GRU)|Functional|Sequential|Model|TFOpLambda"
    r"|SlicingOpLambda)'"
    r"|Unknown layer: '?\"?(?:Functional|Custom>|TFOpLambda|SlicingOpLambda|ModuleWrapper)"
    r"|Unknown optimizer: '?\"?Custom>"
    r"|add_weight\(\) got multiple values for argument '(?:shape|name)'"
    # Keras 3 refuses arguments that Keras 2 accepted.
    r"|Argument\(s\) not recognized: \{'(?:lr|decay)'"
    r"|decay is deprecated in the new Keras optimizer"
    r"|Expected `trainable` argument to be a boolean, but got"
    r"|filename must end in `\.weights\.h5`"
    r"|`filepath` provided must end in `\.(?:keras|weights\.h5)`"
    r"|Invalid filepath extension for saving"
    r"|(?:fit|predict|evaluate)\(\) got an unexpected keyword argument '(?:workers|max_queue_size"
    r"|use_multiprocessing|nb_epoch|samples_per_epoch|nb_val_samples|show_accuracy)'"
)
_EARLIER = late(
    r"'(?:Sequential|Model|Functional)' object has no attribute '(?:predict_classes|predict_proba"
    r"|fit_generator|predict_generator|evaluate_generator|metrics_tensors|add_metric"
    r"|stateful_metric_names|total_loss|uses_learning_phase|_\w{2,40})'"
    r"|object has no attribute '(?:get_updates|_create_all_weights|_hyper)'"
    r"|'tuple' object has no attribute 'layer'$"
    r"|__init__\(\) got an unexpected keyword argument '(?:output_dim|nb_filter|border_mode"
    r"|subsample|W_regularizer|b_regularizer|dim_ordering)'",
    re.MULTILINE,
)
"""Members of classes of an earlier Keras; other libraries have classes with these names."""
_ABOUT_KERAS = late(r"keras|tensorflow", re.IGNORECASE)
_LOADING = late(r"load_model|model_from_json|model_from_config|from_config|deserializ")
_UNKNOWN_ARGUMENT = late(
    r"Unrecognized keyword arguments[^\n]{0,60}[\[{(]|Keyword argument not understood"
    r"|Error when deserializing class '\w{1,60}'"
    r"|got an unexpected keyword argument '(?:ragged|batch_shape|batch_input_shape|groups"
    r"|synchronized)'"
)
"""In a model that another Keras saved; in a call of the program it is the program's error."""

_FILES = late(
    r"[/\\](?:site|dist)-packages[/\\](?:(?:tf_)?keras(?:_\w{1,30})?|kerastuner|autokeras|segmentation_models"
    rf"|efficientnet|classification_models\w{{0,4}}|{_ADD_ONS}|rl|mrcnn"
    r"|tensorflow(?:_core)?[/\\](?:python[/\\]|_api[/\\]v\d[/\\])?keras)[/\\]|lazy_loader\.py"
)
"""Keras, and packages that use its internals."""
_OLD_BACKEND = late(r"keras[/\\]backend[/\\](?:tensorflow_backend|load_backend)\.py")
_IN_TENSORFLOW = late(
    r"module 'tensorflow(?:_core)?(?:\.[\w.]{1,60})?' has no attribute"
    r"|cannot import name '?\w{1,60}'? from 'tensorflow[\w.]{0,80}'"
    r"|No module named 'tensorflow\.[\w.]+'"
    r"|maximum recursion depth exceeded"
)
_FROM_NOWHERE = late(r"cannot import name '?\w{1,60}'?$")
"""Up to Python 3.6 the message does not name the module."""
_IMPORTS_KERAS = late(
    r"from (?:tf_keras|keras|tensorflow(?:_core)?\.(?:\w{1,30}\.){0,3}keras)\b[\w.]{0,80} import "
    r"|from tensorflow\.python\.[\w.]{1,80} import (?!pywrap|_)"
)
_PRIVATE = late(r"'(?!NoneType)[A-Z]\w{1,60}' object has no attribute '_(?!keras_)\w")
_KERAS_ITSELF = late(r"-packages[/\\](?:(?:tf_)?keras|tensorflow(?:_core)?)[/\\]")
_WRONG_ARGUMENTS = late(r"got an unexpected keyword argument '|got multiple values for argument '")
_CALLS_BELOW = late(r"\b(?:tf|tfe|K|backend|ops|nn|np|tensorflow|\w{2,20}_ops)\.\w")
"""A call of TensorFlow or of Keras's backend, not of an object that the program passed in."""
_OLD_H5PY = late(r"'str' object has no attribute 'decode'")
_OF_A_MODEL_FILE = late(r"keras_version|\.decode\('utf-?8'\)|model_config|layer_names|backend")
_HISTORY = late(r"object has no attribute '_keras_(?:shape|history)'")
_KERAS_ALONE = late(
    r"[/\\](?:site|dist)-packages[/\\]keras[/\\]|^from keras\b|\bkeras-\d", re.MULTILINE
)
_KERAS_INSIDE = late(r"tensorflow(?:_core)?[./\\](?:python[./\\])?keras\b|\btf\.keras\b")
_KINDS = ("ImportError", "ModuleNotFoundError", "AttributeError", "TypeError", "RecursionError")


def mismatch_in(log: Log) -> Match | None:
    """The first statement of a mismatch."""
    own = {raised.line for raised in log.raised if internal_import(raised)}
    statement = next((match for match in log.find(MESSAGES) if match.line not in own), None)
    statement = statement or log.first(PHRASES)
    shown = any(raised.frames for raised in log.raised)
    if statement is None and (log.says(_ABOUT_KERAS) or not shown):
        statement = log.first(_EARLIER)
    if statement is None and log.says(_LOADING):
        statement = log.first(_UNKNOWN_ARGUMENT)
    if statement is None:
        found = next((each for each in log.raised if _does_not_fit(log, each)), None)
        statement = match_at(log, found) if found is not None else None
    return statement


def _does_not_fit(log: Log, raised: Raised) -> bool:
    if raised.type not in _KINDS:
        return False
    by_keras = raised_by(raised, _FILES)
    code = code_of(log, raised)
    if _FROM_NOWHERE.match(raised.message):
        return _IMPORTS_KERAS.search(code) is not None or by_keras
    if _OLD_H5PY.match(raised.message):
        return (by_keras or not raised.frames) and _OF_A_MODEL_FILE.search(code) is not None
    if _HISTORY.search(raised.message):
        # Alone it means an operation outside a layer, which is the program's error.
        return raised_by(raised, _FILES) and (
            "tensorflow" not in raised.frames[-1] and _has_both(log, raised)
        )
    if _PRIVATE.match(raised.message):
        # An add-on uses internals of Keras; Keras uses those of layers that the program defines.
        return by_keras and not raised_by(raised, _KERAS_ITSELF)
    if _WRONG_ARGUMENTS.search(raised.message):
        # Arguments passed on with ** come from the program; named ones are the library's.
        return by_keras and "**" not in code and _CALLS_BELOW.search(code) is not None
    if not _IN_TENSORFLOW.search(raised.message):
        return False
    return by_keras or any(_OLD_BACKEND.search(frame) for frame in raised.frames)


def _has_both(log: Log, raised: Raised) -> bool:
    """The log contains both the separate Keras and the Keras of TensorFlow."""
    add_on = re.search(r"packages[/\\](?:rl|keras_\w+)[/\\]", raised.frames[-1])
    return add_on is not None or (log.says(_KERAS_ALONE) and log.says(_KERAS_INSIDE))

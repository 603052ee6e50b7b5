"""tf.estimator.export: a trained model as a SavedModel, and what its inputs and outputs are."""

import os
import time

import tensorflow.compat.v1 as tf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

__all__ = ["ServingInputReceiver", "TensorServingInputReceiver"]
__all__ += ["ClassificationOutput", "ExportOutput", "PredictOutput", "RegressionOutput"]
__all__ += ["build_parsing_serving_input_receiver_fn", "build_raw_serving_input_receiver_fn"]
__all__ += ["BestExporter", "Exporter", "FinalExporter", "LatestExporter"]

_DEFAULT = tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY


class ServingInputReceiver:
    """Placeholders for what is sent, and the features that are made of it."""

    def __init__(
        self, features: "Any", receiver_tensors: "Any", receiver_tensors_alternatives: "Any" = None
    ) -> None:
        self.features = features
        self.receiver_tensors = _by_name(receiver_tensors, "input")
        self.receiver_tensors_alternatives = receiver_tensors_alternatives or {}


TensorServingInputReceiver = ServingInputReceiver


class ExportOutput:
    """An output of an exported model, by name."""

    def __init__(self, outputs: "Any") -> None:
        self.outputs = _by_name(outputs, "output")

    def signature(self, inputs: "Any") -> "Any":
        return tf.saved_model.signature_def_utils.predict_signature_def(inputs, self.outputs)


class PredictOutput(ExportOutput):
    pass


class ClassificationOutput(ExportOutput):
    def __init__(self, scores: "Any" = None, classes: "Any" = None) -> None:
        if scores is None and classes is None:
            raise ValueError("At least one of scores and classes must be set.")
        given = {"scores": scores, "classes": classes}
        super().__init__({name: each for name, each in given.items() if each is not None})
        self.scores, self.classes = scores, classes

    def signature(self, inputs: "Any") -> "Any":
        examples = _examples(inputs)
        if examples is None:
            return super().signature(inputs)
        make = tf.saved_model.signature_def_utils.classification_signature_def
        return make(examples, self.classes, self.scores)


class RegressionOutput(ExportOutput):
    def __init__(self, value: "Any") -> None:
        super().__init__({"outputs": value})
        self.value = value

    def signature(self, inputs: "Any") -> "Any":
        examples = _examples(inputs)
        if examples is None:
            return super().signature(inputs)
        return tf.saved_model.signature_def_utils.regression_signature_def(examples, self.value)


def _by_name(given: "Any", name: str) -> "dict[str, Any]":
    return dict(given) if isinstance(given, dict) else {name: given}


def _examples(inputs: "dict[str, Any]") -> "Any":
    """The one input of serialized examples, which these kinds of signatures need."""
    tensors = list(inputs.values())
    return tensors[0] if len(tensors) == 1 and tensors[0].dtype == tf.string else None


def build_raw_serving_input_receiver_fn(
    features: "dict[str, Any]", default_batch_size: "Any" = None
) -> "Callable[[], Any]":
    """Features that are sent as they are."""

    def receive() -> "Any":
        sent = {}
        for name, tensor in features.items():
            shape = tensor.get_shape().as_list()
            shape[0] = default_batch_size
            sent[name] = tf.placeholder(tensor.dtype, shape, name=tensor.op.name)
        return ServingInputReceiver(sent, sent)

    return receive


def build_parsing_serving_input_receiver_fn(
    feature_spec: "dict[str, Any]", default_batch_size: "Any" = None
) -> "Callable[[], Any]":
    """Features that are parsed from serialized examples."""

    def receive() -> "Any":
        sent = tf.placeholder(tf.string, [default_batch_size], name="input_example_tensor")
        return ServingInputReceiver(tf.parse_example(sent, feature_spec), {"examples": sent})

    return receive


def write(
    session: "Any", spec: "Any", receiver: "Any", base: "Any", extra: "Any", as_text: bool
) -> bytes:
    """Write the model of this session into a folder that is named by the time, as bytes."""
    outputs = dict(spec.export_outputs or {_DEFAULT: PredictOutput(spec.predictions)})
    if len(outputs) == 1:
        outputs.setdefault(_DEFAULT, next(iter(outputs.values())))
    signatures = {
        name: output.signature(receiver.receiver_tensors) for name, output in outputs.items()
    }
    folder = _new_folder(os.fspath(base) if not isinstance(base, bytes) else base.decode())
    builder = tf.saved_model.builder.SavedModelBuilder(folder)
    builder.add_meta_graph_and_variables(
        session,
        [tf.saved_model.tag_constants.SERVING],
        signature_def_map=signatures,
        assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
        main_op=local_init_op(spec),
    )
    builder.save(as_text)
    for name, source in (extra or {}).items():
        target = os.path.join(folder, "assets.extra", name)
        tf.gfile.MakeDirs(os.path.dirname(target))
        tf.gfile.Copy(source, target)
    tf.logging.info("SavedModel written to: %s", folder)
    return folder.encode()


def local_init_op(spec: "Any") -> "Any":
    """What a session runs first: tables, and variables that no checkpoint has."""
    return spec.scaffold.local_init_op or tf.train.Scaffold.default_local_init_op()


def _new_folder(base: str) -> str:
    name = int(time.time())
    while tf.gfile.Exists(os.path.join(base, str(name))):
        name += 1
    return os.path.join(base, str(name))


class Exporter:
    """Exports an estimator after it was evaluated."""

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: "Any",
        assets_extra: "Any" = None,
        as_text: bool = False,
        **others: "Any",
    ) -> None:
        self.name = name
        self._receive = serving_input_receiver_fn
        self._assets_extra = assets_extra
        self._as_text = as_text

    def export(
        self,
        estimator: "Any",
        export_path: "Any",
        checkpoint_path: "Any",
        eval_result: "Any",
        is_the_final_export: bool,
    ) -> "Any":
        return estimator.export_saved_model(
            export_path, self._receive, self._assets_extra, self._as_text, checkpoint_path
        )


class FinalExporter(Exporter):
    pass


class LatestExporter(Exporter):
    pass


class BestExporter(Exporter):
    """There is one evaluation, at the end, so its model is the best one."""

    def __init__(
        self, name: str = "best_exporter", serving_input_receiver_fn: "Any" = None, **others: "Any"
    ) -> None:
        super().__init__(name, serving_input_receiver_fn, **others)

"""tf.contrib.predictor: a SavedModel or an estimator as a function of arrays."""

import os

import tensorflow.compat.v1 as tf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["from_estimator", "from_saved_model"]

_DEFAULT = tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY


class Predictor:
    """Feeds tensors by their names, and returns those that it fetches."""

    def __init__(self, session: "Any", inputs: "dict[str, Any]", outputs: "dict[str, Any]") -> None:
        self.session = session
        self.graph = session.graph
        self.feed_tensors = inputs
        self.fetch_tensors = outputs

    def __call__(self, input_dict: "dict[str, Any]") -> "Any":
        unknown = sorted(set(input_dict) - set(self.feed_tensors))
        if unknown:
            raise ValueError(
                "Got unexpected keys in input_dict: %s\nexpected: %s"
                % (unknown, sorted(self.feed_tensors))
            )
        fed = {self.feed_tensors[name]: value for name, value in input_dict.items()}
        return self.session.run(self.fetch_tensors, feed_dict=fed)


def from_saved_model(
    export_dir: "Any",
    signature_def_key: "Any" = None,
    signature_def: "Any" = None,
    input_names: "Any" = None,
    output_names: "Any" = None,
    tags: "Any" = None,
    graph: "Any" = None,
    config: "Any" = None,
) -> "Predictor":
    path = export_dir if isinstance(export_dir, bytes) else os.fspath(export_dir).encode()
    session = tf.Session(graph=graph or tf.Graph(), config=config)
    with session.graph.as_default():
        tags = tags.split(",") if isinstance(tags, str) else tags
        loaded = tf.saved_model.loader.load(session, tags or ["serve"], path.decode())
    if input_names is None or output_names is None:
        found = signature_def or loaded.signature_def[signature_def_key or _DEFAULT]
        input_names = {name: each.name for name, each in found.inputs.items()}
        output_names = {name: each.name for name, each in found.outputs.items()}
    named = session.graph.get_tensor_by_name
    return Predictor(
        session,
        {name: named(each) for name, each in input_names.items()},
        {name: named(each) for name, each in output_names.items()},
    )


def from_estimator(
    estimator: "Any",
    serving_input_receiver_fn: "Any",
    output_key: "Any" = None,
    graph: "Any" = None,
) -> "Predictor":
    with (graph or tf.Graph()).as_default():
        tf.train.get_or_create_global_step()
        receiver = serving_input_receiver_fn()
        spec = estimator.spec_for_serving(receiver)
        session = estimator.restored_session(spec)
    chosen = (spec.export_outputs or {}).get(output_key or _DEFAULT)
    outputs = spec.predictions if chosen is None else chosen.outputs
    if not isinstance(outputs, dict):
        outputs = {"output": outputs}
    return Predictor(session, receiver.receiver_tensors, outputs)

"""tf.estimator.Estimator: a model function trained, evaluated and asked for predictions.

It rests on TensorFlow's own monitored sessions, so checkpoints, summaries, hooks and log lines are
those of TensorFlow 1. Ready-made estimators (DNNClassifier and so on) are not here.
"""

import collections
import copy
import inspect
import os
import tempfile

import numpy
import tensorflow.compat.v1 as tf

from . import exporting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

__all__ = ["Estimator", "EstimatorSpec", "EvalSpec", "ModeKeys", "RunConfig", "TrainSpec"]
__all__ += ["train_and_evaluate"]


class ModeKeys:
    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "infer"


_SPEC = collections.namedtuple(  # type: ignore[name-match]
    "EstimatorSpec",
    "mode predictions loss train_op eval_metric_ops export_outputs training_chief_hooks "
    "training_hooks scaffold evaluation_hooks prediction_hooks",
)
_REQUIRED = {
    ModeKeys.TRAIN: ("loss", "train_op"),
    ModeKeys.EVAL: ("loss",),
    ModeKeys.PREDICT: ("predictions",),
}


class EstimatorSpec(_SPEC):
    """What a model function gives back; what its mode needs must be there."""

    def __new__(
        cls,
        mode: "Any",
        predictions: "Any" = None,
        loss: "Any" = None,
        train_op: "Any" = None,
        eval_metric_ops: "Any" = None,
        export_outputs: "Any" = None,
        training_chief_hooks: "Any" = None,
        training_hooks: "Any" = None,
        scaffold: "Any" = None,
        evaluation_hooks: "Any" = None,
        prediction_hooks: "Any" = None,
    ) -> "Any":
        given = {"predictions": predictions, "loss": loss, "train_op": train_op}
        for name in _REQUIRED[mode]:
            if given[name] is None:
                raise ValueError("Missing %s." % name)
        return super().__new__(
            cls,
            mode,
            predictions if predictions is not None else {},
            tf.reshape(loss, []) if loss is not None else None,
            train_op,
            eval_metric_ops or {},
            export_outputs,
            tuple(training_chief_hooks or ()),
            tuple(training_hooks or ()),
            scaffold or tf.train.Scaffold(),
            tuple(evaluation_hooks or ()),
            tuple(prediction_hooks or ()),
        )


class RunConfig:
    """How an estimator runs."""

    def __init__(
        self,
        model_dir: "Any" = None,
        tf_random_seed: "Any" = None,
        save_summary_steps: "Any" = 100,
        save_checkpoints_steps: "Any" = None,
        save_checkpoints_secs: "Any" = None,
        session_config: "Any" = None,
        keep_checkpoint_max: "Any" = 5,
        keep_checkpoint_every_n_hours: "Any" = 10000,
        log_step_count_steps: "Any" = 100,
        **others: "Any",
    ) -> None:
        if save_checkpoints_steps is None and save_checkpoints_secs is None:
            save_checkpoints_secs = 600
        self.model_dir = model_dir
        self.tf_random_seed = tf_random_seed
        self.save_summary_steps = save_summary_steps
        self.save_checkpoints_steps = save_checkpoints_steps
        self.save_checkpoints_secs = save_checkpoints_secs
        self.session_config = session_config
        self.keep_checkpoint_max = keep_checkpoint_max
        self.keep_checkpoint_every_n_hours = keep_checkpoint_every_n_hours
        self.log_step_count_steps = log_step_count_steps
        vars(self).update(others)

    is_chief = True
    master = ""
    num_ps_replicas = 0
    num_worker_replicas = 1
    task_type = "worker"
    task_id = 0

    def replace(self, **changes: "Any") -> "Any":
        return type(self)(**dict(vars(self), **changes))


class Estimator:
    """A model function with its variables, kept as checkpoints in a folder."""

    def __init__(
        self,
        model_fn: "Any",
        model_dir: "Any" = None,
        config: "Any" = None,
        params: "Any" = None,
        warm_start_from: "Any" = None,
    ) -> None:
        if warm_start_from is not None:
            raise NotImplementedError("Estimator under --tf1 has no warm_start_from")
        self._config = config or RunConfig()
        self._model_dir = model_dir or self._config.model_dir or tempfile.mkdtemp()
        self._config.model_dir = self._model_dir
        self._params = copy.deepcopy(params or {})
        self._model_fn = model_fn

    model_dir = property(lambda self: self._model_dir)
    config = property(lambda self: self._config)
    params = property(lambda self: self._params)
    model_fn = property(lambda self: self._model_fn)

    def train(
        self,
        input_fn: "Any",
        hooks: "Any" = None,
        steps: "Any" = None,
        max_steps: "Any" = None,
        saving_listeners: "Any" = None,
    ) -> "Any":
        """Train until the input ends, for so many steps more, or up to so many in all."""
        if steps is not None and max_steps is not None:
            raise ValueError("Can not provide both steps and max_steps.")
        if max_steps is not None and self._step_so_far() >= max_steps:
            tf.logging.info("Skipping training since max_steps has already saved.")
            return self
        with tf.Graph().as_default():
            step = self._begin()
            spec = self._built(input_fn, ModeKeys.TRAIN)
            tf.summary.scalar("loss", spec.loss)
            watching = [
                tf.train.NanTensorHook(spec.loss),
                tf.train.LoggingTensorHook(
                    {"loss": spec.loss, "step": step},
                    every_n_iter=self._config.log_step_count_steps,
                ),
            ]
            if steps is not None or max_steps is not None:
                watching.append(tf.train.StopAtStepHook(steps, max_steps))
            watching += list(spec.training_hooks + spec.training_chief_hooks) + list(hooks or ())
            with self._training_session(spec, watching, saving_listeners) as session:
                loss = None
                while not session.should_stop():
                    _, loss = session.run([spec.train_op, spec.loss])
            tf.logging.info("Loss for final step: %s.", loss)
        return self

    def _training_session(self, spec: "Any", hooks: "Any", listeners: "Any") -> "Any":
        config = self._config
        scaffold = spec.scaffold
        if scaffold.saver is None:
            scaffold._saver = tf.train.Saver(
                sharded=True,
                max_to_keep=config.keep_checkpoint_max,
                keep_checkpoint_every_n_hours=config.keep_checkpoint_every_n_hours,
                save_relative_paths=True,
            )
        saver = tf.train.CheckpointSaverHook(
            self._model_dir,
            save_secs=config.save_checkpoints_secs,
            save_steps=config.save_checkpoints_steps,
            scaffold=scaffold,
            listeners=listeners,
        )
        return tf.train.MonitoredTrainingSession(
            checkpoint_dir=self._model_dir,
            scaffold=scaffold,
            hooks=hooks,
            chief_only_hooks=[saver],
            save_checkpoint_secs=None,
            save_checkpoint_steps=None,
            save_summaries_steps=config.save_summary_steps,
            config=config.session_config,
            log_step_count_steps=config.log_step_count_steps,
        )

    def evaluate(
        self,
        input_fn: "Any",
        steps: "Any" = None,
        hooks: "Any" = None,
        checkpoint_path: "Any" = None,
        name: "Any" = None,
    ) -> "Any":
        """The metrics, the mean loss and the step, as a dictionary."""
        with tf.Graph().as_default():
            step = self._begin()
            spec = self._built(input_fn, ModeKeys.EVAL)
            metrics = dict(spec.eval_metric_ops)
            metrics.setdefault("loss", tf.metrics.mean(spec.loss))
            updates = tf.group(*[update for _, update in metrics.values()])
            values = {key: value for key, (value, _) in metrics.items()}
            values["global_step"] = step
            watching = list(spec.evaluation_hooks) + list(hooks or ())

            def read(step_context: "Any") -> "Any":
                # Reading a metric takes no batch from the input, and is no step to the hooks.
                return step_context.session.run(values)

            found = None
            with self._trained_session(spec, watching, checkpoint_path) as session:
                done = 0
                while not session.should_stop() and (steps is None or done < steps):
                    try:
                        session.run(updates)
                    except tf.errors.OutOfRangeError:
                        break
                    done += 1
                    found = session.run_step_fn(read)
            if found is None:
                raise ValueError("evaluate: the input has no batch")
            kept = {key: numpy.asarray(value)[()] for key, value in found.items()}
            tf.logging.info("Saving dict for global step %d: %s", kept["global_step"], kept)
            return kept

    def predict(
        self,
        input_fn: "Any",
        predict_keys: "Any" = None,
        hooks: "Any" = None,
        checkpoint_path: "Any" = None,
        yield_single_examples: bool = True,
    ) -> "Iterator[Any]":
        """The predictions, one example at a time."""
        with tf.Graph().as_default():
            self._begin()
            spec = self._built(input_fn, ModeKeys.PREDICT)
            wanted = spec.predictions
            if predict_keys is not None:
                wanted = {key: wanted[key] for key in predict_keys}
            watching = list(spec.prediction_hooks) + list(hooks or ())
            with self._trained_session(spec, watching, checkpoint_path) as session:
                while not session.should_stop():
                    batch = session.run(wanted)
                    if not yield_single_examples:
                        yield batch
                    elif isinstance(batch, dict):
                        for row in range(len(next(iter(batch.values())))):
                            yield {key: value[row] for key, value in batch.items()}
                    else:
                        for row in batch:
                            yield row

    def _trained_session(self, spec: "Any", hooks: "Any", checkpoint_path: "Any") -> "Any":
        creator = tf.train.ChiefSessionCreator(
            scaffold=spec.scaffold,
            config=self._config.session_config,
            checkpoint_filename_with_path=self._trained(checkpoint_path),
        )
        return tf.train.MonitoredSession(session_creator=creator, hooks=hooks)

    def restored_session(self, spec: "Any", checkpoint_path: "Any" = None) -> "Any":
        """A session of the current graph with what was trained; the graph may still grow."""
        session = tf.Session(config=self._config.session_config)
        saver = spec.scaffold.saver or tf.train.Saver(sharded=True)
        saver.restore(session, self._trained(checkpoint_path))
        session.run(exporting.local_init_op(spec))
        return session

    def _trained(self, checkpoint_path: "Any") -> "Any":
        path = checkpoint_path or self.latest_checkpoint()
        if path is None:
            raise ValueError("Could not find trained model in model_dir: %s." % self._model_dir)
        return path

    def _begin(self) -> "Any":
        if self._config.tf_random_seed is not None:
            tf.set_random_seed(self._config.tf_random_seed)
        return tf.train.get_or_create_global_step()

    def _built(self, input_fn: "Any", mode: "Any") -> "Any":
        features, labels = self._inputs(input_fn, mode)
        return self._called(features, labels, mode)

    def spec_for_serving(self, receiver: "Any") -> "Any":
        """What the model function makes of what is sent to an exported model."""
        return self._called(receiver.features, None, ModeKeys.PREDICT)

    def _called(self, features: "Any", labels: "Any", mode: "Any") -> "Any":
        offered = self._offered(mode)
        given = {name: offered[name] for name in offered if _takes(self._model_fn, name)}
        if _takes(self._model_fn, "labels"):
            given["labels"] = labels
        spec = self._spec(self._model_fn(features=features, **given))
        if not isinstance(spec, EstimatorSpec):
            raise ValueError("model_fn should return an EstimatorSpec.")
        return spec

    def _offered(self, mode: "Any") -> "dict[str, Any]":
        """The arguments that a function of the program gets if it has parameters for them."""
        return {"mode": mode, "params": self._params, "config": self._config}

    def _spec(self, made: "Any") -> "Any":
        """The EstimatorSpec of what a model function returns."""
        return made

    def _inputs(self, input_fn: "Any", mode: "Any") -> "tuple[Any, ...]":
        offered = self._offered(mode)
        result = input_fn(**{name: offered[name] for name in offered if _takes(input_fn, name)})
        if isinstance(result, (tf.data.Dataset, tf.compat.v2.data.Dataset)):
            iterator = tf.data.make_initializable_iterator(result)
            tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
            result = iterator.get_next()
        if isinstance(result, (list, tuple)):
            if len(result) != 2:
                raise ValueError("input_fn should return (features, labels).")
            return tuple(result)
        return result, None

    def latest_checkpoint(self) -> "Any":
        return tf.train.latest_checkpoint(self._model_dir)

    def _step_so_far(self) -> int:
        path = self.latest_checkpoint()
        return int(tf.train.load_variable(path, "global_step")) if path else 0

    def get_variable_names(self) -> "list[Any]":
        return [name for name, _ in tf.train.list_variables(self._model_dir)]

    def get_variable_value(self, name: "Any") -> "Any":
        return tf.train.load_variable(self._model_dir, name)

    def export_saved_model(
        self,
        export_dir_base: "Any",
        serving_input_receiver_fn: "Any",
        assets_extra: "Any" = None,
        as_text: bool = False,
        checkpoint_path: "Any" = None,
        experimental_mode: "Any" = ModeKeys.PREDICT,
        strip_default_attrs: bool = False,
    ) -> bytes:
        """Write the model for serving into a new folder, whose path is the result."""
        if experimental_mode != ModeKeys.PREDICT:
            raise NotImplementedError("Estimator under --tf1 exports a model for serving only")
        with tf.Graph().as_default():
            self._begin()
            receiver = serving_input_receiver_fn()
            spec = self.spec_for_serving(receiver)
            with self.restored_session(spec, checkpoint_path) as session:
                return exporting.write(
                    session, spec, receiver, export_dir_base, assets_extra, as_text
                )

    export_savedmodel = export_saved_model


def _takes(function: "Any", name: "Any") -> bool:
    parameters = inspect.signature(function).parameters.values()
    return any(each.name == name for each in parameters)


TrainSpec = collections.namedtuple("TrainSpec", "input_fn max_steps hooks")
TrainSpec.__new__.__defaults__ = (None, ())

EvalSpec = collections.namedtuple(
    "EvalSpec", "input_fn steps name hooks exporters start_delay_secs throttle_secs"
)
EvalSpec.__new__.__defaults__ = (100, None, (), None, 120, 600)


def train_and_evaluate(
    estimator: "Any", train_spec: "Any", eval_spec: "Any"
) -> "tuple[Any, list[Any]]":
    """On one machine: train to the end, evaluate, and export."""
    estimator.train(train_spec.input_fn, train_spec.hooks, max_steps=train_spec.max_steps)
    found = estimator.evaluate(eval_spec.input_fn, eval_spec.steps, eval_spec.hooks)
    exporters = eval_spec.exporters or ()
    return found, [
        each.export(
            estimator,
            os.path.join(estimator.model_dir, "export", each.name),
            estimator.latest_checkpoint(),
            found,
            True,
        )
        for each in (exporters if isinstance(exporters, (list, tuple)) else [exporters])
    ]

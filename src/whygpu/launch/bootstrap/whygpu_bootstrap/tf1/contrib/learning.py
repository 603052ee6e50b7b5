"""slim.learning: a training operation with its updates, and the loop that runs it."""

import time

import tensorflow.compat.v1 as tf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["add_gradients_summaries", "clip_gradient_norms", "create_train_op"]
__all__ += ["multiply_gradients", "train", "train_step"]

_DEFAULT = object()
"""For `as usual`, where None means `nothing`."""


def clip_gradient_norms(gradients_to_variables: "Any", max_norm: "Any") -> "list[Any]":
    return [(_clipped(each, max_norm), var) for each, var in gradients_to_variables]


def _clipped(gradient: "Any", max_norm: "Any") -> "Any":
    if isinstance(gradient, tf.IndexedSlices):
        values = tf.clip_by_norm(gradient.values, max_norm)
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    return None if gradient is None else tf.clip_by_norm(gradient, max_norm)


def multiply_gradients(grads_and_vars: "Any", gradient_multipliers: "Any") -> "list[Any]":
    """Gradients times the factor that is given for their variable, or for its name."""
    scaled = []
    for gradient, var in grads_and_vars:
        factor = _factor(gradient_multipliers, var)
        if factor is not None:
            if gradient is None:
                raise ValueError("Requested multiple of `None` gradient.")
            if isinstance(gradient, tf.IndexedSlices):
                values = gradient.values * tf.cast(factor, gradient.dtype)
                gradient = tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
            else:
                gradient *= tf.cast(factor, gradient.dtype)
        scaled.append((gradient, var))
    return scaled


def _factor(gradient_multipliers: "Any", var: "Any") -> "Any":
    for key, factor in gradient_multipliers.items():
        if key is var or (isinstance(key, str) and key == var.op.name):
            return factor
    return None


def add_gradients_summaries(grads_and_vars: "Any") -> "list[Any]":
    summaries = []
    for gradient, var in grads_and_vars:
        if gradient is None:
            continue
        values = gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
        summaries.append(tf.summary.histogram(var.op.name + "/gradient", values))
        norm = tf.global_norm([values])
        summaries.append(tf.summary.scalar(var.op.name + "/gradient_norm", norm))
    return summaries


def create_train_op(
    total_loss: "Any",
    optimizer: "Any",
    global_step: "Any" = _DEFAULT,
    update_ops: "Any" = None,
    variables_to_train: "Any" = None,
    clip_gradient_norm: float = 0,
    summarize_gradients: bool = False,
    gate_gradients: "Any" = tf.train.Optimizer.GATE_OP,
    aggregation_method: "Any" = None,
    colocate_gradients_with_ops: bool = False,
    gradient_multipliers: "Any" = None,
    check_numerics: bool = True,
) -> "Any":
    """A tensor whose evaluation does a step of training and gives the loss."""
    if global_step is _DEFAULT:
        global_step = tf.train.get_or_create_global_step()
    if update_ops is None:
        update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    if update_ops:
        with tf.control_dependencies(list(update_ops)):
            total_loss = tf.identity(total_loss)
    gradients = optimizer.compute_gradients(
        total_loss,
        variables_to_train or tf.trainable_variables(),
        gate_gradients=gate_gradients,
        aggregation_method=aggregation_method,
        colocate_gradients_with_ops=colocate_gradients_with_ops,
    )
    if gradient_multipliers:
        gradients = multiply_gradients(gradients, gradient_multipliers)
    if clip_gradient_norm > 0:
        gradients = clip_gradient_norms(gradients, clip_gradient_norm)
    if summarize_gradients:
        add_gradients_summaries(gradients)
    step = optimizer.apply_gradients(gradients, global_step=global_step)
    with tf.name_scope("train_op"):
        if check_numerics:
            total_loss = tf.check_numerics(total_loss, "LossTensor is inf or nan")
        with tf.control_dependencies([step]):
            train_op = tf.identity(total_loss)
    tf.add_to_collection(tf.GraphKeys.TRAIN_OP, train_op)
    return train_op


def train_step(
    sess: "Any", train_op: "Any", global_step: "Any", train_step_kwargs: "Any"
) -> "tuple[Any, bool]":
    """The loss of one step, and whether to stop."""
    begin = time.time()
    loss, step = sess.run([train_op, global_step])
    seconds = time.time() - begin
    if "should_log" in train_step_kwargs and sess.run(train_step_kwargs["should_log"]):
        tf.logging.info("global step %d: loss = %.4f (%.3f sec/step)", step, loss, seconds)
    if "should_stop" in train_step_kwargs:
        return loss, sess.run(train_step_kwargs["should_stop"])
    return loss, False


def train(
    train_op: "Any",
    logdir: "Any",
    train_step_fn: "Any" = train_step,
    train_step_kwargs: "Any" = _DEFAULT,
    log_every_n_steps: int = 1,
    graph: "Any" = None,
    master: str = "",
    is_chief: bool = True,
    global_step: "Any" = None,
    number_of_steps: "Any" = None,
    init_op: "Any" = _DEFAULT,
    init_feed_dict: "Any" = None,
    local_init_op: "Any" = _DEFAULT,
    init_fn: "Any" = None,
    ready_op: "Any" = _DEFAULT,
    summary_op: "Any" = _DEFAULT,
    save_summaries_secs: int = 600,
    summary_writer: "Any" = _DEFAULT,
    startup_delay_steps: int = 0,
    saver: "Any" = None,
    save_interval_secs: int = 600,
    sync_optimizer: "Any" = None,
    session_config: "Any" = None,
    session_wrapper: "Any" = None,
    trace_every_n_steps: "Any" = None,
    ignore_live_threads: bool = False,
) -> "Any":
    """Run a training operation until enough steps are done or the input ends; gives the loss."""
    if sync_optimizer is not None or startup_delay_steps or trace_every_n_steps is not None:
        raise NotImplementedError(
            "slim.learning.train under --tf1 has neither sync_optimizer, startup_delay_steps "
            "nor trace_every_n_steps"
        )
    if number_of_steps is not None and number_of_steps <= 0:
        raise ValueError("`number_of_steps` must be either None or a positive number.")
    graph = graph or tf.get_default_graph()
    with graph.as_default():
        if global_step is None:
            global_step = tf.train.get_or_create_global_step()
        if train_step_kwargs is _DEFAULT:
            train_step_kwargs = _questions(global_step, number_of_steps, log_every_n_steps)
        supervisor = tf.train.Supervisor(
            graph=graph,
            is_chief=is_chief,
            logdir=logdir,
            init_op=_given(init_op, tf.global_variables_initializer),
            init_feed_dict=init_feed_dict,
            local_init_op=_given(local_init_op, _local_init_op),
            ready_op=_given(ready_op, tf.report_uninitialized_variables),
            summary_op=_given(summary_op, tf.summary.merge_all),
            summary_writer=_given(summary_writer, lambda: tf.train.Supervisor.USE_DEFAULT),
            global_step=global_step,
            saver=saver or tf.train.Saver(),
            save_summaries_secs=save_summaries_secs,
            save_model_secs=save_interval_secs,
            init_fn=init_fn,
        )
    loss = None
    with supervisor.managed_session(
        master, start_standard_services=False, config=session_config
    ) as session:
        tf.logging.info("Starting Session.")
        wrapped = session if session_wrapper is None else session_wrapper(session)
        if is_chief and logdir:
            supervisor.start_standard_services(session)
        threads = supervisor.start_queue_runners(session)
        tf.logging.info("Starting Queues.")
        try:
            stop = False
            while not (stop or supervisor.should_stop()):
                loss, stop = train_step_fn(wrapped, train_op, global_step, train_step_kwargs)
            tf.logging.info("Stopping Training.")
            supervisor.request_stop()
        except tf.errors.OutOfRangeError as error:
            tf.logging.info("Caught OutOfRangeError. Stopping Training. %s", error)
        if logdir and is_chief:
            tf.logging.info("Finished training! Saving model to disk.")
            supervisor.saver.save(session, supervisor.save_path, global_step=supervisor.global_step)
            supervisor.stop(
                threads, close_summary_writer=True, ignore_live_threads=ignore_live_threads
            )
    return loss


def _questions(global_step: "Any", number_of_steps: "Any", every: int) -> "dict[str, Any]":
    """What each step asks the graph: whether to stop, and whether to log."""
    end = tf.constant(False)
    if number_of_steps:
        end = tf.greater_equal(global_step, number_of_steps)
    questions = {"should_stop": end}
    if every > 0:
        questions["should_log"] = tf.equal(tf.mod(global_step, every), 0)
    return questions


def _local_init_op() -> "Any":
    return tf.group(tf.local_variables_initializer(), tf.tables_initializer())


def _given(value: "Any", usual: "Any") -> "Any":
    return usual() if value is _DEFAULT else value

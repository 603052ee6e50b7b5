"""slim.evaluation: run metrics over a data set, with the variables of a checkpoint."""

import time

import tensorflow.compat.v1 as tf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["evaluate_once", "evaluation_loop", "wait_for_new_checkpoint"]

_DEFAULT = object()


def evaluate_once(
    master: "Any",
    checkpoint_path: "Any",
    logdir: "Any",
    num_evals: int = 1,
    initial_op: "Any" = None,
    initial_op_feed_dict: "Any" = None,
    eval_op: "Any" = None,
    eval_op_feed_dict: "Any" = None,
    final_op: "Any" = None,
    final_op_feed_dict: "Any" = None,
    summary_op: "Any" = _DEFAULT,
    summary_op_feed_dict: "Any" = None,
    variables_to_restore: "Any" = None,
    session_config: "Any" = None,
    hooks: "Any" = None,
) -> "Any":
    """Run eval_op so many times and give the value of final_op."""
    if summary_op is _DEFAULT:
        summary_op = tf.summary.merge_all()
    scaffold = tf.train.Scaffold(
        init_op=initial_op,
        init_feed_dict=initial_op_feed_dict,
        saver=tf.train.Saver(variables_to_restore) if variables_to_restore is not None else None,
    )
    creator = tf.train.ChiefSessionCreator(
        scaffold=scaffold,
        checkpoint_filename_with_path=checkpoint_path,
        master=master,
        config=session_config,
    )
    step = tf.train.get_or_create_global_step()
    with tf.train.MonitoredSession(creator, hooks) as session:
        for number in range(num_evals if eval_op is not None else 0):
            session.run(eval_op, eval_op_feed_dict)
            tf.logging.info("Evaluation [%d/%d]", number + 1, num_evals)

        def read(step_context: "Any") -> "Any":
            # It is no step to the hooks.
            plain = step_context.session
            if summary_op is not None:
                text, at = plain.run([summary_op, step], summary_op_feed_dict)
                writer = tf.summary.FileWriterCache.get(logdir)
                writer.add_summary(text, at)
                writer.flush()
            return plain.run(final_op, final_op_feed_dict) if final_op is not None else None

        return session.run_step_fn(read)


def wait_for_new_checkpoint(
    checkpoint_dir: "Any",
    last_checkpoint: "Any" = None,
    seconds_to_sleep: float = 1,
    timeout: "Any" = None,
) -> "Any":
    """The path of a checkpoint that is newer than the last one; None after the timeout."""
    end = None if timeout is None else time.time() + timeout
    while True:
        path = tf.train.latest_checkpoint(checkpoint_dir)
        if path is not None and path != last_checkpoint:
            return path
        if end is not None and time.time() + seconds_to_sleep > end:
            return None
        time.sleep(seconds_to_sleep)


def evaluation_loop(
    master: "Any",
    checkpoint_dir: "Any",
    logdir: "Any",
    *args: "Any",
    eval_interval_secs: float = 60,
    max_number_of_evaluations: "Any" = None,
    timeout: "Any" = None,
    timeout_fn: "Any" = None,
    **options: "Any",
) -> "Any":
    """Evaluate each new checkpoint of a folder."""
    found, path, done = None, None, 0
    while max_number_of_evaluations is None or done < max_number_of_evaluations:
        path_now = wait_for_new_checkpoint(checkpoint_dir, path, timeout=timeout)
        if path_now is None:
            if timeout_fn is None or timeout_fn():
                return found
            continue
        began, path = time.time(), path_now
        found = evaluate_once(master, path, logdir, *args, **options)
        done += 1
        time.sleep(max(0.0, eval_interval_secs - (time.time() - began)))
    return found

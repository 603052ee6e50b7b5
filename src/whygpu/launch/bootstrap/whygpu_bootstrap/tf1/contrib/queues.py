"""slim.queues: the queues of a graph, filled while a block runs."""

import contextlib

import tensorflow.compat.v1 as tf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

__all__ = ["QueueRunners"]


@contextlib.contextmanager
def QueueRunners(session: "Any") -> "Iterator[None]":  # noqa: N802
    session = session or tf.get_default_session()
    coordinator = tf.train.Coordinator()
    threads = []
    for runner in tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS):
        threads += runner.create_threads(session, coord=coordinator, daemon=True, start=True)
    try:
        yield
    finally:
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=120)

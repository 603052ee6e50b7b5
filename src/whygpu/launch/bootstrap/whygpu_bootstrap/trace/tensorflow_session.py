"""Counts what TensorFlow 1 sessions run, from a sample of the steps of each kind.

A kind of step is a session with the same fetches and feeds. Its 1st, 2nd, 4th, 8th ... run is
also asked which operations ran where and how long. The others are only counted.
"""

import threading
import weakref

from whygpu_bootstrap import process_record
from whygpu_bootstrap.trace import tensorflow_graphs as placed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

MOST_STEPS = 500
"""The most kinds of steps to watch; a program with more adds operations while it runs."""


class Step:
    """Runs of one kind, and what the sampled ones did."""

    def __init__(self) -> None:
        self.runs = 0
        self.sampled = 0
        self.first: "dict[tuple[str, str], Any]" = {}
        self.later: "dict[tuple[str, str], Any]" = {}
        self.placement = placed.Placement()
        self.operations: "dict[Any, Any]" = {}
        self.sizes: "dict[Any, int]" = {}

    def is_sample(self) -> bool:
        """Whether the next run is sampled: the 1st, 2nd, 4th, 8th ..."""
        return self.runs & (self.runs - 1) == 0

    def totals(self) -> "dict[tuple[str, str], list[Any]]":
        """{(op, device): [count, seconds or None]} for all runs, from the sampled ones."""
        if not self.first:
            return {key: [count * self.runs, None] for key, count in self.placement.counts.items()}
        found = {key: list(value) for key, value in self.first.items()}
        later = self.later if self.sampled > 1 else self.first
        share = (self.runs - 1.0) / max(self.sampled - 1, 1)
        for key, (count, seconds) in later.items():
            cell = found.setdefault(key, [0, 0.0])
            cell[0] += count * share
            cell[1] += seconds * share
        return found

    def moved(self) -> "dict[tuple[str, str], list[Any]]":
        """{(source, target): [transfers, bytes or None]} for all runs, by the last sampled one."""
        found: "dict[tuple[str, str], list[Any]]" = {}
        for transfer in self.placement.transfers:
            cell = found.setdefault((transfer.source, transfer.target), [0, 0])
            cell[0] += self.runs
            size = self.sizes.get((transfer.producer, transfer.slot))
            cell[1] = None if size is None or cell[1] is None else cell[1] + size * self.runs
        return found


class Sessions:
    """Watches every session of the process."""

    def __init__(self, session_module: "Any", protos: "Any") -> None:
        self._base = session_module.BaseSession
        self._protos = protos
        self._inside = threading.local()
        self.clear()

    def clear(self) -> None:
        self._steps: "Any" = weakref.WeakKeyDictionary()
        self.steps: "list[Any]" = []
        self.uncounted = 0
        self.devices: "set[Any]" = set()

    def install(self) -> None:
        base = self._base
        base.run = self._watching_run(base.run)
        base.make_callable = self._watching_make_callable(base.make_callable)
        if hasattr(base, "_Callable"):
            self._watch_callables(base._Callable)

    def _watching_run(self, run: "Callable[..., Any]") -> "Callable[..., Any]":
        def watched(
            session: "Any",
            fetches: "Any",
            feed_dict: "Any" = None,
            options: "Any" = None,
            run_metadata: "Any" = None,
        ) -> "Any":
            step = None
            with process_record.noted("watching a session"):
                step = self._step(session, (_shape(fetches), _feeds(feed_dict)))
            if step is None:
                return run(session, fetches, feed_dict, options, run_metadata)
            step.runs += 1
            if not step.is_sample():
                return run(session, fetches, feed_dict, options, run_metadata)
            asked = self._protos.RunOptions()
            seen = self._protos.RunMetadata()
            asks_for = self._ask(asked, options)
            result = run(session, fetches, feed_dict, asked, seen)
            with process_record.noted("reading where a session's operations ran"):
                self._learn(step, session, seen)
            if run_metadata is not None:
                _hand_over(seen, run_metadata, asks_for)
            return result

        watched.__name__ = run.__name__
        watched.__doc__ = run.__doc__
        return watched

    def _watching_make_callable(self, make_callable: "Callable[..., Any]") -> "Callable[..., Any]":
        """The callable bypasses run(); its first call is a run instead, with the same result.

        With a feed list it calls run() itself.
        """

        def watched(
            session: "Any", fetches: "Any", feed_list: "Any" = None, accept_options: bool = False
        ) -> "Any":
            inner = make_callable(session, fetches, feed_list, accept_options)
            if feed_list is not None:
                return inner
            key: "Any" = (_shape(fetches), frozenset())

            def call(**options: "Any") -> "Any":
                step = self._steps.get(session, {}).get(key)
                if step is None:
                    return session.run(fetches, **options)
                step.runs += 1
                return inner(**options)

            return call

        watched.__name__ = make_callable.__name__
        watched.__doc__ = make_callable.__doc__
        return watched

    def _watch_callables(self, callable_type: "Any") -> None:
        """Keras on TensorFlow 1 trains with these. A second one, with questions, makes a sample."""
        create, call = callable_type.__init__, callable_type.__call__

        def __init__(instance: "Any", session: "Any", callable_options: "Any") -> None:  # noqa: N807
            create(instance, session, callable_options)
            instance._whygpu = None
            if not getattr(self._inside, "sampling", False):
                with process_record.noted("watching a session's callable"):
                    step = self._step(session, ("callable", id(instance)))
                    if step is not None:
                        instance._whygpu = (step, callable_options.SerializeToString())

        def __call__(instance: "Any", *arguments: "Any", **options: "Any") -> "Any":  # noqa: N807
            watched = getattr(instance, "_whygpu", None)
            if watched is None:
                return call(instance, *arguments, **options)
            step, serialized = watched
            step.runs += 1
            sample = self._sampling_twin(instance, serialized) if step.is_sample() else None
            if sample is None:
                return call(instance, *arguments, **options)
            twin, asks_for = sample
            seen = self._protos.RunMetadata()
            result = call(twin, *arguments, run_metadata=seen)
            with process_record.noted("reading where a session's operations ran"):
                self._learn(step, instance._session, seen)
            if options.get("run_metadata") is not None:
                _hand_over(seen, options["run_metadata"], asks_for)
            return result

        callable_type.__init__ = __init__
        callable_type.__call__ = __call__

    def _sampling_twin(self, instance: "Any", serialized: "Any") -> "Any":
        with process_record.noted("sampling a session's callable"):
            wanted = self._protos.CallableOptions()
            wanted.ParseFromString(serialized)
            asks_for = self._ask(wanted.run_options, wanted.run_options)
            self._inside.sampling = True
            try:
                return type(instance)(instance._session, wanted), asks_for
            finally:
                self._inside.sampling = False
        return None

    def _step(self, session: "Any", key: "Any") -> "Step | None":
        """The kind of step; None if it cannot be watched."""
        if _is_remote(session) or _refuses_graphs(session):
            self.uncounted += 1
            return None
        steps = self._steps.setdefault(session, {})
        step = steps.get(key)
        if step is None:
            if len(self.steps) >= MOST_STEPS:
                self.uncounted += 1
                return None
            step = steps[key] = Step()
            self.steps.append(step)
        return step

    def _ask(self, wanted: "Any", options: "Any") -> "Any":
        """Add our questions to the program's; returns what it asked for itself."""
        if options is not None and options is not wanted:
            wanted.CopyFrom(options)
        theirs = (wanted.output_partition_graphs, wanted.trace_level != wanted.NO_TRACE)
        wanted.output_partition_graphs = True
        if wanted.trace_level == wanted.NO_TRACE:
            wanted.trace_level = wanted.SOFTWARE_TRACE
        return theirs

    def _learn(self, step: "Step", session: "Any", seen: "Any") -> None:
        if not step.operations:
            self._read_graphs(step, session, seen.partition_graphs)
        cells = step.first if step.sampled == 0 else step.later
        step.sampled += 1
        for device_stats in seen.step_stats.dev_stats:
            if "/stream:" in device_stats.device or "memcpy" in device_stats.device:
                continue
            device = placed.label(device_stats.device)
            for stats in device_stats.node_stats:
                for output in stats.output:
                    held = output.tensor_description.allocation_description
                    step.sizes[stats.node_name, output.slot] = held.requested_bytes
                op = step.operations.get(stats.node_name)
                if op is not None:
                    cell = cells.setdefault((op, device), [0, 0.0])
                    cell[0] += 1
                    cell[1] += (stats.op_end_rel_micros - stats.op_start_rel_micros) / 1e6

    def _read_graphs(self, step: "Step", session: "Any", graphs: "Any") -> None:
        self.devices.update(device.name for device in session.list_devices())
        placed.add_graphs(step.placement, graphs, {}, _as_written(session.graph))
        not_work = placed.NOT_WORK | placed.SENDS | placed.RECEIVES
        for graph in graphs:
            for node in graph.node:
                if node.op not in not_work:
                    step.operations[node.name] = placed.plain(node.op)

    def gpus(self) -> "list[str] | None":
        """Labels of the GPUs of the sessions; None if no session has run."""
        if not self.steps or not self.devices:
            return None
        labels = sorted({placed.label(name) for name in self.devices})
        return [name for name in labels if name.startswith("gpu")]


def _feeds(feed_dict: "Any") -> "frozenset[Any]":
    return frozenset(_shape(key) for key in feed_dict or ())


def _shape(fetches: "Any") -> "Any":
    """A key for fetches. The graph that the session holds keeps the identities valid."""
    if isinstance(fetches, str):
        return fetches
    if isinstance(fetches, (list, tuple)):
        return tuple(_shape(item) for item in fetches)
    if isinstance(fetches, dict):
        return tuple((str(key), _shape(value)) for key, value in fetches.items())
    return id(fetches)


def _as_written(graph: "Any") -> "Callable[[str], Any]":
    def written(name: str) -> "Any":
        try:
            operation = graph.get_operation_by_name(name)
        except (KeyError, ValueError):
            return placed.Written("", "")
        return placed.Written(operation.type, operation.device)

    return written


def _is_remote(session: "Any") -> bool:
    return bool(getattr(session, "_target", None))


def _refuses_graphs(session: "Any") -> bool:
    """A session may be configured to keep no graphs; to ask such a session is an error."""
    experimental = getattr(getattr(session, "_config", None), "experimental", None)
    return any(
        getattr(experimental, name, False)
        for name in ("disable_output_partition_graphs", "optimize_for_static_graph")
    )


def _hand_over(seen: "Any", theirs: "Any", asked: "Any") -> None:
    """Give the program the answers to its own questions only."""
    asked_graphs, asked_trace = asked
    if not asked_graphs:
        seen.ClearField("partition_graphs")
    if not asked_trace:
        seen.ClearField("step_stats")
    theirs.CopyFrom(seen)

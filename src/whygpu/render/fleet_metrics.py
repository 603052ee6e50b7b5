"""A report on many machines as metrics for Prometheus, so that existing alerts can use it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, get_args

from whygpu.model.fleet import FleetReport, LossKind
from whygpu.model.report import MachineVerdict


class FleetMetrics:
    """What Prometheus' registry asks for metrics. Whoever has a newer report replaces it."""

    def __init__(self, report: FleetReport, made: float) -> None:
        self.report = report
        self.made = made
        """When the report was made, in seconds since 1970."""

    def collect(self) -> Iterator[Any]:
        """The families, each with all its samples."""
        report = self.report
        yield _gauge(
            "whygpu_fleet_report_time_seconds", "When the report was made.", [((), self.made)]
        )
        verdicts = {count.verdict: count.nodes for count in report.verdicts}
        yield _gauge(
            "whygpu_fleet_nodes",
            "Nodes by what their frameworks do.",
            [((verdict,), verdicts.get(verdict, 0)) for verdict in get_args(MachineVerdict)],
            ("verdict",),
        )
        lost = Counter(loss.kind for loss in report.lost)
        yield _gauge(
            "whygpu_fleet_nodes_lost",
            "Nodes without a usable snapshot.",
            [((kind,), lost[kind]) for kind in get_args(LossKind)],
            ("kind",),
        )
        yield _gauge(
            "whygpu_fleet_cause_nodes",
            "Nodes with this root cause.",
            [
                ((group.code, group.cause, group.severity), len(group.nodes))
                for group in report.causes
            ],
            ("code", "cause", "severity"),
        )
        yield from self._of_nodes()

    def _of_nodes(self) -> Iterator[Any]:
        report = self.report
        yield _gauge(
            "whygpu_node_cause",
            "1 for a root cause on a node.",
            [
                ((node, group.code, group.cause, group.severity), 1)
                for group in report.causes
                for node in group.nodes
            ],
            ("node", "code", "cause", "severity"),
        )
        yield _gauge(
            "whygpu_node_odd",
            "1 for a fact in which a node differs from most comparable nodes.",
            [
                ((node, drift.fact, other.value, drift.usual), 1)
                for drift in report.drift
                if drift.usual is not None
                for other in drift.others
                for node in other.nodes
            ],
            ("node", "fact", "value", "usual"),
        )
        yield _gauge(
            "whygpu_fleet_gpu_speed",
            "Median speed under load of the GPUs of a model, in bytes or operations per second.",
            [((each.model, each.rate), each.median) for each in report.speeds],
            ("model", "rate"),
        )
        yield _gauge(
            "whygpu_node_gpu_slow",
            "Speed of a slow GPU as a share of the median of its model.",
            [
                ((each.node, str(each.gpu), each.model, each.rate), each.share)
                for each in report.slow
            ],
            ("node", "gpu", "model", "rate"),
        )
        yield _gauge(
            "whygpu_node_lost",
            "1 for a node without a usable snapshot.",
            [((loss.node, loss.kind), 1) for loss in report.lost],
            ("node", "kind"),
        )


def _gauge(
    name: str,
    text: str,
    samples: Iterable[tuple[tuple[str, ...], float]],
    labels: tuple[str, ...] = (),
) -> Any:
    from prometheus_client.core import GaugeMetricFamily

    family = GaugeMetricFamily(name, text, labels=labels)
    for values, number in samples:
        family.add_metric(values, number)
    return family


def registry(metrics: FleetMetrics) -> Any:
    from prometheus_client import CollectorRegistry

    made = CollectorRegistry(auto_describe=False)
    made.register(metrics)
    return made


def render(report: FleetReport, made: float) -> str:
    """As the textfile collector of Prometheus' node exporter reads it."""
    from prometheus_client import generate_latest

    text: bytes = generate_latest(registry(FleetMetrics(report, made)))
    return text.decode()

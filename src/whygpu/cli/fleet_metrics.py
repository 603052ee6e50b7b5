"""Writes the metrics of a fleet report to a file, or serves them to Prometheus."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from whygpu.cli import output
from whygpu.cli.arguments import seconds
from whygpu.errors import UsageError

if TYPE_CHECKING:
    from whygpu.model.fleet import FleetReport

LOCAL = "127.0.0.1"
"""Other machines reach the metrics only if the user names an address of this one."""
EVERY = 300.0
LONGEST_WAIT = 86400.0
_START = b"# HELP "
"""Each file of metrics begins with it."""


class Endpoint(NamedTuple):
    address: str
    port: int


def add_metrics_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--metrics",
        metavar="FILE",
        help="also write metrics for the textfile collector of Prometheus' node exporter",
    )
    parser.add_argument(
        "--serve",
        metavar="PORT",
        type=endpoint,
        help="serve the metrics until Ctrl-C, to this machine only; ADDRESS:PORT for others",
    )
    parser.add_argument(
        "--every",
        metavar="SECONDS",
        type=seconds,
        default=EVERY,
        help=f"with --serve: how often to make a new report (default: {EVERY:.0f})",
    )


def endpoint(text: str) -> Endpoint:
    address, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a port, such as 9400")
    return Endpoint(address.strip("[]") or LOCAL, int(port))


def require_client(options: argparse.Namespace) -> None:
    """Before the work, which can take minutes."""
    if options.metrics is None and options.serve is None:
        return
    if not 0 < options.every <= LONGEST_WAIT:
        raise UsageError("--every: expected a number of seconds between 0 and a day")
    path = output.require_writable("--metrics", options.metrics)
    if path is not None and output.is_something_else(path, _START):
        raise UsageError(
            f"--metrics {options.metrics}: it exists and holds no metrics; choose another name"
        )
    try:
        import prometheus_client  # noqa: F401
    except ImportError:
        raise UsageError(
            "--metrics and --serve need the package prometheus-client: "
            "`pip install 'whygpu[metrics]'`"
        ) from None


def save(path: str, report: FleetReport, names: tuple[str, ...]) -> None:
    from whygpu.render.fleet_metrics import render

    output.save(path, report, partial(render, made=time.time()), is_json=False, names=names)


def serve(
    where: Endpoint,
    every: float,
    report: FleetReport,
    names: tuple[str, ...],
    again: Callable[[], FleetReport],
) -> None:
    """Serve until the process is interrupted, with a new report at this interval in seconds."""
    from prometheus_client import start_http_server

    from whygpu.render.fleet_metrics import FleetMetrics, registry

    def public(value: FleetReport) -> FleetReport:
        return output.public(value, names, exact_names=True)

    metrics = FleetMetrics(public(report), time.time())
    try:
        server, thread = start_http_server(where.port, where.address, registry(metrics))
    except OSError as error:
        raise UsageError(
            f"--serve {where.address}:{where.port}: {error.strerror or error}; choose another port"
        ) from error
    port = server.server_address[1]
    output.say(f"serving http://{where.address}:{port}/metrics; Ctrl-C ends it")
    try:
        while True:
            time.sleep(every)
            try:
                metrics.report, metrics.made = public(again()), time.time()
            except UsageError as error:
                # The time of the report shows that the old one is still served.
                output.say(str(error))
    finally:
        server.shutdown()
        thread.join()

"""How long `whygpu fleet` takes, and how much memory, against the number of nodes and of logs.

    python -m benchmarks.fleet nodes 100 1000 10000
    python -m benchmarks.fleet logs 1000 100000 --workers 1 2 --ray 1 2

The snapshots are recorded machines with noise and planted outliers (tests/fleet/made.py), and each
report is compared with what was planted: every planted node must be named, and no other. The logs
are those of benchmarks/job_logs.py: recorded failures among healthy jobs, some of them empty,
binary or unreadable. `grep -F` looks for one word in the same files. `--texts` adds the logs of a
file with a JSON object per line, each under the key "log". `--folder` keeps the logs for another
run.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from benchmarks.job_logs import ODD, make_logs
from tests.fleet.made import Planted, make_fleet

WHYGPU = str(pathlib.Path(sys.executable).with_name("whygpu"))


class Measured(NamedTuple):
    seconds: float
    processor_seconds: float
    """Of all processes: on a busy machine, this says more than the time that passed."""
    peak_bytes: int
    """Of the largest process."""
    output: str


def measured(command: Sequence[str]) -> Measured:
    """Run in a process of its own, so that the peak is that of this command."""
    code = (
        "import json, resource, subprocess, sys, time; began = time.perf_counter(); "
        "done = subprocess.run(sys.argv[1:], capture_output=True, text=True); "
        "passed = time.perf_counter() - began; "
        "used = resource.getrusage(resource.RUSAGE_CHILDREN); "
        "print(json.dumps([passed, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, "
        "done.returncode, done.stdout, done.stderr]))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, *command], capture_output=True, text=True, check=True
    )
    seconds, processor, peak, returncode, output, errors = json.loads(run.stdout)
    if returncode not in (0, 1, 4):
        raise SystemExit(f"{' '.join(command)}: exit code {returncode}\n{errors}")
    return Measured(seconds, processor, peak, output)


def nodes(counts: Sequence[int]) -> None:
    print("| nodes | seconds | CPU ms per node | largest process | planted | named | invented |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for count in counts:
        with tempfile.TemporaryDirectory() as name:
            planted = make_fleet(pathlib.Path(name), count)
            result = measured([WHYGPU, "fleet", "report", "--json", name])
        wanted, named = _wanted(planted), _named(json.loads(result.output))
        print(
            f"| {count:,} | {result.seconds:.1f} | {1000 * result.processor_seconds / count:.1f} "
            f"| {result.peak_bytes >> 20} MiB | {len(wanted)} | {len(wanted & named)} "
            f"| {len(named - wanted)} |",
            flush=True,
        )


def _wanted(planted: Planted) -> set[tuple[str, str]]:
    odd = {
        (fact, node)
        for fact, values in planted.odd.items()
        for nodes in values.values()
        for node in nodes
    }
    # The kernel module has the version of the driver.
    odd |= {("kernel module", node) for fact, node in odd if fact == "driver"}
    causes = {(cause, node) for cause, found in planted.causes.items() for node in found}
    return odd | causes | {("unreadable", node) for node in planted.unreadable}


def _named(report: dict[str, Any]) -> set[tuple[str, str]]:
    odd = {
        (drift["fact"], node)
        for drift in report["drift"]
        for other in drift["others"]
        for node in other["nodes"]
    }
    causes = {(group["cause"], node) for group in report["causes"] for node in group["nodes"]}
    return odd | causes | {(loss["kind"], loss["node"]) for loss in report["lost"]}


def logs(
    counts: Sequence[int],
    workers: Sequence[int],
    ray: Sequence[int],
    texts: Sequence[bytes],
    kept: pathlib.Path | None,
) -> None:
    print("| logs | MB | command | seconds | logs per second | CPU ms per log | largest process |")
    print("| ---: | ---: | --- | ---: | ---: | ---: | ---: |")
    for count in counts:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name) if kept is None else kept / str(count)
            if not any(folder.glob("*")):
                make_logs(folder, count, texts=texts)
            size = sum(path.stat().st_size for path in folder.rglob("*.log*") if path.exists())
            start = f"| {count:,} | {size / 1e6:,.0f} "
            words = ["grep", "-rlF", "CUDA_VISIBLE_DEVICES", str(folder)]
            _row(f"{start}| `grep -rlF WORD`", words, count)
            for number in workers:
                title = f"{start}| `--workers {number}`"
                _explain(title, ["--workers", str(number)], folder, count)
            for number in ray:
                with _ray_cluster(number) as address:
                    title = f"{start}| `--ray`, a node with {number} CPU"
                    _explain(title, ["--ray", address], folder, count)


def _explain(title: str, words: Sequence[str], folder: pathlib.Path, count: int) -> None:
    command = [WHYGPU, "fleet", "explain", "--json", *words, str(folder)]
    found = json.loads(_row(title, command, count).output)
    if found["files"] != count or found["unread_files"] != count // ODD:
        raise SystemExit(
            f"{found['unread_files']} of {found['files']} logs were not read; "
            f"{count // ODD} of {count} are unreadable"
        )


@contextmanager
def _ray_cluster(processors: int) -> Iterator[str]:
    """A cluster of one node on this machine. Its memory is not that of the command."""
    from ray.cluster_utils import Cluster

    made: Any = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": processors, "include_dashboard": False},
    )
    try:
        yield made.address
    finally:
        made.shutdown()


def _row(title: str, command: Sequence[str], count: int) -> Measured:
    result = measured(command)
    print(
        f"{title} | {result.seconds:.1f} | {count / result.seconds:,.0f} "
        f"| {1000 * result.processor_seconds / count:.2f} | {result.peak_bytes >> 20} MiB |",
        flush=True,
    )
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    what = parser.add_subparsers(dest="what", required=True)
    of_nodes = what.add_parser("nodes")
    of_nodes.add_argument("counts", type=int, nargs="+")
    of_logs = what.add_parser("logs")
    of_logs.add_argument("counts", type=int, nargs="+")
    of_logs.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    of_logs.add_argument("--ray", type=int, nargs="*", default=[])
    of_logs.add_argument("--texts", type=pathlib.Path)
    of_logs.add_argument("--folder", type=pathlib.Path)
    options = parser.parse_args()
    if options.what == "nodes":
        nodes(options.counts)
    else:
        texts = options.texts.read_text().splitlines() if options.texts else ()
        more = [json.loads(line)["log"].encode() for line in texts]
        logs(options.counts, options.workers, options.ray, more, options.folder)


if __name__ == "__main__":
    main()

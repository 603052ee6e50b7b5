"""The connection to a Ray cluster, for as long as something is done there."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

from whygpu.errors import UsageError
from whygpu.model.outside_text import excerpt, one_line

_TO_CONNECT = 10.0


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """The module `ray`, connected to the cluster. A connection of the program itself is used."""
    try:
        import ray
    except ImportError:
        raise UsageError(
            "--ray needs the package ray, in the version of the cluster: "
            "`pip install 'whygpu[ray]'`"
        ) from None
    # A thread of Ray prints what happens to nodes. Here, that is part of the answer.
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        was_connected = ray.is_initialized()
        if not was_connected:
            _connect(ray, address)
        try:
            yield ray
        finally:
            if not was_connected:
                ray.shutdown()


def _connect(ray: Any, address: str) -> None:
    try:
        _require_listener(address)
        ray.init(
            address=address,
            log_to_driver=False,
            configure_logging=False,
            namespace="whygpu-fleet",
        )
    except (OSError, ValueError, RuntimeError) as error:
        raise UsageError(
            f"cannot reach the Ray cluster {address}: {excerpt(one_line(str(error)), 200)}; "
            "run it on a node of the cluster, or give an address: --ray HOST:6379"
        ) from error


def _require_listener(address: str) -> None:
    """Ray itself tries for minutes to reach an address where nothing listens."""
    host, separator, port = address.removeprefix("ray://").rpartition(":")
    if separator and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_TO_CONNECT).close()

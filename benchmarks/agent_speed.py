"""How long an agent waits: from starting `whygpu mcp` to a cause with evidence.

    python -m benchmarks.agent_speed [--runs 5]

Starts a server for each run, asks it with the SDK's own client, and prints medians. The check with
frameworks needs the target `torch` (`make targets`) and is left out without it.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import statistics
import time
from collections import defaultdict

import anyio
from mcp import Client, StdioServerParameters

from tests.targets import folder
from whygpu.host.own_process import verb_command

_LOG = pathlib.Path(__file__).parent.parent / "tests" / "logs" / "h200-torch-hidden.log"


async def measure(seconds: dict[str, list[float]]) -> None:
    command, *words = verb_command(("mcp",))
    server = StdioServerParameters(command=command, args=words)
    began = time.perf_counter()

    def note(step: str) -> None:
        nonlocal began
        seconds[step].append(time.perf_counter() - began)
        began = time.perf_counter()

    async with Client(server) as client:
        note("start the server and connect")
        explained = await client.call_tool("explain", {"path": str(_LOG)})
        assert "WG401" in str(explained.structured_content)
        note("explain: a log to its cause")
        await client.call_tool("check", {"probe": False})
        note("check without running frameworks")
        if (folder() / "torch").exists():
            await client.call_tool("check", {"python": str(folder() / "torch")})
            note("check of an environment with PyTorch")
        await client.call_tool("rule", {"name": "WG401"})
        note("rule: the page of the cause")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    seconds: dict[str, list[float]] = defaultdict(list)
    for _ in range(runs):
        anyio.run(measure, seconds)
    print(f"medians of {runs} runs; load of the machine {os.getloadavg()[0]:.1f}")
    for step, taken in seconds.items():
        print(f"{statistics.median(taken):6.2f} s  {step}")


if __name__ == "__main__":
    main()

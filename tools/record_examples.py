"""Record the machines that the documentation shows, on machines of the fault lab.

Run it after a change of what a snapshot holds: python -m tools.record_examples
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.lab.bench import Bench
from tests.lab.scenario import Scenario, before_commands, lay_out
from tests.lab.scenarios.libraries import SCENARIOS

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "examples"
RECORDED = {
    "no-cuda-libraries": "tensorflow-without-cuda.json",
    "official-install-of-2.21": "tensorflow-2.21.json",
    "tensorflow-1.15-without-cuda-10": "tensorflow-1.15.json",
}
"""Scenario of the lab to file."""


def main() -> None:
    for scenario in SCENARIOS:
        if scenario.name in RECORDED:
            (FOLDER / RECORDED[scenario.name]).write_text(_recorded(scenario), encoding="utf-8")


def _recorded(scenario: Scenario) -> str:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before = before_commands(scenario, folder)
        bench = Bench(scenario.target, folder)
        try:
            lay_out(scenario, bench)
            command = [sys.executable, "-m", "whygpu", "snapshot", "--python", bench.python]
            done = subprocess.run(
                [*before, *command], env=bench.environ, cwd=folder, capture_output=True, check=True
            )
        finally:
            bench.close()
        # Folders that a reader knows, and the same ones each time.
        places = {
            str(bench.environment): "~/venv",
            str(bench.environment.resolve()): "~/venv",
            str(folder / "driver"): "/opt/stub-driver",
            str(folder): "/opt/lab",
        }
    text = done.stdout.decode("utf-8")
    for place, shown in places.items():
        text = text.replace(place, shown)
    return text


if __name__ == "__main__":
    main()

"""Carry out the remedies of the fault lab's scenarios, print the results, and keep them.

python -m tools.carry_out_remedies                        every scenario
python -m tools.carry_out_remedies cudnn-missing          some of them
python -m tools.carry_out_remedies --large FOLDER NAME    with large wheels from a folder
python -m tools.carry_out_remedies --write                and write tables/lab_proofs.py
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor

import pytest

from tests.lab.index import LARGE
from tests.lab.remedies import Trial, carry_out_remedies, row_of
from tests.lab.scenario import Scenario, run
from tests.lab.scenarios import every_scenario
from whygpu.tables import lab_proofs
from whygpu.tables.proof_rows import LabProof

PATH = pathlib.Path(lab_proofs.__file__)
HEAD = f'''\
"""{(lab_proofs.__doc__ or "").strip()}"""

# ruff: noqa: E501

from __future__ import annotations

from whygpu.tables.proof_rows import LabProof

ROWS: tuple[LabProof, ...] = (
'''
PROCESSES = 2


def tried(name: str) -> tuple[str, list[Trial] | str]:
    """The results of the remedies of a scenario, or why it cannot be run here."""
    scenario = _scenario(name)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="whygpu-remedies-"))
    try:
        examined = run(scenario, folder / "examined")
        return name, carry_out_remedies(scenario, examined, folder / "mended")
    except (pytest.skip.Exception, AssertionError) as reason:
        return name, str(reason)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _scenario(name: str) -> Scenario:
    return next(scenario for scenario in every_scenario() if scenario.name == name)


def with_trials(rows: Iterable[LabProof], trials: Iterable[Trial]) -> list[LabProof]:
    """The rows, with those of the scenarios that were tried now replaced."""
    new = [row_of(trial) for trial in trials]
    names = [scenario.name for scenario in every_scenario()]
    again = {row.scenario for row in new}
    kept = [row for row in rows if row.scenario in names and row.scenario not in again]
    return sorted((*kept, *new), key=lambda row: names.index(row.scenario))


def write(rows: Iterable[LabProof]) -> None:
    texts = []
    for row in rows:
        items = "".join(f"        {_literal(item)},\n" for item in row)
        texts.append(f"    LabProof(\n{items}    ),\n")
    PATH.write_text(f"{HEAD}{''.join(texts)})\n", encoding="utf-8")


def _literal(item: str | int) -> str:
    """As the formatter writes it: in double quotes, unless that needs backslashes."""
    return repr(item) if isinstance(item, int) or '"' in item else json.dumps(item)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="SCENARIO")
    parser.add_argument("--large", metavar="FOLDER", help="a folder with large wheels")
    parser.add_argument("--write", action="store_true", help="write tables/lab_proofs.py")
    options = parser.parse_args()
    if options.large:
        os.environ[LARGE] = os.path.abspath(options.large)
    names = options.names or [item.name for item in every_scenario() if item.roots]
    trials: list[Trial] = []
    left_out = 0
    with ProcessPoolExecutor(PROCESSES) as pool:
        for name, found in pool.map(tried, names):
            if isinstance(found, str):
                left_out += 1
                print(f"{'left out':10} {name}: {found}", flush=True)
                continue
            trials += found
            for trial in found:
                remedy = f"{trial.cause} ({trial.subject}) {trial.number}"
                words = " | ".join(filter(None, (trial.text, trial.command, trial.detail)))
                print(f"{trial.result:10} {name}: {remedy} | {words}", flush=True)
    failed = [trial for trial in trials if trial.result == "fails"]
    print(f"{len(trials)} remedies, {len(failed)} failed, {left_out} scenarios left out")
    if options.write and not failed:
        write(with_trials(lab_proofs.ROWS, trials))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Many machines: which nodes are not like the others, and why?"""

from __future__ import annotations

import argparse
from typing import Any

from whygpu.cli import fleet_check, fleet_explain, fleet_recipe, fleet_report
from whygpu.cli.verb_help import VERDICT, add_subverbs

SUBVERBS: dict[str, Any] = {
    "report": fleet_report,
    "check": fleet_check,
    "explain": fleet_explain,
    "recipe": fleet_recipe,
}
"""Modules as those of the verbs: a first line, EXAMPLES, EXIT_CODES, add_arguments, run."""

EXAMPLES = """\
examples:
  whygpu fleet report snapshots/     one snapshot for each node, in a folder
  whygpu fleet check --ray           every node of this Ray cluster, now
  whygpu fleet recipe slurm          a script for Slurm, or for Kubernetes
  whygpu fleet explain logs/         what ends the jobs, from their logs
"""

EXIT_CODES = VERDICT


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_subverbs(parser, SUBVERBS, required=True)


def run(options: argparse.Namespace) -> int:
    code: int = SUBVERBS[options.subverb].run(options)
    return code

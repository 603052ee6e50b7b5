"""Print a script or manifest with which Slurm or Kubernetes takes the snapshots."""

from __future__ import annotations

import argparse

from whygpu.cli.verb_help import DONE

EXAMPLES = """\
examples:
  whygpu fleet recipe slurm --folder /shared/snapshots > whygpu-fleet.sh
  whygpu fleet recipe slurm-prolog > /etc/slurm/whygpu-prolog.sh
  whygpu fleet recipe kubernetes --image IMAGE > whygpu-fleet.yaml

Each file says how to use it. whygpu starts nothing itself.
"""

EXIT_CODES = DONE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="slurm, slurm-prolog or kubernetes")
    parser.add_argument(
        "--folder",
        metavar="FOLDER",
        default="whygpu-snapshots",
        help="slurm: where the snapshots go, on a file system that all nodes share",
    )
    parser.add_argument(
        "--image",
        metavar="IMAGE",
        default=None,
        help="kubernetes: an image with whygpu and the frameworks to check",
    )


def run(options: argparse.Namespace) -> int:
    from whygpu import api
    from whygpu.cli import output

    output.own(api.fleet_recipe(options.name, folder=options.folder, image=options.image))
    return 0

"""Which releases can use the GPU of this machine, or of one that options describe?"""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from whygpu.cli.arguments import add_color_argument

if TYPE_CHECKING:
    from whygpu.host.local import LocalHost
    from whygpu.model.driver import Driver, GraphicsDevice
    from whygpu.model.observed import Observed
    from whygpu.model.snapshot import Snapshot
    from whygpu.model.target import Installer, Interpreter, Target
    from whygpu.planner.candidates import Table
    from whygpu.planner.machine import MachineSpec
    from whygpu.planner.wishes import Wish

EXAMPLES = """\
examples:
  whygpu plan                              TensorFlow on this machine
  whygpu plan tensorflow jax               both, in one environment
  whygpu plan tensorflow==2.15 --python 3.11 --driver 470.82 --gpu "RTX 3090"
  whygpu plan --why-not tensorflow==2.12   the whole chain for one release
  whygpu plan torch --matrix               every release and what it needs
  whygpu plan --snapshot FILE --json       a machine that is far away

exit codes:
  0 a plan   1 no plan   2 wrong usage   3 a bug   4 cannot tell
"""

_VERSION = re.compile(r"\d+\.\d+(\.\d+)?")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "wishes",
        nargs="*",
        metavar="FRAMEWORK",
        help="tensorflow, keras, jax, torch, cupy, onnxruntime; as in tensorflow==2.15 "
        "(default: tensorflow)",
    )
    parser.add_argument(
        "--python",
        metavar="PYTHON",
        help="a version (3.11), or an interpreter or virtual environment; "
        "default: the active environment, else python on PATH",
    )
    parser.add_argument("--driver", metavar="VERSION", help="the NVIDIA driver: 535.54.03")
    parser.add_argument(
        "--gpu", metavar="MODEL", help='the GPU: "RTX 5090", or its compute capability: 12.0'
    )
    parser.add_argument("--glibc", metavar="VERSION", help="the C library: 2.31")
    parser.add_argument(
        "--platform",
        metavar="PLATFORM",
        help="linux_x86_64, linux_aarch64, win_amd64, macosx_arm64 or macosx_x86_64",
    )
    parser.add_argument("--snapshot", metavar="FILE", help="plan for a saved snapshot's machine")
    parser.add_argument(
        "--why-not", metavar="RELEASE", help="check one release against every constraint"
    )
    parser.add_argument("--matrix", action="store_true", help="print the table of releases")
    parser.add_argument(
        "--verify",
        action="store_true",
        help="let pip, or uv where it is installed, resolve the plan once more (asks the index)",
    )
    parser.add_argument("--json", action="store_true", help="print the plan as JSON")
    add_color_argument(parser)


def run(options: argparse.Namespace) -> int:
    machine, target = _machine(options)

    from whygpu.planner.candidates import Table
    from whygpu.planner.wishes import parse, parse_all
    from whygpu.tables.releases import versions_of

    wishes = parse_all(options.wishes) if options.wishes or not options.why_not else ()
    asked = parse(options.why_not) if options.why_not else None
    table = Table(versions_of)
    if asked is not None:
        return _why_not(options, machine, asked, wishes, table)
    return _plan(options, machine, wishes, table, target)


def _plan(
    options: argparse.Namespace,
    machine: MachineSpec,
    wishes: tuple[Wish, ...],
    table: Table,
    target: Installer | None,
) -> int:
    import time

    from whygpu.cli import output
    from whygpu.planner.advice import advice as advise
    from whygpu.planner.changes import changes as find_changes
    from whygpu.planner.planning import make_plan

    answer = make_plan(machine, wishes, table)
    if options.matrix:
        from whygpu.render.plan_text import render_matrix

        output.page(
            answer,
            lambda value, width, color: render_matrix(value, color=color),
            color=options.color,
        )
        return answer.exit_code
    changes = () if answer.plan else find_changes(machine, wishes, table)
    today = time.strftime("%Y-%m-%d")
    advice = advise(answer, answer.plan, today, target) if answer.plan else None
    verified = ""
    if options.verify and answer.plan:
        from whygpu.cli.verify import verify

        verified, refuted = verify(answer.plan, machine)
        answer = answer._replace(refuted=refuted)
    shown = (answer, advice, tuple(changes), verified)
    if options.json:
        from whygpu.render.plan_json import render as render_json

        output.data(shown, lambda values: render_json(*values))
    else:
        from whygpu.render.marks import MARKS, PLAIN_MARKS
        from whygpu.render.plan_text import render

        output.page(
            shown,
            lambda values, **style: render(*values, **style),
            color=options.color,
            marks=(MARKS, PLAIN_MARKS),
        )
    return answer.exit_code


def _why_not(
    options: argparse.Namespace,
    machine: MachineSpec,
    asked: Wish,
    wishes: tuple[Wish, ...],
    table: Table,
) -> int:
    from whygpu.cli import output
    from whygpu.model.standing import EXIT_CODES
    from whygpu.planner.constraints import standing
    from whygpu.planner.planning import why_not

    candidate, chain = why_not(machine, asked, wishes, table)
    shown = (candidate, tuple(chain), machine)
    if options.json:
        from whygpu.render.plan_json import render_chain as render_chain_json

        output.data(shown, lambda values: render_chain_json(*values))
    else:
        from whygpu.render.marks import MARKS, PLAIN_MARKS
        from whygpu.render.plan_text import render_chain

        output.page(
            shown,
            lambda values, **style: render_chain(*values, **style),
            color=options.color,
            marks=(MARKS, PLAIN_MARKS),
        )
    return EXIT_CODES[standing(chain)]


def _machine(options: argparse.Namespace) -> tuple[MachineSpec, Installer | None]:
    """What to plan for, and the environment to install into where that is known."""
    from whygpu.cli import output
    from whygpu.model.derived import installer_of
    from whygpu.model.observed import Known
    from whygpu.planner.machine import described, from_snapshot

    version = options.python if options.python and _VERSION.fullmatch(options.python) else None
    if options.snapshot is not None:
        from whygpu import api

        taken = api.load_snapshot(options.snapshot)
    else:
        taken = _this_machine(options, version)
    spec = described(
        from_snapshot(taken),
        python=version,
        driver=options.driver,
        gpu=options.gpu,
        glibc=options.glibc,
        platform=options.platform,
    )
    elsewhere = (version, options.driver, options.gpu, options.glibc, options.platform)
    if any(elsewhere) or not isinstance(taken.target.interpreter, Known):
        return spec, None
    return spec, output.public(installer_of(taken))


def _this_machine(options: argparse.Namespace, version: str | None) -> Snapshot:
    """What the options leave open; nothing is asked that they already answer."""
    import time

    from whygpu.collectors import system
    from whygpu.collectors.background import Background
    from whygpu.host.local import LocalHost
    from whygpu.model.environment import Environment
    from whygpu.model.observed import Absent, Unknown
    from whygpu.model.snapshot import SCHEMA, Snapshot
    from whygpu.version import VERSION

    host = LocalHost()
    told = Unknown("told by an option")
    asked = None if version else Background(lambda: _python(host, options.python))
    machine, graphics = system.collect(host), told if options.gpu else _graphics(host)
    driver = _untold() if options.driver and options.gpu else _driver(host)
    # Importing the planner takes about as long as the interpreter takes to answer.

    unread = Unknown("not looked at for a plan")
    return Snapshot(
        schema=SCHEMA,
        whygpu=VERSION,
        taken=time.strftime("%Y-%m-%d"),
        system=machine,
        graphics=graphics,
        driver=driver,
        environment=Environment((), Absent("not looked at for a plan")),
        cuda=unread,
        target=_target(host, told if asked is None else asked.result()),
        probes=(),
        probes_left_out="a plan runs nothing",
    )


def _target(host: LocalHost, interpreter: Observed[Interpreter]) -> Target:
    from whygpu.collectors import installer
    from whygpu.model.observed import Known, Unknown
    from whygpu.model.target import Target

    unread = Unknown("not looked at for a plan")
    if not isinstance(interpreter, Known):
        return Target(interpreter, unread, unread, unread)
    found = installer.collect(host, interpreter.value, unread)
    return Target(interpreter, unread, unread, unread, Known(found, interpreter.source))


def _graphics(host: LocalHost) -> Observed[tuple[GraphicsDevice, ...]]:
    from whygpu.collectors import graphics

    return graphics.collect(host)


def _driver(host: LocalHost) -> Driver:
    from whygpu.collectors import driver

    return driver.collect(host)[0]


def _untold() -> Driver:
    from whygpu.model.driver import Driver
    from whygpu.model.observed import Unknown

    told = Unknown("told by an option")
    return Driver(told, "", told, told, told, told, told, told, told, told)


def _python(host: LocalHost, given: str | None) -> Observed[Interpreter]:
    from whygpu.collectors import interpreter
    from whygpu.errors import UsageError
    from whygpu.model.observed import Known, Unknown

    try:
        chosen = interpreter.resolve(host, given) if given else interpreter.find_default(host)
    except interpreter.NoInterpreter as error:
        raise UsageError(str(error)) from error
    told = interpreter.collect(host, chosen)
    if isinstance(told, Known):
        return Known(told.value, "the target interpreter")
    return Unknown(told.reason if isinstance(told, Unknown) else told.source)

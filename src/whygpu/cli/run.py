"""Run a program under a device policy, repair what can be, prove where it ran."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from whygpu.cli import output
from whygpu.cli.process_setup import (
    FOLDER_IS_GONE,
    Ending,
    folder_is_gone,
    hold_stops,
    stops_heeded,
)
from whygpu.errors import PolicyError, UsageError
from whygpu.start import EXIT_RUN_FAILED as EXIT_FAILED
from whygpu.start import failed

if TYPE_CHECKING:
    from whygpu.launch.execution import Prepared
    from whygpu.launch.program_process import Ended
    from whygpu.model.explanation import Explanation
    from whygpu.model.memory_use import MemoryEnd
    from whygpu.model.policy import DevicePolicy, RunReport
    from whygpu.model.snapshot import Snapshot

EXAMPLES = """\
examples:
  whygpu run -- python train.py --epochs 3     as it is, repaired, with a report
  whygpu run --device cpu -- python train.py   the GPU stays untouched
  whygpu run --device gpu:1 -- python -m package.train
  whygpu run --device auto -- python train.py  the GPU if it works, else the CPU
  whygpu run --require gpu -- torchrun --nproc-per-node 2 train.py
  whygpu run --memory 4GiB --cudnn off -- jupyter execute notebook.ipynb
  whygpu run --tf1 -- python old_tutorial.py   TensorFlow 1 code on TensorFlow 2
  whygpu run --trace --report run.json -- python train.py
  whygpu run --device gpu --dry-run -- python train.py   the plan, and why

exit codes:
  the program's own   125 whygpu failed   127 command not found
  126 the policy cannot be met, nothing was run
  128+n the program died of signal n
  1 where the program succeeded and --require gpu was not met
"""

EXIT_UNMET = 126


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "whygpu run [options] -- COMMAND ..."
    policy = parser.add_argument_group("the policy, the same for every framework")
    policy.add_argument(
        "--device",
        metavar="DEVICE",
        help="cpu, gpu, auto, gpu:1, gpu:0,2 (in PCI bus order), the beginning of a UUID "
        "(GPU-1a2b), or a part of a GPU's name",
    )
    policy.add_argument(
        "--require", metavar="gpu", help="refuse, or fail, a run that does not use the GPU"
    )
    policy.add_argument(
        "--memory", metavar="AMOUNT", help="GPU memory: growth (as needed), 4GiB, or 80%%"
    )
    policy.add_argument("--cudnn", metavar="off", help="compute without cuDNN where possible")
    policy.add_argument(
        "--deterministic", action="store_true", help="the same result every time, or an error"
    )
    policy.add_argument("--tf32", metavar="off", help="full float32 in matrix products")
    policy.add_argument("--xla", metavar="off", help="no compilation with XLA where possible")
    policy.add_argument("--log-level", metavar="LEVEL", help="debug, info, warning, error or quiet")
    policy.add_argument(
        "--isolate",
        action="store_true",
        help="hide the user site, and folders on LD_LIBRARY_PATH but the driver's",
    )
    policy.add_argument("--tf1", action="store_true", help="run TensorFlow 1 code on TensorFlow 2")
    parser.add_argument(
        "--no-repair", action="store_true", help="leave what is wrong with the machine as it is"
    )
    parser.add_argument(
        "--trace", action="store_true", help="report where each operation ran, and why on the CPU"
    )
    parser.add_argument("--report", metavar="FILE", help="write the report as JSON")
    parser.add_argument("--quiet", action="store_true", help="say nothing about the run")
    parser.add_argument(
        "--dry-run", action="store_true", help="print the plan with its reasons; run nothing"
    )
    parser.add_argument("--json", action="store_true", help="with --dry-run: the plan as JSON")
    parser.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="COMMAND", help="what to run, with its words"
    )


def run(options: argparse.Namespace) -> int:
    from whygpu.launch.program_process import NotStarted

    try:
        return _run(options)
    except NotStarted as error:
        output.say(str(error))
        return error.code
    except PolicyError as error:
        output.say_choices(f"{error}\nnothing was run; `whygpu check` says more")
        return EXIT_UNMET
    except UsageError as error:
        output.say_error(str(error), _typed(options))
        return EXIT_FAILED
    except Exception as error:
        # The program's exit codes are its own: a bug of ours must not look like one of them.
        if isinstance(error, OSError) and folder_is_gone():
            output.say(FOLDER_IS_GONE)
            return EXIT_FAILED
        return failed(error, ["run", *options.command])


def _typed(options: argparse.Namespace) -> list[str]:
    words = [value for value in vars(options).values() if isinstance(value, str)]
    return [*words, *options.command]


def _run(options: argparse.Namespace) -> int:
    from whygpu.launch.execution import execute, prepare

    argv = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not argv:
        raise UsageError("what is to be run? expected a command: whygpu run -- python train.py")
    if options.json and not options.dry_run:
        raise UsageError("--json goes with --dry-run; --report FILE writes a run's report")
    policy = _policy(options)
    report_file = output.require_writable("--report", options.report)
    prepared = prepare(argv, policy, os.environ, repair=not options.no_repair, trace=options.trace)
    if options.dry_run:
        return _show_plan(prepared, options)
    if sys.platform != "linux":
        raise UsageError(f"whygpu run needs Linux, or Windows with WSL 2; this is {sys.platform}")
    if not options.quiet:
        _say_before(prepared)
    sys.stdout.flush()
    sys.stderr.flush()
    report, ended = execute(prepared.plan, os.environ, at_end=hold_stops)
    code = _reported(report, ended, prepared, options, report_file)
    if ended.signal == signal.SIGINT:
        # A shell stops its script only if it sees that Ctrl-C has ended the command.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    return code


def _reported(
    report: RunReport,
    ended: Ended,
    prepared: Prepared,
    options: argparse.Namespace,
    report_file: str | None,
) -> int:
    """Say what there is to say of the run. Whatever fails or stops us here, its exit code stays."""
    unmet = report.policy.require_gpu and report.device == "cpu"
    if unmet and report.exit_code == 0:
        report = report._replace(exit_code=1)
    with _exit_code_kept(options), stops_heeded():
        report = _explained(report, ended, prepared, options)
    is_saved = True
    with _exit_code_kept(options):
        is_saved = _finish(report, prepared, options, report_file)
    return report.exit_code or (0 if is_saved else EXIT_FAILED)


@contextmanager
def _exit_code_kept(options: argparse.Namespace) -> Iterator[None]:
    try:
        yield
    except (KeyboardInterrupt, Ending):
        # Told to stop: what the program ended with can be said without an explanation.
        pass
    except Exception as error:
        failed(error, ["run", *options.command])


def _policy(options: argparse.Namespace) -> DevicePolicy:
    from whygpu.launch import policy_options
    from whygpu.model.policy import DevicePolicy

    return DevicePolicy(
        device=policy_options.parse_device(options.device) if options.device is not None else None,
        require_gpu=options.require is not None and policy_options.parse_require(options.require),
        memory=policy_options.parse_memory(options.memory) if options.memory is not None else None,
        cudnn_off=options.cudnn is not None and policy_options.parse_off("cudnn", options.cudnn),
        deterministic=options.deterministic,
        tf32_off=options.tf32 is not None and policy_options.parse_off("tf32", options.tf32),
        xla_off=options.xla is not None and policy_options.parse_off("xla", options.xla),
        log_level=(
            policy_options.parse_log_level(options.log_level)
            if options.log_level is not None
            else None
        ),
        isolate=options.isolate,
        tf1=options.tf1,
    )


def _show_plan(prepared: Prepared, options: argparse.Namespace) -> int:
    plan = prepared.plan._replace(argv=output.public_words(prepared.plan.argv))
    if options.json:
        from whygpu.render.run_json import plan_json

        output.data(plan, plan_json)
    else:
        from whygpu.render.run_text import plan_text

        output.text(plan, plan_text)
    return 0


def _say_before(prepared: Prepared) -> None:
    from whygpu.render.run_text import repair_text

    for repair in prepared.plan.repairs:
        if prepared.concerns(repair):
            output.say(repair_text(repair))
    for note in prepared.plan.notes:
        output.say(note)


_ASKED_TO_STOP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals after which there is nothing to explain."""


def _explained(
    report: RunReport, ended: Ended, prepared: Prepared, options: argparse.Namespace
) -> RunReport:
    """What `whygpu explain` says of a failure: printed below it, and part of the report."""
    if ended.code == 0 or ended.signal in _ASKED_TO_STOP:
        return report
    if options.quiet and options.report is None:
        # Nobody would see it.
        return report
    text = _last_words(report, ended)
    if not text.strip():
        return report
    from whygpu import api
    from whygpu.causes.evidence.illegal_instructions import SIGNAL
    from whygpu.launch.aftermath import memory_end_of
    from whygpu.launch.execution import seen_by_program
    from whygpu.render.explain_json import as_dict

    refused = SIGNAL.search(text) is not None
    machine = seen_by_program(prepared.plan, os.environ, illegal_instruction=refused)
    memory = memory_end_of(report, ended, text, machine)
    explanation = api.explain(text, here=machine, memory=memory)
    if not options.quiet and explanation.verdict != "nothing-wrong":
        _show_explanation(explanation)
    if memory is not None:
        memory = _estimated(memory, report, machine, prepared)
    return report._replace(explanation=as_dict(explanation), out_of_memory=memory)


def _estimated(
    memory: MemoryEnd, report: RunReport, machine: Snapshot, prepared: Prepared
) -> MemoryEnd:
    """With what would have fitted. Ctrl-C, and whatever fails here, costs no more than that."""
    from whygpu.cli.progress import waiting
    from whygpu.launch.aftermath import with_estimate
    from whygpu.launch.environment import changed
    from whygpu.model.memory_use import FitEstimate

    environ = changed(os.environ, prepared.plan.all_actions)
    try:
        with waiting("estimating what would have fitted") as show:
            return with_estimate(memory, report, machine, environ, show)
    except KeyboardInterrupt:
        why = "it was interrupted"
    except Exception as error:
        why = f"whygpu failed at it: {type(error).__name__}: {error}"
    return memory._replace(estimate=FitEstimate("cannot-tell", why))


def _show_explanation(explanation: Explanation) -> None:
    from whygpu.render.explain_text import render
    from whygpu.render.marks import MARKS, PLAIN_MARKS

    def below(shown: Explanation, **style: Any) -> str:
        return "\n" + render(shown, verbose=False, **style)

    output.page_on_error(explanation, below, marks=(MARKS, PLAIN_MARKS))


def _last_words(report: RunReport, ended: Ended) -> str:
    """Standard error, and what a shell would say of a signal.

    Where standard error was not to be had, the exception that a process noted has to do.
    """
    text = ended.error_text or "\n".join(record.memory.error for record in report.records)
    return f"{text}\n{signal.strsignal(ended.signal)}\n" if ended.signal else text


def _finish(
    report: RunReport, prepared: Prepared, options: argparse.Namespace, report_file: str | None
) -> bool:
    """Say how it ended; False where the report that was asked for could not be saved."""
    trace = _trace_of(report)
    if not options.quiet:
        _say_after(report, trace, prepared)
    if report.policy.require_gpu and report.device == "cpu":
        output.say(f"--require gpu: the program ran on the CPU{prepared.because}")
    elif report.policy.require_gpu and report.device == "none":
        output.say("--require gpu: nothing shows on which device the program ran")
    return report_file is None or _write_report(report_file, report, trace)


def _trace_of(report: RunReport) -> dict[str, Any] | None:
    if not report.traced:
        return None
    from whygpu.launch.trace_merge import merge

    return merge([part for record in report.records for part in record.trace.values()])


def _say_after(report: RunReport, trace: dict[str, Any] | None, prepared: Prepared) -> None:
    from whygpu.launch.command import script_of
    from whygpu.render.run_memory import memory_text
    from whygpu.render.run_text import end_text, repair_text

    if trace is not None:
        _show_trace(trace)
    imported = {use.name for record in report.records for use in record.frameworks}
    for repair in report.repairs:
        if not prepared.concerns(repair) and prepared.concerns(repair, imported):
            output.say(repair_text(repair))
    if report.out_of_memory is not None:
        script = script_of(prepared.plan.argv, os.environ)
        memory = output.public(report.out_of_memory)
        output.say(memory_text(memory, script, width=output.width(sys.stderr)))
    output.say(end_text(report, prepared.because))
    for note in report.notes:
        output.say(note)


def _write_report(path: str, report: RunReport, trace: dict[str, Any] | None) -> bool:
    from whygpu.render.run_json import report_json

    try:
        output.save(path, (report, trace), lambda values: report_json(*values), is_json=True)
    except UsageError as error:
        output.say(f"the report was not saved: {error}")
        return False
    return True


def _show_trace(trace: dict[str, Any]) -> None:
    from whygpu.render.trace import render

    output.page_on_error(trace, lambda shown, width, color: f"whygpu: {render(shown, width=width)}")

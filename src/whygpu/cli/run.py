"""Run a program on the device you choose, repaired, and report where it ran."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from whygpu.cli import output
from whygpu.cli.html_file import HtmlFile, add_html_argument
from whygpu.cli.process_setup import Ending, hold_stops, stops_allowed
from whygpu.errors import EXIT_RUN_FAILED, PolicyError, UsageError
from whygpu.host.state_folder import is_recording
from whygpu.host.systems import require_linux

if TYPE_CHECKING:
    from whygpu.launch.execution import Prepared
    from whygpu.model.explanation import Explanation
    from whygpu.model.policy import DevicePolicy, RunReport
    from whygpu.model.profile import ProfileAnswer
    from whygpu.model.shortage import HopelessRequest

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
  whygpu run --trace --html run.html -- python train.py   the same as a page
  whygpu run --profile -- python train.py      why is it slow, what would help
  whygpu run --device gpu --dry-run -- python train.py   the plan, and why
"""

EXIT_CODES = {
    "1": "the program succeeded, but --require gpu was not met",
    "125": "whygpu failed",
    "126": "the policy cannot be met, nothing was run",
    "127": "command not found",
    "128+n": "the program died of signal n",
    "other": "the program's own",
}

EXIT_UNMET = 126


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "whygpu run [options] -- COMMAND ..."
    _add_policy(parser.add_argument_group("the policy, the same for every framework"))
    parser.add_argument(
        "--no-repair",
        dest="repair",
        action="store_false",
        help="leave what is wrong with the machine as it is",
    )
    parser.add_argument(
        "--trace", action="store_true", help="report where each operation ran, and why on the CPU"
    )
    parser.add_argument(
        "--profile",
        action="store_true",
        help="report why the training steps take as long as they do, and what would help",
    )
    parser.add_argument(
        "--profile-steps",
        metavar="A..B",
        help="with --profile: judge these steps, such as 20..60 (default: all but the first ten)",
    )
    parser.add_argument(
        "--profile-trace",
        metavar="FILE",
        help="with --profile: write a trace that ui.perfetto.dev opens",
    )
    parser.add_argument("--report", metavar="FILE", help="write the report as JSON")
    add_html_argument(parser)
    parser.add_argument("--quiet", action="store_true", help="say nothing about the run")
    parser.add_argument(
        "--dry-run", action="store_true", help="print the plan with its reasons; run nothing"
    )
    parser.add_argument("--json", action="store_true", help="with --dry-run: the plan as JSON")
    parser.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="COMMAND", help="the program and its arguments"
    )


def _add_policy(policy: argparse._ArgumentGroup) -> None:
    policy.add_argument(
        "--device",
        metavar="DEVICE",
        help="cpu, gpu, auto, gpu:1, gpu:0,2 (in PCI bus order), the beginning of a UUID "
        "(GPU-1a2b), or a part of a GPU's name",
    )
    policy.add_argument(
        "--require",
        metavar="gpu",
        dest="require_gpu",
        help="do not start without a GPU; fail if the program did not use it",
    )
    policy.add_argument(
        "--memory", metavar="AMOUNT", help="GPU memory: growth (as needed), 4GiB, or 80%%"
    )
    policy.add_argument(
        "--cudnn", metavar="off", dest="cudnn_off", help="compute without cuDNN if possible"
    )
    policy.add_argument(
        "--deterministic", action="store_true", help="the same result every time, or an error"
    )
    policy.add_argument(
        "--tf32", metavar="off", dest="tf32_off", help="full float32 in matrix products"
    )
    policy.add_argument(
        "--xla", metavar="off", dest="xla_off", help="do not compile with XLA if possible"
    )
    policy.add_argument("--log-level", metavar="LEVEL", help="debug, info, warning, error or quiet")
    policy.add_argument(
        "--isolate",
        action="store_true",
        help="ignore packages in the user's site folder, and every folder on LD_LIBRARY_PATH "
        "except the driver's",
    )
    policy.add_argument("--tf1", action="store_true", help="run TensorFlow 1 code on TensorFlow 2")


def run(options: argparse.Namespace) -> int:
    require_linux("run")
    from whygpu.launch.program_process import NotStarted

    try:
        return _run(options)
    except NotStarted as error:
        output.say(f"{error}{_python_meant(command_words(options)[0])}")
        return error.code
    except PolicyError as error:
        from whygpu.cli.option_words import message

        output.say_choices(f"{message(error, ['run'])}\nnothing was run; `whygpu check` says more")
        return EXIT_UNMET


def command_words(options: argparse.Namespace) -> list[str]:
    given: list[str] = options.command
    return given[1:] if given[:1] == ["--"] else given


def _python_meant(word: str) -> str:
    """What a file of Python source that cannot be started was meant as."""
    if not word.endswith((".py", ".pyw")) or not os.path.isfile(word):
        return ""
    from whygpu.model.shell import quoted

    return f"; did you mean `whygpu run -- python {quoted(word)}`?"


def _run(options: argparse.Namespace) -> int:
    from whygpu import api

    argv = command_words(options)
    if not argv:
        raise UsageError("what should run? expected a command: whygpu run -- python train.py")
    if options.json and not options.dry_run:
        raise UsageError("--json goes with --dry-run; --report FILE writes a run's report")
    policy = policy_of(options)
    if not options.profile and (options.profile_steps or options.profile_trace):
        raise UsageError("--profile-steps and --profile-trace go with --profile")
    files = _Files(
        output.require_writable("--report", options.report),
        HtmlFile(options.html).path,
        output.require_writable("--profile-trace", options.profile_trace),
    )
    how = {"repair": options.repair, "trace": options.trace, "profile": options.profile}
    if options.dry_run:
        if options.html is not None:
            raise UsageError("--html shows how a program ran; with --dry-run, none runs")
        _show_plan(api.plan_run(argv, policy, **how), options)
        return 0
    with ExitStack() as shown:
        watcher = _Watcher(options, shown)
        report = api.run(
            argv,
            policy,
            **how,
            profile_steps=options.profile_steps or "",
            # Without a reader, there is nothing to explain.
            explain=not options.quiet or any(files),
            watch=api.Watch(
                before=watcher.before,
                at_end=hold_stops,
                hopeless=watcher.hopeless,
                explaining=watcher.explaining,
                explained=watcher.explained,
                estimating=watcher.estimating,
            ),
        )
    is_saved = True
    with _exit_code_kept(options):
        is_saved = watcher.finish(report, files)
        if files.profile_trace is not None:
            is_saved = _write_profile_trace(files.profile_trace, report, options) and is_saved
        watcher.remember(report)
    if report.signal == signal.SIGINT:
        # A shell stops its script only if it sees that Ctrl-C has ended the command.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    return report.exit_code or (0 if is_saved else EXIT_RUN_FAILED)


@contextmanager
def _exit_code_kept(options: argparse.Namespace) -> Iterator[None]:
    """The program has ended. Whatever fails or stops us from now on, its exit code is returned."""
    try:
        yield
    except (KeyboardInterrupt, Ending):
        # Asked to stop: the exit code can be reported without an explanation.
        pass
    except Exception as error:
        from whygpu.cli.bug import failed

        failed(error, ["run", *options.command])


def policy_of(options: argparse.Namespace) -> DevicePolicy:
    from whygpu.launch import policy_options
    from whygpu.model.policy import DevicePolicy

    def parsed(name: str, parse: Callable[[str], Any], default: Any = None) -> Any:
        text = getattr(options, name)
        return default if text is None else parse(text)

    def is_off(name: str) -> bool:
        return bool(parsed(f"{name}_off", lambda text: policy_options.parse_off(name, text), False))

    return DevicePolicy(
        device=parsed("device", policy_options.parse_device),
        require_gpu=parsed("require_gpu", policy_options.parse_require, False),
        memory=parsed("memory", policy_options.parse_memory),
        cudnn_off=is_off("cudnn"),
        deterministic=options.deterministic,
        tf32_off=is_off("tf32"),
        xla_off=is_off("xla"),
        log_level=parsed("log_level", policy_options.parse_log_level),
        isolate=options.isolate,
        tf1=options.tf1,
    )


def _show_plan(prepared: Prepared, options: argparse.Namespace) -> None:
    plan = prepared.plan._replace(argv=output.public_words(prepared.plan.argv))
    if options.json:
        from whygpu.render.run_json import plan_json

        output.data(plan, plan_json)
    else:
        from whygpu.render.run_text import plan_text

        output.text(plan, plan_text)


class _Files(NamedTuple):
    """Where the report is written, as JSON, as a page and as a trace; None if not asked for."""

    json: str | None
    html: str | None
    profile_trace: str | None


class _Watcher:
    """Writes the messages before and after the program."""

    def __init__(self, options: argparse.Namespace, shown: ExitStack) -> None:
        self._options = options
        self._shown = shown
        """Holds the progress display, and ends it."""
        self._prepared: Prepared | None = None
        self._progress: Callable[[str], None] | None = None

    def before(self, prepared: Prepared) -> None:
        self._prepared = prepared
        if not self._options.quiet:
            from whygpu.render.run_text import repair_text

            for repair in prepared.plan.repairs:
                if prepared.concerns(repair):
                    output.say(repair_text(repair))
            for note in prepared.plan.remarks:
                output.say(note)
        sys.stdout.flush()
        sys.stderr.flush()

    def hopeless(self, request: HopelessRequest) -> None:
        if not self._options.quiet:
            from whygpu.render.run_memory import hopeless_text

            output.say(hopeless_text(request))

    @contextmanager
    def explaining(self) -> Iterator[None]:
        with _exit_code_kept(self._options), stops_allowed():
            yield

    def explained(self, explanation: Explanation) -> None:
        # The advice for such a log is to read all of it, which has just been done.
        says_nothing = explanation.verdict == "nothing-wrong" or explanation.reports_nothing
        if self._options.quiet or says_nothing:
            return
        from whygpu.render.explain_text import render

        def below(shown: Explanation, **style: Any) -> str:
            return "\n" + render(shown, verbose=False, **style)

        output.page_on_error(explanation, below)

    def estimating(self, stage: str) -> None:
        from whygpu.cli.progress import waiting

        if self._progress is None:
            self._progress = self._shown.enter_context(waiting("estimating what would have fitted"))
        self._progress(stage)

    def finish(self, report: RunReport, files: _Files) -> bool:
        """Say how the run ended; False if the report that was asked for could not be saved."""
        because = self._prepared.because if self._prepared is not None else ""
        if not self._options.quiet:
            self._say_after(report, because)
        if report.policy.require_gpu and report.device == "cpu":
            output.say(f"--require gpu: the program ran on the CPU{because}")
        elif report.policy.require_gpu and report.device == "none":
            output.say("--require gpu: nothing shows on which device the program ran")
        # Both are tried, whatever becomes of the first.
        is_quiet = self._options.quiet
        saved = [_write_report(files.json, report), _write_page(files.html, report, is_quiet)]
        return all(saved)

    def remember(self, report: RunReport) -> None:
        if self._prepared is not None and not report.signal and is_recording():
            from whygpu.cli.remembering import after_run

            after_run(report, self._prepared, silent=self._options.quiet)

    def _say_after(self, report: RunReport, because: str) -> None:
        from whygpu.render.run_text import end_text, in_force_lines, repair_text

        prepared = self._prepared
        if report.trace is not None:
            _show_trace(report.trace, failed=report.exit_code != 0)
        if report.profile is not None:
            _show_profile(report.profile)
        imported = {use.name for record in report.records for use in record.frameworks}
        for repair in report.repairs:
            if prepared and not prepared.concerns(repair) and prepared.concerns(repair, imported):
                output.say(repair_text(repair))
        if report.out_of_memory is not None and prepared is not None:
            from whygpu.launch.command import script_of
            from whygpu.render.run_memory import memory_text

            script = script_of(prepared.plan.argv, os.environ)
            memory = output.public(report.out_of_memory)
            output.say(memory_text(memory, script, width=output.width(sys.stderr)))
        output.say(end_text(report, because))
        for line in in_force_lines(report):
            output.say(line)
        for note in report.notes:
            output.say(note)


def _write_report(path: str | None, report: RunReport) -> bool:
    from whygpu.render.run_json import report_json

    if path is None:
        return True
    try:
        output.save(path, report, lambda shown: report_json(shown, shown.trace), is_json=True)
    except UsageError as error:
        output.say(f"the report was not saved: {error}")
        return False
    return True


def _write_page(path: str | None, report: RunReport, is_quiet: bool) -> bool:
    try:
        HtmlFile(path, is_quiet=is_quiet).write(report)
    except UsageError as error:
        output.say(f"the page was not saved: {error}")
        return False
    return True


def _write_profile_trace(path: str, report: RunReport, options: argparse.Namespace) -> bool:
    import json

    from whygpu import api

    trace = api.profile_trace(report, options.profile_steps or "")
    try:
        output.save(path, trace, lambda shown: json.dumps(shown) + "\n", is_json=True)
    except UsageError as error:
        output.say(f"the trace was not saved: {error}")
        return False
    return True


def _show_profile(answer: ProfileAnswer) -> None:
    from whygpu.render.profile_text import render

    def page(shown: ProfileAnswer, width: int, color: bool) -> str:
        return f"whygpu: {render(shown, width=width)}"

    output.page_on_error(answer, page)


def _show_trace(trace: dict[str, Any], failed: bool) -> None:
    from whygpu.render.trace_text import render

    def page(shown: dict[str, Any], width: int, color: bool) -> str:
        return f"whygpu: {render(shown, width=width, failed=failed)}"

    output.page_on_error(trace, page)

"""Something that can be wrong: its code, its page, its detectors, and what it does to a verdict."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from whygpu.model.finding import Confidence, Effect, Evidence, Finding, Gap, Remedy, Severity
from whygpu.model.html_repr import html_repr
from whygpu.model.log import Log
from whygpu.model.snapshot import Snapshot

if TYPE_CHECKING:
    import ast

    from whygpu.model.code_finding import CodeFinding
    from whygpu.model.deployment import Question, Setup, SetupFinding
    from whygpu.model.program import Edit, Program
    from whygpu.model.requirement_file import FileLine, LineEdit

MachineDetector = Callable[[Snapshot], Iterator["Finding | Gap"]]
LogDetector = Callable[[Log], Iterator[Finding]]
CodeDetector = Callable[["Program"], Iterator["CodeFinding"]]
TextTest = Callable[[str], bool]
SetupDetector = Callable[["Setup"], Iterator["SetupFinding"]]


_EXAMPLES = ("## Fires on", "## Quiet on", "## Cannot tell on")
"""How the headings of examples begin."""


def _sections(page: str) -> Iterator[str]:
    """The page, cut before each heading. A line of an example may look like a heading."""
    section, in_example = "", False
    for line in page.strip().splitlines():
        in_example ^= line.startswith("```")
        if line.startswith("## ") and not in_example:
            yield section
            section = ""
        section += f"{line}\n"
    yield section


class Cause:
    """One entry of the catalogue. Made by cause(), once per cause file."""

    def __init__(
        self,
        code: str,
        module: str,
        page: str,
        *,
        severity: Severity,
        effect: Effect,
        explains: tuple[str, ...],
    ) -> None:
        self.code = code
        self.slug = module.rpartition(".")[2].replace("_", "-")
        self.page = page
        self.title = page.strip().partition("\n")[0].rstrip(".")
        self.severity: Severity = severity
        self.effect: Effect = effect
        self.explains = explains
        self.machine_detector: MachineDetector | None = None
        self.log_detector: LogDetector | None = None
        self.code_detector: CodeDetector | None = None
        self.code_words: tuple[str, ...] = ()
        """A file that has none of these words in it cannot have this defect."""
        self.code_needs: tuple[str, ...] = ()
        """Neither can a file that has none of these; if there are none, the words suffice."""
        self.code_possible: TextTest | None = None
        """Neither can a file whose text fails this test."""
        self.setup_detector: SetupDetector | None = None

    def __repr__(self) -> str:
        return f"<Cause {self.code} {self.slug}: {self.title}>"

    def _repr_html_(self) -> str | None:
        return html_repr(self)

    @property
    def guide(self) -> str:
        """The page for users: why it happens, what it looks like, how to fix it, sources."""
        return "".join(text for text in _sections(self.page) if not text.startswith(_EXAMPLES))

    @property
    def examples(self) -> str:
        """The rest of the page: the machines, logs and code that the detectors are tested on."""
        return "".join(text for text in _sections(self.page) if text.startswith(_EXAMPLES))

    @property
    def firing_logs(self) -> str:
        """Of the examples, the logs in which the cause is found."""
        logs = f"{_EXAMPLES[0]} (log)"
        return "".join(text for text in _sections(self.page) if text.startswith(logs))

    def on_machine(self, detector: MachineDetector) -> MachineDetector:
        """Register the detector that reads a snapshot."""
        if self.machine_detector is not None:
            raise ValueError(f"{self.code} has two machine detectors")
        self.machine_detector = detector
        return detector

    def on_log(self, detector: LogDetector) -> LogDetector:
        """Register the detector that reads a log."""
        if self.log_detector is not None:
            raise ValueError(f"{self.code} has two log detectors")
        self.log_detector = detector
        return detector

    def on_code(
        self, *words: str, needs: tuple[str, ...] = (), possible: TextTest | None = None
    ) -> Callable[[CodeDetector], CodeDetector]:
        """Register the detector that reads a program, for files with one of these words.

        `needs`: and with one of these as well, mostly the names of the frameworks it is about.
        `possible`: and with a text that passes this test, which must be much cheaper than to parse
        the text.
        """

        def register(detector: CodeDetector) -> CodeDetector:
            if self.code_detector is not None:
                raise ValueError(f"{self.code} has two code detectors")
            self.code_detector, self.code_words, self.code_needs = detector, words, needs
            self.code_possible = possible
            return detector

        return register

    def on_setup(self, detector: SetupDetector) -> SetupDetector:
        """Register the detector that reads what an image, a service, a pod or a job gives."""
        if self.setup_detector is not None:
            raise ValueError(f"{self.code} has two setup detectors")
        self.setup_detector = detector
        return detector

    def in_setup(
        self,
        place: FileLine,
        *,
        subject: str,
        message: str,
        fix: str,
        rests_on: tuple[Question, ...],
        edits: tuple[LineEdit, ...] = (),
        confidence: Confidence = "certain",
        severity: Severity | None = None,
    ) -> SetupFinding:
        """A finding of this cause at a line of a file that is not Python.

        `rests_on` names everything that would make it false. The linter looks at that for all
        causes, and makes the finding a note if it cannot.
        """
        from whygpu.model.deployment import SetupFinding

        finding = self.finding(
            subject=subject,
            message=message,
            evidence=(Evidence("code", f"{place.file}:{place.line}", place.text),),
            remedies=(Remedy(fix),),
            confidence=confidence,
            severity=severity,
        )
        return SetupFinding(finding, place, edits, rests_on)

    def in_code(
        self,
        program: Program,
        node: ast.AST,
        *,
        subject: str,
        message: str,
        fix: str,
        edits: tuple[Edit, ...] = (),
        confidence: Confidence = "certain",
        severity: Severity | None = None,
    ) -> CodeFinding:
        """A finding of this cause at a place of a program."""
        from whygpu.model.code_finding import CodeFinding

        place = program.place(node)
        line, column = place.start
        origin = program.origin(node)
        if origin is not None:
            message = f"{message} ({origin.path}:{origin.line}, which this calls)"
        finding = self.finding(
            subject=subject,
            message=message,
            evidence=(
                Evidence(
                    "code", f"{program.path}:{line}:{column}", program.excerpt(place.start).text
                ),
            ),
            remedies=(Remedy(fix),),
            confidence=confidence,
            severity=severity,
        )
        return CodeFinding(finding, place, program.only_here(edits), origin, node)

    def finding(
        self,
        *,
        subject: str,
        message: str,
        evidence: tuple[Evidence, ...],
        remedies: tuple[Remedy, ...],
        confidence: Confidence = "certain",
        severity: Severity | None = None,
        effect: Effect | None = None,
        ask: str | None = None,
        kind_of: str | None = None,
    ) -> Finding:
        """A finding of this cause; severity and effect default to those of the cause.

        `kind_of` is the slug of a broader cause, which the finding is then counted as: the page
        and the remedies are this cause's.
        """
        return Finding(
            code=self.code,
            cause=kind_of or self.slug,
            severity=severity or self.severity,
            subject=subject,
            message=message,
            evidence=evidence,
            remedies=remedies,
            effect=effect or self.effect,
            confidence=confidence,
            ask=ask,
        )


def cause(
    code: str,
    module: str,
    page: str | None,
    *,
    severity: Severity,
    effect: Effect,
    explains: tuple[str, ...] = (),
) -> Cause:
    """Declare the cause of a file: `cause("WG203", __name__, __doc__, ...)`.

    The file's name is the slug and its docstring is the page, so that neither is written twice.
    `explains` names the slugs of causes that follow from this one.
    """
    if page is None and sys.flags.optimize > 1:
        page = _docstring(module)
    if not page:
        raise ValueError(f"{module} has no docstring, and so no page")
    return Cause(code, module, page, severity=severity, effect=effect, explains=explains)


def _docstring(module: str) -> str | None:
    """Read it from the source, because PYTHONOPTIMIZE=2 removes docstrings from the bytecode."""
    import ast

    source = sys.modules[module].__loader__.get_source(module)  # type: ignore[union-attr]
    return ast.get_docstring(ast.parse(source or ""), clean=False)

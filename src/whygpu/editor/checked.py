"""What was found in one document, in the words of the protocol."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from lsprotocol import types
from pygls.uris import from_fs_path

from whygpu import api
from whygpu.editor.positions import Text, contains, share_a_line
from whygpu.errors import UsageError
from whygpu.model.cause import Cause
from whygpu.model.code_finding import FileProblem, TextFinding, TextReport
from whygpu.model.outside_text import printable
from whygpu.model.program import Place

SOURCE = "whygpu"
FIX_ALL = "source.fixAll.whygpu"
_PAGES = "https://whygpu.readthedocs.io/en/latest/causes/"
_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "info": types.DiagnosticSeverity.Information,
}


class Checked(NamedTuple):
    """The answer for one version of a document."""

    uri: str
    path: str
    version: int | None
    text: Text
    report: TextReport

    def diagnostics(self) -> list[types.Diagnostic]:
        found = [self._diagnostic(item) for item in self.report.findings]
        return found + [self._not_checked(problem) for problem in self.report.problems]

    def _diagnostic(self, item: TextFinding) -> types.Diagnostic:
        finding = item.located.finding
        elsewhere = None if self._is_here(item) else self._elsewhere(item)
        name = "" if self._is_here(item) else f"{os.path.basename(item.located.path)}: "
        message = f"{name}{finding.message}. {finding.remedies[0].text}"
        return types.Diagnostic(
            range=self._range(item),
            message=printable(message),
            severity=_SEVERITIES[finding.severity],
            code=finding.code,
            code_description=types.CodeDescription(href=_page_address(finding.code)),
            source=SOURCE,
            related_information=elsewhere,
        )

    def _is_here(self, item: TextFinding) -> bool:
        return item.located.path == self.path

    def _range(self, item: TextFinding) -> types.Range:
        """A finding in a file that this one names is shown at the top of this one."""
        at = item.located
        if not self._is_here(item):
            return self.text.first_line()
        return self.text.range(Place((at.line, at.column), (at.end_line, at.end_column)))

    def _elsewhere(self, item: TextFinding) -> list[types.DiagnosticRelatedInformation]:
        place = types.Position(item.located.line - 1, 0)
        uri = from_fs_path(os.path.abspath(item.located.path)) or ""
        location = types.Location(uri, types.Range(place, place))
        message = printable(item.located.finding.message)
        return [types.DiagnosticRelatedInformation(location, message)]

    def _not_checked(self, problem: FileProblem) -> types.Diagnostic:
        return types.Diagnostic(
            range=self.text.first_line(problem.line),
            message=printable(f"whygpu has not checked this file: {problem.message}"),
            severity=types.DiagnosticSeverity.Information,
            source=SOURCE,
        )

    def hover(self, position: types.Position) -> types.Hover | None:
        """The page of the cause that was found here, or of the code that stands here."""
        for item in self.report.findings:
            if contains(self._range(item), position):
                finding = item.located.finding
                return _hover(api.rule(finding.code), self._range(item), finding.message)
        try:
            word = self.text.word_at(position)
            return _hover(api.rule(word), None) if word.upper().startswith("WG") else None
        except UsageError:
            return None

    def quick_fixes(self, wanted: types.Range) -> Iterator[types.CodeAction]:
        """The fixes on these lines: the cursor need not be within what is marked."""
        for item in self.report.findings:
            if item.edits and share_a_line(self._range(item), wanted):
                finding = item.located.finding
                yield types.CodeAction(
                    title=f"{finding.code}: {printable(finding.remedies[0].text)}",
                    kind=types.CodeActionKind.QuickFix,
                    diagnostics=[self._diagnostic(item)],
                    edit=self._change([self.text.edit(edit) for edit in item.edits]),
                    is_preferred=True,
                )

    def fix_all(self, text: str) -> types.CodeAction | None:
        """Everything that `lint --fix` would change in this text."""
        if not any(item.edits for item in self.report.findings):
            return None
        edits = list(self.text.edits_to(api.fixed_text(self.path, text)))
        if not edits:
            return None
        title = "whygpu: fix everything that can be fixed safely"
        return types.CodeAction(title=title, kind=FIX_ALL, edit=self._change(edits))

    def _change(self, edits: list[types.TextEdit]) -> types.WorkspaceEdit:
        document = types.OptionalVersionedTextDocumentIdentifier(self.uri, self.version)
        return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(document, edits)])


def _page_address(code: str) -> str:
    cause = api.rule(code)
    return f"{_PAGES}{cause.code}-{cause.slug}/"


def _hover(cause: Cause, place: types.Range | None, message: str = "") -> types.Hover:
    parts = (f"**{cause.code} {cause.slug}**", printable(message), cause.guide.strip())
    text = "\n\n".join(part for part in parts if part)
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text), place)

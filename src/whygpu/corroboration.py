"""What this machine's facts say about what a log suggests: confirmed, refuted, or neither."""

from __future__ import annotations

from whygpu.model.explanation import Explanation
from whygpu.model.report import Report


def corroborate(explanation: Explanation, report: Report) -> Explanation:
    """The explanation with the machine's word added to each root cause."""
    found = {finding.cause: finding for finding in report.findings}
    roots = []
    for root in explanation.root_causes:
        same = found.get(root.cause)
        if same is None:
            roots.append(root)
            continue
        roots.append(
            root._replace(
                message=f"{root.message}; here: {same.message}",
                evidence=(*root.evidence, *same.evidence),
                remedies=same.remedies,
                confidence="certain" if same.confidence == "certain" else root.confidence,
                ask=None,
            )
        )
    return explanation._replace(root_causes=tuple(roots))

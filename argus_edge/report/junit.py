"""A verdict as JUnit XML: a suite a model, a test case a budget line."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from argus_edge.gate.units import format_quantity
from argus_edge.report.verdict_table import remark
from argus_edge.schema.verdict import QuorumVerdict, Verdict, VerdictLine
from argus_edge.text import clean

TAGS = {"pass": "", "fail": "failure", "unknown": "error"}


def junit_xml(verdict: Verdict) -> str:
    """Return the verdict as JUnit XML.

    A failed line is a failure; an undecided one an error, since JUnit has no third outcome and a skipped test would
    pass the gate. For a fleet the quorum is a test case, and a board's own lines are shown without failing: CI comes to
    the verdict that the exit code has.
    """
    fleets = {quorum.model for quorum in verdict.quorums}
    suites: defaultdict[str, list[_Case]] = defaultdict(list)
    for line in verdict.lines:
        name = f"{line.model} on {line.device}" if line.device else line.model
        suites[name].append(_case(line, counts=line.device is None or line.model not in fleets))
    for quorum in verdict.quorums:
        suites[quorum.model].append(_quorum_case(quorum))
    root = ET.Element("testsuites", name=clean(f"budget {verdict.budget}"))
    _count(root, [case for cases in suites.values() for case in cases])
    for name, cases in suites.items():
        suite = ET.SubElement(root, "testsuite", name=clean(name))
        _count(suite, cases)
        for case in cases:
            element = ET.SubElement(suite, "testcase", classname=clean(name), name=clean(case.name))
            if case.tag:
                ET.SubElement(element, case.tag, message=clean(case.message))
            ET.SubElement(element, "system-out").text = clean(case.output)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


@dataclass(frozen=True)
class _Case:
    name: str
    tag: str
    """failure, error, or nothing."""
    message: str
    output: str


def _case(line: VerdictLine, *, counts: bool) -> _Case:
    measured = format_quantity(line.measured, line.unit)
    message = {
        "pass": "",
        "fail": f"measured {measured}: {line.reason or 'over the budget'}",
        "unknown": f"cannot decide: {remark(line)}",
    }[line.outcome]
    output = f"measured {measured}; from {line.source}"
    if not counts and message:
        output = f"{line.outcome}: {message}; {output}"
    tag = TAGS[line.outcome] if counts else ""
    return _Case(f"{line.metric} {line.direction} {line.limit_text}", tag, message, output)


def _quorum_case(quorum: QuorumVerdict) -> _Case:
    stands = (
        f"{len(quorum.passed)} of {quorum.total} boards pass; failed: {', '.join(quorum.failed) or 'none'}; "
        f"undecided: {', '.join(quorum.unknown) or 'none'}; not reached: {', '.join(quorum.not_reached) or 'none'}"
    )
    name = f"quorum: {quorum.required} of {quorum.total} boards"
    return _Case(name, TAGS[quorum.outcome], stands if quorum.outcome != "pass" else "", stands)


def _count(element: ET.Element, cases: Sequence[_Case]) -> None:
    element.set("tests", str(len(cases)))
    element.set("failures", str(sum(case.tag == "failure" for case in cases)))
    element.set("errors", str(sum(case.tag == "error" for case in cases)))

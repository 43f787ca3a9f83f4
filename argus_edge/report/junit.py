"""A verdict as JUnit XML: a suite a model, a test case a budget line."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import defaultdict

from argus_edge.gate.units import format_quantity
from argus_edge.schema.verdict import Verdict, VerdictLine
from argus_edge.text import clean


def junit_xml(verdict: Verdict) -> str:
    """Return the verdict as JUnit XML.

    A failed line is a failure; an undecided one an error, since JUnit has no third outcome and a skipped test would
    pass the gate.
    """
    suites: defaultdict[str, list[VerdictLine]] = defaultdict(list)
    for line in verdict.lines:
        suites[f"{line.model} on {line.device}" if line.device else line.model].append(line)
    root = ET.Element(
        "testsuites",
        name=clean(f"budget {verdict.budget}"),
        tests=str(len(verdict.lines)),
        failures=str(sum(line.outcome == "fail" for line in verdict.lines)),
        errors=str(sum(line.outcome == "unknown" for line in verdict.lines)),
    )
    for name, lines in suites.items():
        suite = ET.SubElement(
            root,
            "testsuite",
            name=clean(name),
            tests=str(len(lines)),
            failures=str(sum(line.outcome == "fail" for line in lines)),
            errors=str(sum(line.outcome == "unknown" for line in lines)),
        )
        for line in lines:
            case = ET.SubElement(
                suite, "testcase", classname=clean(name), name=f"{line.metric} {line.direction} {line.limit_text}"
            )
            measured = format_quantity(line.measured, line.unit)
            if line.outcome == "fail":
                ET.SubElement(
                    case, "failure", message=clean(f"measured {measured}: {line.reason or 'over the budget'}")
                )
            elif line.outcome == "unknown":
                ET.SubElement(case, "error", message=clean(f"cannot decide: {line.reason}"))
            ET.SubElement(case, "system-out").text = clean(f"measured {measured}; from {line.source}")
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"

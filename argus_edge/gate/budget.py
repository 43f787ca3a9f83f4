"""Budgets in YAML: what a product can afford, checked with the line number in the error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from argus_edge.artifacts import sha256_file
from argus_edge.gate.metrics import Metric, resolve
from argus_edge.gate.units import parse_quantity
from argus_edge.schema.base import Source
from argus_edge.yaml_lines import YamlReader, read_yaml_text

if TYPE_CHECKING:
    from argus_edge.schema.score import EfficiencyTerm

VERSION = 1
GUIDE = "docs/budgets.md"
STARTERS = "profiles/budgets/"
TOP_LEVEL = ("budget", "name", "description", "device", "limits", "quorum")
LIMIT_FIELDS = ("limit", "component")
# Units of which a measurement is never negative.
POSITIVE = ("s", "bytes", "1/s", "MACs")
QUORUM_FIELDS = ("pass", "of")


@dataclass(frozen=True)
class Limit:
    """One line of a budget."""

    metric: Metric
    value: float
    text: str
    line: int
    component: str | None = None


@dataclass(frozen=True)
class Quorum:
    """How many boards must pass: of the named ones, or of so many."""

    required: int
    total: int
    boards: tuple[str, ...]
    line: int


@dataclass(frozen=True)
class Budget:
    """A budget that holds together."""

    name: str
    source: Source
    limits: tuple[Limit, ...]
    device: str | None = None
    quorum: Quorum | None = None
    description: str = ""
    path: str = ""
    """The file as it was given, for commands to type."""

    def references(self) -> dict[EfficiencyTerm, float]:
        """Return the limits that E can be measured against."""
        terms: dict[str, EfficiencyTerm] = {
            "latency_p50": "latency",
            "peak_memory": "memory",
            "macs": "macs",
            "throughput": "throughput",
        }
        return {
            terms[limit.metric.name]: limit.value
            for limit in self.limits
            if limit.metric.name in terms and limit.component is None and limit.value > 0
        }


class _BudgetReader(YamlReader):
    """Reads limits and the quorum."""

    def limits(self, node: yaml.Node) -> Iterator[Limit]:
        for name, (key, value) in self.mapping(node, None, "limits").items():
            try:
                metric = resolve(name)
            except ValueError as error:
                raise self.fail(key, str(error)) from error
            component, quantity = None, value
            if isinstance(value, yaml.MappingNode):
                fields = self.mapping(value, LIMIT_FIELDS, name)
                if "limit" not in fields:
                    raise self.fail(value, f"{name} has no limit")
                quantity = fields["limit"][1]
                if "component" in fields:
                    component = self.text(fields["component"][1], "component")
            raw = self.scalar(quantity, name)
            try:
                number = parse_quantity(raw, metric.unit)
            except ValueError as error:
                raise self.fail(quantity, f"{name}: {error}") from error
            if number < 0 and metric.unit in POSITIVE and not metric.name.endswith(".drop"):
                raise self.fail(quantity, f"{name}: {raw!r} is below 0, where no measurement is")
            if metric.highest is not None and metric.name.endswith(".drop") and number >= metric.highest:
                raise self.fail(quantity, f"{name}: {raw!r} allows any drop{_meant(number)}")
            if metric.highest is not None and metric.direction == "at least" and number > metric.highest:
                raise self.fail(
                    quantity, f"{name}: {raw!r} is more than any measurement ({metric.highest:g}){_meant(number)}"
                )
            yield Limit(metric, number, str(raw), key.start_mark.line + 1, component)

    def quorum(self, node: yaml.Node) -> Quorum:
        fields = self.mapping(node, QUORUM_FIELDS, "quorum")
        if set(fields) != set(QUORUM_FIELDS):
            raise self.fail(node, "quorum needs both pass and of")
        required = self.whole(fields["pass"][1], "pass")
        of = fields["of"][1]
        boards: tuple[str, ...] = ()
        if isinstance(of, yaml.SequenceNode):
            boards = tuple(self.texts(of, "the quorum"))
            total = len(boards)
        else:
            total = self.whole(of, "of")
        if required > total:
            raise self.fail(fields["pass"][1], f"{required} of {total} boards can never pass")
        return Quorum(required, total, boards, node.start_mark.line + 1)


def _meant(number: float) -> str:
    return f"; write {number:g} % for a percentage" if 1 <= number <= 100 else ""


def parse_budget(text: str, source: Source, where: str) -> Budget:
    """Return the budget that a YAML text states.

    Raises
    ------
    InputError
        Not YAML, an unknown key or metric, a quantity without a fitting unit, with the line number.
    """
    reader = _BudgetReader(where, "budget", GUIDE)
    node = reader.compose(text)
    top = reader.mapping(node, TOP_LEVEL, "the budget")
    version = reader.scalar(top["budget"][1], "budget") if "budget" in top else None
    if version != VERSION:
        raise reader.fail(top["budget"][1] if "budget" in top else node, f"the first line must be `budget: {VERSION}`")
    if "limits" not in top:
        raise reader.fail(node, "there are no limits")
    limits = tuple(reader.limits(top["limits"][1]))
    if not limits:
        raise reader.fail(top["limits"][1], "there are no limits")
    return Budget(
        name=reader.text(top["name"][1], "name") if "name" in top else Path(where).stem,
        source=source,
        limits=limits,
        device=reader.text(top["device"][1], "device") if "device" in top else None,
        quorum=reader.quorum(top["quorum"][1]) if "quorum" in top else None,
        description=reader.text(top["description"][1], "description") if "description" in top else "",
        path=where,
    )


def read_budget(path: Path | str) -> Budget:
    """Read and check a budget's file; see :func:`parse_budget`."""
    text = read_yaml_text(path, "budget", next_step=f"check the path; starters to copy are in {STARTERS}, see {GUIDE}")
    return parse_budget(text, Source(name=Path(path).name, sha256=sha256_file(path)), str(path))

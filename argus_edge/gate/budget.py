"""Budgets in YAML: what a product can afford, checked with the line number in the error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from argus_edge.artifacts import read_file, sha256_file
from argus_edge.errors import InputError
from argus_edge.gate.metrics import Metric, resolve
from argus_edge.gate.units import parse_quantity
from argus_edge.schema.base import Source
from argus_edge.schema.score import EfficiencyTerm

VERSION = 1
MAX_BUDGET_BYTES = 1 << 20
TOP_LEVEL = ("budget", "name", "description", "device", "limits", "quorum")
LIMIT_FIELDS = ("limit", "component")
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


class _Reader:
    """Walks YAML nodes, which know their lines; every complaint names file and line."""

    def __init__(self, where: str) -> None:
        self.where = where

    def fail(self, node: yaml.Node, message: str) -> InputError:
        return InputError(
            f"The budget does not hold: {message}.",
            where=f"{self.where}, line {node.start_mark.line + 1}",
            next_step="see docs/budgets.md",
        )

    def mapping(
        self, node: yaml.Node, allowed: tuple[str, ...] | None, what: str
    ) -> dict[str, tuple[yaml.Node, yaml.Node]]:
        if not isinstance(node, yaml.MappingNode):
            raise self.fail(node, f"{what} must be a mapping (key: value)")
        found: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else None
            if not isinstance(name, str):
                raise self.fail(key, f"a key of {what} must be text")
            if name in found:
                raise self.fail(key, f"{name!r} stands twice in {what}")
            if allowed is not None and name not in allowed:
                raise self.fail(key, f"unknown key {name!r} in {what}; known are {', '.join(allowed)}")
            found[name] = (key, value)
        return found

    def scalar(self, node: yaml.Node, what: str) -> object:
        if not isinstance(node, yaml.ScalarNode):
            raise self.fail(node, f"{what} must be a single value")
        return yaml.constructor.SafeConstructor().construct_object(node)

    def text(self, node: yaml.Node, what: str) -> str:
        value = self.scalar(node, what)
        if not isinstance(value, str) or not value.strip():
            raise self.fail(node, f"{what} must be text")
        return value

    def whole(self, node: yaml.Node, what: str) -> int:
        value = self.scalar(node, what)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self.fail(node, f"{what} must be a whole number of 1 or more")
        return value

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
            yield Limit(metric, number, str(raw), key.start_mark.line + 1, component)

    def quorum(self, node: yaml.Node) -> Quorum:
        fields = self.mapping(node, QUORUM_FIELDS, "quorum")
        if set(fields) != set(QUORUM_FIELDS):
            raise self.fail(node, "quorum needs both pass and of")
        required = self.whole(fields["pass"][1], "pass")
        of = fields["of"][1]
        boards: tuple[str, ...] = ()
        if isinstance(of, yaml.SequenceNode):
            boards = tuple(self.text(item, "a board's name") for item in of.value)
            if len(set(boards)) != len(boards):
                raise self.fail(of, "a board stands twice in the quorum")
            total = len(boards)
        else:
            total = self.whole(of, "of")
        if required > total:
            raise self.fail(fields["pass"][1], f"{required} of {total} boards can never pass")
        return Quorum(required, total, boards, node.start_mark.line + 1)


def parse_budget(text: str, source: Source, where: str) -> Budget:
    """Return the budget that a YAML text states.

    Raises
    ------
    InputError
        Not YAML, an unknown key or metric, a quantity without a fitting unit, with the line number.
    """
    reader = _Reader(where)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise InputError(f"The budget is not YAML: {error.problem}.", where=f"{where}, line {line}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError("The budget is not YAML.", where=where) from error
    if node is None:
        raise InputError("The budget is empty.", where=where, next_step="see docs/budgets.md")
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
    )


def read_budget(path: Path | str) -> Budget:
    """Read and check a budget's file; see :func:`parse_budget`."""
    raw = read_file(path, limit=MAX_BUDGET_BYTES)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError("The budget is not UTF-8 text.", where=str(path)) from error
    return parse_budget(text, Source(name=Path(path).name, sha256=sha256_file(path)), str(path))

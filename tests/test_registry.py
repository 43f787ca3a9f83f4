"""A registry imports what a name stands for when it is first asked for, and lists what there is."""

import re
from typing import get_args

import pytest

from argus_edge.errors import UsageError
from argus_edge.registry import Registry


def test_a_name_gives_its_object() -> None:
    assert Registry("thing", {"ordered": "collections:OrderedDict"})["ordered"].__name__ == "OrderedDict"


def test_an_unknown_name_lists_the_known_ones() -> None:
    registry = Registry("thing", {"a": "x:y", "b": "x:z"})
    with pytest.raises(UsageError, match="Unknown thing 'c'") as error:
        registry["c"]
    assert error.value.next_step == "choose one of: a, b"


def test_a_module_that_does_not_exist_is_not_imported_by_listing() -> None:
    registry = Registry("thing", {"a": "no_such_module:y"})
    assert list(registry) == ["a"]
    assert "a" in registry


def test_a_runtime_is_in_every_list_of_runtimes() -> None:
    from argus_edge.agents import probe, runtimes, wire
    from argus_edge.bench.model_types import RUNTIMES_OF
    from argus_edge.bench.preflight import PROVIDERS_OF
    from argus_edge.cli import bench
    from argus_edge.schema.agent import Part
    from argus_edge.schema.device import RuntimeLimit

    every = set(wire.RUNTIMES)
    imported = every - {"server", "null"}
    lists = {
        "agents/runtimes/__init__.py": (every, runtimes.MODULES),
        "cli/bench.py": (every, set(bench.RUNTIMES) - {"auto"}),
        "schema/agent.py": (every, get_args(Part.model_fields["runtime"].annotation)),
        "bench/model_types.py": (every, [name for names in RUNTIMES_OF.values() for name in names]),
        "bench/preflight.py": (every, PROVIDERS_OF),
        "agents/probe.py, PROGRAMS": (imported, probe.PROGRAMS),
        "agents/probe.py, MODULES_OF": (imported, probe.MODULES_OF),
        "schema/device.py": (imported, get_args(RuntimeLimit.model_fields["runtime"].annotation)),
    }
    assert {where: set(names) ^ wanted for where, (wanted, names) in lists.items() if set(names) != wanted} == {}


def test_the_help_of_judge_evaluate_names_every_method() -> None:
    from argus_edge.cli.judge import evaluate
    from argus_edge.judge.methods import METHODS

    named = re.search("Methods: (.*?)\\.", " ".join((evaluate.help or "").split()))
    assert named
    assert {name.split()[0] for name in named[1].split(", ")} == set(METHODS)

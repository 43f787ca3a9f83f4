"""A registry imports what a name stands for when it is first asked for, and lists what there is."""

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

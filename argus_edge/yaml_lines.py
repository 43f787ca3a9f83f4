"""YAML that knows its lines: every complaint about a user's file names the file and the line."""

from __future__ import annotations

import yaml

from argus_edge.artifacts import read_file
from argus_edge.errors import InputError

MAX_YAML_BYTES = 1 << 20


class YamlReader:
    """Walks YAML nodes; subclasses add what their document holds.

    Parameters
    ----------
    where
        The file, for the error.
    what
        What the file is ("budget", "plan"), for the error.
    guide
        The page of the documentation that says how to write one.
    """

    def __init__(self, where: str, what: str, guide: str) -> None:
        self.where = where
        self.what = what
        self.guide = guide

    def compose(self, text: str) -> yaml.Node:
        """Return the document's root node.

        Raises
        ------
        InputError
            Not YAML, or empty.
        """
        try:
            node = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            raise InputError(
                f"The {self.what} is not YAML: {error.problem}.", where=f"{self.where}, line {line}"
            ) from error
        except (yaml.YAMLError, RecursionError) as error:
            raise InputError(f"The {self.what} is not YAML.", where=self.where) from error
        if node is None:
            raise InputError(f"The {self.what} is empty.", where=self.where, next_step=f"see {self.guide}")
        return node

    def fail(self, node: yaml.Node, message: str) -> InputError:
        """Return the error that names a node's line."""
        return InputError(
            f"The {self.what} does not hold: {message}.",
            where=f"{self.where}, line {node.start_mark.line + 1}",
            next_step=f"see {self.guide}",
        )

    def mapping(
        self, node: yaml.Node, allowed: tuple[str, ...] | None, what: str
    ) -> dict[str, tuple[yaml.Node, yaml.Node]]:
        """Return a mapping's (key node, value node) by key; unknown and repeated keys are errors."""
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
        """Return a plain value."""
        if not isinstance(node, yaml.ScalarNode):
            raise self.fail(node, f"{what} must be a single value")
        try:
            value: object = yaml.constructor.SafeConstructor().construct_object(node)
        except (yaml.YAMLError, ValueError) as error:
            raise self.fail(node, f"{what} is not a plain value") from error
        return value

    def text(self, node: yaml.Node, what: str) -> str:
        """Return a text that is not empty."""
        value = self.scalar(node, what)
        if not isinstance(value, str) or not value.strip():
            raise self.fail(node, f"{what} must be text")
        return value

    def whole(self, node: yaml.Node, what: str) -> int:
        """Return a whole number of at least 1."""
        value = self.scalar(node, what)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self.fail(node, f"{what} must be a whole number of 1 or more")
        return value

    def flag(self, node: yaml.Node, what: str) -> bool:
        """Return true or false."""
        value = self.scalar(node, what)
        if not isinstance(value, bool):
            raise self.fail(node, f"{what} must be true or false")
        return value

    def texts(self, node: yaml.Node, what: str) -> list[str]:
        """Return a list of texts; a single one stands for a list of one."""
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
        found = [self.text(each, f"an entry of {what}") for each in nodes]
        if len(set(found)) != len(found):
            raise self.fail(node, f"an entry stands twice in {what}")
        return found


def read_yaml_text(path: object, what: str, *, next_step: str) -> str:
    """Return a YAML file's text.

    Parameters
    ----------
    path
        The file.
    what
        What it is ("budget", "plan"), for the error.
    next_step
        Where one is to be had, for the error of a missing one.

    Raises
    ------
    InputError
        Missing, too large, or not UTF-8.
    """
    try:
        return read_file(str(path), limit=MAX_YAML_BYTES, next_step=next_step).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"The {what} is not UTF-8 text.", where=str(path)) from error

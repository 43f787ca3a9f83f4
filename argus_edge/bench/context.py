"""What the host knows of a run when it starts it; saved, so that a later process can make the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import TypeAdapter, ValidationError

from argus_edge.errors import InputError
from argus_edge.schema.agent import Job
from argus_edge.schema.base import Source
from argus_edge.schema.bench import BenchedDevice, BenchedModel, Setup
from argus_edge.schema.bundle import ParityLimits
from argus_edge.schema.device import Profile


@dataclass(frozen=True)
class Cost:
    """What one call of a component costs.

    Attributes
    ----------
    macs
        Multiply-accumulates; None where they are not known.
    traffic_bytes
        Weights, inputs and outputs that it reads and writes.
    notes
        What could not be counted.
    """

    macs: float | None = None
    traffic_bytes: float | None = None
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class ComponentContext:
    """What the host knows of a component, or of the whole unit of work (``unit`` in words), and the agent does not."""

    precision: str | None = None
    cost: Cost = field(default_factory=Cost)
    limits: ParityLimits | None = None
    largest_output: float | None = None
    unit: str | None = None
    prompt_tokens: int | None = None
    image_tokens: int | None = None


@dataclass(frozen=True)
class Context:
    """What a report needs beside the agent's result.

    Attributes
    ----------
    run
        Its id.
    job
        As sent.
    model, device, setup
        The report's own sections.
    profile
        Of the device.
    components
        By name.
    sources
        What the report is made from.
    notes
        For the reader.
    energy
        A pass for energy is to follow.
    """

    run: str
    job: Job
    model: BenchedModel
    device: BenchedDevice
    setup: Setup
    profile: Profile
    components: Mapping[str, ComponentContext]
    sources: Sequence[Source] = ()
    notes: Sequence[str] = ()
    energy: bool = False

    def to_json(self) -> str:
        """Return the context as JSON."""
        return _ADAPTER.dump_json(self).decode()

    @classmethod
    def from_json(cls, text: str) -> Context:
        """Return the context that :meth:`to_json` wrote.

        Raises
        ------
        InputError
            It was written by a version whose contexts this one does not read.
        """
        try:
            return _ADAPTER.validate_json(text)
        except ValidationError as error:
            raise InputError(
                "This run was started by another version of argus-edge and cannot be taken up again.",
                next_step="run it again, or install that version",
            ) from error


_ADAPTER: TypeAdapter[Context] = TypeAdapter(Context)

"""What an agent needs to run a whole unit of work: models, their order, how to write text, what a picture becomes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from argus_edge.schema.bundle import Generation, ImagePreprocess, Step

Format = Literal["onnx", "tflite", "torchscript", "exported", "engine", "none"]
Path = Annotated[str, StringConstraints(max_length=2048)]


class PipelineComponent(BaseModel):
    """A model of a unit of work."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(max_length=64)
    model: Path = Field(description="Path on the device.")
    format: Format
    input_names: list[str] = Field(default_factory=list, max_length=4096, description="In the file's order.")
    outputs: list[str] = Field(default_factory=list, max_length=4096, description="Names, in the file's order.")


class Decoding(Generation):
    """How to write with a decoder, and how much."""

    output_tokens: int = Field(ge=1, le=65_536, description="Written in each unit of work, whatever the tokens are.")
    past: int | None = Field(
        default=None, description="The one length that the past has in the file; None: any (the usual case)."
    )


class Pipeline(BaseModel):
    """Several models as one unit of work."""

    model_config = ConfigDict(extra="forbid")

    components: list[PipelineComponent] = Field(min_length=1, max_length=64)
    steps: list[Step] = Field(min_length=1, max_length=64)
    generation: Decoding | None = None


class ServerTarget(BaseModel):
    """A server on the device that is driven, and what is asked of it."""

    model_config = ConfigDict(extra="forbid")

    url: str = Field(max_length=2048, description="As the device sees it, e.g. http://127.0.0.1:8080/v1.")
    model: str | None = Field(default=None, max_length=256, description="None: the one that it serves.")
    prompt_tokens: int = Field(ge=1, le=1_000_000)
    output_tokens: int = Field(ge=1, le=65_536)
    images: list[Path] = Field(
        default_factory=list, max_length=64, description="Pictures on the device, one in each request, in turn."
    )
    timeout_s: float = Field(default=300.0, gt=0, description="Of silence.")


class Preparation(ImagePreprocess):
    """How a picture is prepared, and the picture's height and width."""

    picture: tuple[Annotated[int, Field(ge=1, le=16_384)], Annotated[int, Field(ge=1, le=16_384)]]

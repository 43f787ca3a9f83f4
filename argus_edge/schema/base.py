"""What every artefact carries: kind, schema version, tool version, creation time, and what it was made from."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from argus_edge._version import __version__


class Model(BaseModel):
    """A part of an artefact: unknown fields are an error, so that a typing mistake is not silently dropped."""

    # NaN and infinity are written as strings ("NaN", "Infinity"), never as invalid JSON and never as null.
    model_config = ConfigDict(extra="forbid", ser_json_inf_nan="strings", validate_assignment=False)


class Source(Model):
    """One input that an artefact was made from."""

    name: str = Field(description="File name or identifier, never a full path of the host.", max_length=512)
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    revision: str | None = Field(default=None, max_length=256)


class Artifact(Model):
    """Base of the artefacts that commands exchange as files."""

    KIND: ClassVar[str] = ""
    VERSION: ClassVar[int] = 1

    kind: str = ""
    schema_version: int = 0
    tool_version: str = __version__
    created: datetime = Field(default_factory=lambda: datetime.now(timezone.utc))
    sources: list[Source] = Field(default_factory=list)

    def model_post_init(self, context: Any, /) -> None:
        """Fill in the kind and the schema version of the class."""
        self.kind = self.kind or self.KIND
        self.schema_version = self.schema_version or self.VERSION

    @classmethod
    def migrate(cls, document: dict[str, Any], version: int) -> dict[str, Any]:
        """Bring an older document up to ``VERSION``; overridden by a class once it has a second version."""
        raise ValueError(f"no migration from schema version {version}")

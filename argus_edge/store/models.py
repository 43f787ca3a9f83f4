"""The tables of the store."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Boolean, DateTime, Float, Index, LargeBinary, String, Text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    """Base of the tables."""


class Run(Base):
    """One run: what a list shows in columns of their own, the rest as the documents they are."""

    __tablename__ = "runs"
    __table_args__ = (
        Index("ix_runs_created", "created"),
        Index("ix_runs_device_model", "device", "model"),
        Index("ix_runs_cell", "cell"),
    )

    id: Mapped[str] = mapped_column(String(80), primary_key=True)
    kind: Mapped[str] = mapped_column(String(32))
    state: Mapped[str] = mapped_column(String(32))
    created: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    ended: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    device: Mapped[str] = mapped_column(String(64))
    profile: Mapped[str] = mapped_column(String(64))
    model: Mapped[str] = mapped_column(String(256))
    model_sha256: Mapped[str | None] = mapped_column(String(64))
    scenario: Mapped[str] = mapped_column(String(32))
    valid: Mapped[bool | None] = mapped_column(Boolean)
    p50_s: Mapped[float | None] = mapped_column(Float)
    error: Mapped[str | None] = mapped_column(Text)
    entry: Mapped[str] = mapped_column(Text)
    """The device's entry as it was, JSON: where the run can be found again."""
    context: Mapped[str] = mapped_column(Text)
    """What the report needs beside the agent's result, JSON."""
    report: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True)
    """The report, zlib-compressed JSON."""
    report_sha256: Mapped[str | None] = mapped_column(String(64))
    batch: Mapped[str | None] = mapped_column(String(40))
    """The matrix that it belongs to."""
    cell: Mapped[str | None] = mapped_column(String(64))
    """Hash of what is benched, how and where."""

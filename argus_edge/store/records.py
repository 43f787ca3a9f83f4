"""Recording runs and finding them again: the one interface to the store."""

from __future__ import annotations

import contextlib
import hashlib
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TypeVar

from sqlalchemy import Engine, delete, select, update
from sqlalchemy.exc import DatabaseError, OperationalError
from sqlalchemy.orm import Session

from argus_edge.artifacts import dump_artifact, parse_artifact
from argus_edge.errors import HostError, InputError, UsageError
from argus_edge.schema.base import Artifact
from argus_edge.schema.bench import BenchReport
from argus_edge.schema.evaluation import EvalReport
from argus_edge.store.engine import open_engine, remedy
from argus_edge.store.migrate import ensure_current
from argus_edge.store.models import Run

# Samples hardly compress: more effort takes seconds for long runs, and saves a few per cent.
COMPRESSION = 1

A = TypeVar("A", bound=Artifact)

UNFINISHED = ("starting", "running", "detached")


@dataclass(frozen=True)
class Cell:
    """Where a run stands in a matrix of models and boards.

    Attributes
    ----------
    batch
        Id of the matrix: of all that one command began.
    key
        Hash of what is benched, how and where: equal for the same bench in another matrix.
    """

    batch: str
    key: str


@dataclass(frozen=True)
class Record:
    """A run as the list shows it."""

    id: str
    kind: str
    state: str
    created: datetime
    ended: datetime | None
    device: str
    profile: str
    model: str
    model_sha256: str | None
    scenario: str
    valid: bool | None
    p50_s: float | None
    error: str | None
    has_report: bool
    batch: str | None = None
    cell: str | None = None


class Store:
    """The record of runs.

    Parameters
    ----------
    url
        Of the database; None: as the environment says, else SQLite in the user's data folder.

    Raises
    ------
    HostError
        The database cannot be opened or written.
    """

    def __init__(self, url: str | None = None) -> None:
        self._engine: Engine = open_engine(url)
        with self._errors():
            ensure_current(self._engine)

    @property
    def where(self) -> str:
        """The database for a message, without a password."""
        return self._engine.url.render_as_string(hide_password=True)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (OperationalError, DatabaseError) as error:
            raise HostError(
                f"The record of runs cannot be used: {str(error.orig)[:300]}.",
                where=self.where,
                next_step=remedy(),
            ) from error

    @contextlib.contextmanager
    def _session(self) -> Iterator[Session]:
        with self._errors(), Session(self._engine) as session, session.begin():
            yield session

    # ------------------------------------------------------------ writing

    def add(
        self,
        run: str,
        *,
        kind: str = "bench",
        device: str,
        profile: str,
        model: str,
        model_sha256: str | None,
        scenario: str,
        entry: str,
        context: str,
        batch: str | None = None,
        cell: str | None = None,
    ) -> None:
        """Record a run that is about to start."""
        with self._session() as session:
            session.add(
                Run(
                    id=run,
                    kind=kind,
                    state="starting",
                    created=datetime.now(timezone.utc),
                    device=device,
                    profile=profile,
                    model=model[:256],
                    model_sha256=model_sha256,
                    scenario=scenario,
                    entry=entry,
                    context=context,
                    batch=batch,
                    cell=cell,
                )
            )

    def set_state(self, run: str, state: str, *, error: str | None = None) -> None:
        """Record how a run stands; an end is given its time."""
        ended = None if state in UNFINISHED else datetime.now(timezone.utc)
        with self._session() as session:
            session.execute(
                update(Run).where(Run.id == run).values(state=state, error=error and error[:2000], ended=ended)
            )

    def finish(self, run: str, report: BenchReport, *, state: str, error: str | None = None) -> None:
        """Keep a run's report."""
        text = dump_artifact(report).encode()
        headline = report.summary.get("p50")
        with self._session() as session:
            session.execute(
                update(Run)
                .where(Run.id == run)
                .values(
                    state=state,
                    ended=datetime.now(timezone.utc),
                    valid=report.validity.valid,
                    p50_s=headline.value if headline else None,
                    error=error and error[:2000],
                    report=zlib.compress(text, COMPRESSION),
                    report_sha256=hashlib.sha256(text).hexdigest(),
                )
            )

    def add_evaluation(self, report: EvalReport) -> str | None:
        """Keep a finished evaluation; return its id, or None where this very report is kept already."""
        text = dump_artifact(report).encode()
        sha256 = hashlib.sha256(text).hexdigest()
        words = re.sub(r"[^A-Za-z0-9]+", "-", report.model.name).strip("-").lower()[:40]
        run = f"{report.created:%Y%m%d-%H%M%S}-eval-{words}-{sha256[:4]}"
        with self._session() as session:
            if session.scalars(select(Run.id).where(Run.report_sha256 == sha256)).first() is not None:
                return None
            session.add(
                Run(
                    id=run,
                    kind="eval",
                    state="done",
                    created=report.created,
                    ended=report.created,
                    device="host",
                    profile=report.compute,
                    model=report.model.name[:256],
                    model_sha256=report.model.bundle_sha256 or report.model.sha256,
                    scenario=",".join(dataset.name for dataset in report.datasets)[:32],
                    entry="{}",
                    context="{}",
                    report=zlib.compress(text, COMPRESSION),
                    report_sha256=sha256,
                )
            )
        return run

    def remove(self, runs: Sequence[str]) -> int:
        """Forget runs; return how many there were."""
        with self._session() as session:
            found = session.scalars(select(Run.id).where(Run.id.in_(runs))).all()
            session.execute(delete(Run).where(Run.id.in_(runs)))
        return len(found)

    # ------------------------------------------------------------ reading

    def list(
        self,
        *,
        device: str | None = None,
        model: str | None = None,
        state: str | None = None,
        scenario: str | None = None,
        kind: str | None = None,
        since: datetime | None = None,
        limit: int = 1000,
    ) -> list[Record]:
        """Return runs, the newest first; each argument keeps those that are so, ``since`` those begun then or later."""
        query = select(Run, Run.report_sha256.is_not(None)).order_by(Run.created.desc(), Run.id.desc()).limit(limit)
        wanted = {
            Run.device: device,
            Run.model: model,
            Run.state: state,
            Run.scenario: scenario,
            Run.kind: kind,
        }
        for column, value in wanted.items():
            if value is not None:
                query = query.where(column == value)
        if since is not None:
            query = query.where(Run.created >= since)
        with self._session() as session:
            return [_record(row, bool(has_report)) for row, has_report in session.execute(query)]

    def last_batch(self, cells: Sequence[str]) -> dict[str, Record]:
        """Return the newest run of each cell within the batch that was the last to hold one of them.

        Parameters
        ----------
        cells
            Keys of cells.

        Returns
        -------
        dict
            Key to run; empty where none of them was ever run.
        """
        query = select(Run, Run.report_sha256.is_not(None)).order_by(Run.created.desc(), Run.id.desc())
        with self._session() as session:
            newest = session.scalars(
                select(Run.batch).where(Run.cell.in_(cells)).order_by(Run.created.desc(), Run.id.desc()).limit(1)
            ).first()
            found: dict[str, Record] = {}
            for row, has_report in session.execute(query.where(Run.batch == newest, Run.cell.in_(cells))):
                found.setdefault(str(row.cell), _record(row, bool(has_report)))
            return found

    def find(self, run: str) -> Record:
        """Return a run by its id or an unambiguous beginning of it.

        Raises
        ------
        UsageError
            There is none, or several begin so.
        """
        with self._session() as session:
            rows = session.scalars(select(Run).where(Run.id.startswith(run, autoescape=True)).limit(3)).all()
            exact = [row for row in rows if row.id == run] or rows
            records = [_record(row, row.report_sha256 is not None) for row in exact]
        if len(records) == 1:
            return records[0]
        raise UsageError(
            f"There is no run {run!r}." if not records else f"Several runs begin with {run!r}.",
            where=self.where,
            next_step="argus-edge runs list",
        )

    def documents(self, run: str) -> tuple[str, str]:
        """Return a run's device entry and context, both JSON."""
        with self._session() as session:
            row = session.get_one(Run, run)
            return row.entry, row.context

    def report(self, run: str) -> BenchReport:
        """Return a bench's report.

        Raises
        ------
        InputError
            It has none (yet), or it cannot be read.
        """
        return self._artifact(run, BenchReport)

    def evaluation(self, run: str) -> EvalReport:
        """Return an evaluation's report; raises as :meth:`report` does."""
        return self._artifact(run, EvalReport)

    def _artifact(self, run: str, kind: type[A]) -> A:
        with self._session() as session:
            row = session.get_one(Run, run)
            packed = row.report
        if packed is None:
            raise InputError("The run has no report.", where=run, next_step=f"argus-edge bench --resume {run}")
        return parse_artifact(zlib.decompress(packed), kind, where=f"{self.where}: {run}")

    def close(self) -> None:
        """Give the connections back."""
        self._engine.dispose()


def _record(row: Run, has_report: bool) -> Record:
    return Record(
        id=row.id,
        kind=row.kind,
        state=row.state,
        created=_utc(row.created),
        ended=_utc(row.ended) if row.ended else None,
        device=row.device,
        profile=row.profile,
        model=row.model,
        model_sha256=row.model_sha256,
        scenario=row.scenario,
        valid=row.valid,
        p50_s=row.p50_s,
        error=row.error,
        has_report=has_report,
        batch=row.batch,
        cell=row.cell,
    )


def _utc(moment: datetime) -> datetime:
    # SQLite forgets the zone.
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)

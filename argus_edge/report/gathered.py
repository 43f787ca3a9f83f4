"""Everything a page is made of: the artefacts of many files, sorted by kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from argus_edge.reports import Found, find_reports, of_kind
from argus_edge.schema.base import Artifact
from argus_edge.schema.bench import BenchReport
from argus_edge.schema.bundle import BundleManifest
from argus_edge.schema.comparison import Comparison
from argus_edge.schema.evaluation import EvalReport
from argus_edge.schema.judge import JudgeCalibration
from argus_edge.schema.score import ScoreReport
from argus_edge.schema.sizing import Sizing
from argus_edge.schema.verdict import Verdict

if TYPE_CHECKING:
    from argus_edge.gate.budget import Budget

A = TypeVar("A", bound=Artifact)

KINDS = (BenchReport, EvalReport, ScoreReport, Verdict, Comparison, Sizing, BundleManifest, JudgeCalibration)


@dataclass(frozen=True)
class Moment:
    """A recorded run of the past: a point of the trend."""

    run: str
    when: datetime
    device: str
    scenario: str
    valid: bool | None
    p50_s: float


@dataclass(frozen=True)
class Gathered:
    """Artefacts with their files; of scores, verdicts, comparisons and sizings the newest counts."""

    benches: Sequence[Found[BenchReport]] = ()
    evals: Sequence[Found[EvalReport]] = ()
    bundles: Sequence[Found[BundleManifest]] = ()
    score: Found[ScoreReport] | None = None
    verdict: Found[Verdict] | None = None
    comparison: Found[Comparison] | None = None
    sizing: Found[Sizing] | None = None
    history: Sequence[Moment] = ()
    notes: list[str] = field(default_factory=list)
    given: Sequence[str] = ()
    """The paths as they were typed."""
    budget: Budget | None = None
    """What the verdict was computed with, where it was computed for this page."""


def gather(
    paths: Iterable[str | Path],
    *,
    budget: str | Path | None = None,
    baseline: Iterable[str | Path] = (),
    history: Sequence[Moment] = (),
) -> Gathered:
    """Read the artefacts of files and folders; what was not computed before is computed now.

    Parameters
    ----------
    paths
        Files and folders.
    budget
        The reports are held against it; else a verdict among the files counts.
    baseline
        Bench reports of the last release; else a comparison among the files counts.
    history
        Recorded runs, for the trend.

    Notes
    -----
    A score is computed where there is an eval report and none was among the files. Reports that do not belong
    together give no score, and the page says why.
    """
    from argus_edge.errors import ArgusError
    from argus_edge.gate.budget import read_budget
    from argus_edge.gate.compare import compare_reports
    from argus_edge.gate.validate import validate_reports
    from argus_edge.score.assemble import score_reports

    given = [str(path) for path in paths]
    found = find_reports(given, KINDS) if given else []
    benches, evals, judges = of_kind(found, BenchReport), of_kind(found, EvalReport), of_kind(found, JudgeCalibration)
    notes: list[str] = []
    score = _newest(of_kind(found, ScoreReport))
    if score is None and evals:
        try:
            score = Found(Path("computed for this page"), "", score_reports(evals, benches, judges))
        except ArgusError as error:
            notes.append(f"No score: {error.what}" + (f" ({error.where})" if error.where else ""))
    verdict = _newest(of_kind(found, Verdict))
    held = read_budget(budget) if budget is not None else None
    if held is not None:
        verdict = Found(Path("computed for this page"), "", validate_reports(held, benches, evals, judges))
    comparison = _newest(of_kind(found, Comparison))
    earlier = list(baseline)
    if earlier:
        before = of_kind(find_reports(earlier, (BenchReport,)), BenchReport)
        comparison = Found(Path("computed for this page"), "", compare_reports(before, benches))
    return Gathered(
        benches=benches,
        evals=evals,
        bundles=of_kind(found, BundleManifest),
        score=score,
        verdict=verdict,
        comparison=comparison,
        sizing=_newest(of_kind(found, Sizing)),
        history=history,
        notes=notes,
        given=given,
        budget=held,
    )


def read_history(model: str, *, limit: int = 1000) -> list[Moment]:
    """Return the recorded runs of a model that have a median, the oldest first.

    Raises
    ------
    UsageError
        No run of this model is recorded.
    """
    from argus_edge.errors import UsageError
    from argus_edge.store.records import Store

    store = Store()
    moments = [
        Moment(record.id, record.created, record.device, record.scenario, record.valid, record.p50_s)
        for record in store.list(model=model, limit=limit)
        if record.p50_s is not None
    ]
    if not moments:
        raise UsageError(
            f"No finished run of {model!r} is recorded.", where=store.where, next_step="argus-edge runs list"
        )
    return sorted(moments, key=lambda moment: moment.when)


def _newest(found: Sequence[Found[A]]) -> Found[A] | None:
    return max(found, key=lambda each: each.artifact.created, default=None)

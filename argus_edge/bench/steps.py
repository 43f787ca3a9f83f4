"""Figures of what happens within a call: the steps of a unit of work, and the tokens that it writes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from argus_edge.bench.figures import throughput
from argus_edge.bench.percentiles import percentile
from argus_edge.bench.samples import Samples, encode
from argus_edge.errors import RunFailedError
from argus_edge.schema.bench import Estimate, Generation, Preprocessing, StepFigures
from argus_edge.schema.pipeline import Pipeline, Preparation

Seconds = NDArray[np.float64]
# No answer is longer, whatever a server says.
MAX_TOKENS = 1e7


def encoders(pipeline: Pipeline) -> list[str]:
    """Return the components of a unit of work that run before any text is written, in order."""
    return [step.component for step in pipeline.steps if step.phase == "encode"]


def step_figures(samples: Samples, names: Sequence[str], output_tokens: int, window_s: float) -> list[StepFigures]:
    """Return the figures of each step.

    Parameters
    ----------
    samples
        With their marks: the end of each step that encodes, then each token.
    names
        Of the steps that encode.
    output_tokens
        Tokens that a call writes; 0: it writes none.
    window_s
        Length of the window, seconds.

    Raises
    ------
    RunFailedError
        The marks are not as many, or not in order.
    """
    marks = samples.marks
    if marks.shape[1] != len(names) + output_tokens:
        raise RunFailedError("The samples do not hold the moments of every step.")
    moments = np.column_stack([samples.start, marks])
    spans = np.diff(moments, axis=1)
    if (spans < 0).any() or (marks[:, -1] > samples.end).any():
        raise RunFailedError("The samples hold a step that ends before it begins.")
    found = [_step(name, spans[:, place], window_s) for place, name in enumerate(names)]
    if output_tokens:
        found.append(_step("prefill", spans[:, len(names)], window_s))
    if output_tokens > 1:
        found.append(_step("decode", spans[:, len(names) + 1 :].sum(axis=1), window_s))
    return found


def _step(name: str, spans: Seconds, window_s: float) -> StepFigures:
    return StepFigures(name=name, p50=percentile(spans, 0.5, window_s=window_s), samples=encode(spans, "ns"))


def token_figures(
    first: Seconds,
    gaps: Seconds,
    *,
    window_s: float,
    prompt_tokens: int | None,
    image_tokens: int | None = None,
    output_tokens: int | None,
    rate_gaps: Seconds | None = None,
    prefill: Seconds | None = None,
    kv_cache_bytes: int | None = None,
    notes: Sequence[str] = (),
) -> Generation:
    """Return the figures of writing text.

    Parameters
    ----------
    first
        Shape (calls,): seconds from each call's start to its first token.
    gaps
        Shape (n,): seconds between one token and the next, call after call.
    window_s
        Length of the window, seconds.
    rate_gaps
        As ``gaps``, for the rate; None: those.
    prefill
        Shape (calls,): seconds of reading the prompt alone, where that is known.
    """
    nothing = Estimate(value=None, reason="one token was written in each call: there is nothing between tokens")
    rate = None
    if prefill is not None and prompt_tokens is not None and len(prefill):
        spent = percentile(prefill, 0.5, window_s=window_s)
        rate = spent.model_copy(
            update={
                "value": _per(prompt_tokens, spent.value),
                "low": _per(prompt_tokens, spent.high),
                "high": _per(prompt_tokens, spent.low),
            }
        )
    return Generation(
        prompt_tokens=prompt_tokens,
        image_tokens=image_tokens,
        output_tokens=output_tokens,
        ttft=percentile(first, 0.5, window_s=window_s),
        inter_token=percentile(gaps, 0.5, window_s=window_s) if len(gaps) else nothing,
        tokens_per_s=tokens_per_s(gaps if rate_gaps is None else rate_gaps) if len(gaps) else nothing,
        prefill_tokens_per_s=rate,
        kv_cache_bytes=kv_cache_bytes,
        ttft_samples=encode(first, "ns"),
        inter_token_samples=encode(gaps, "ns"),
        notes=list(notes),
    )


def _per(count: int, seconds: float | None) -> float | None:
    return count / seconds if seconds else None


def tokens_per_s(gaps: Seconds) -> Estimate:
    """Return tokens a second after the first token: their number over the time they took."""
    ends = np.cumsum(gaps)
    found = throughput(ends, float(ends[-1]), 1)
    return found.model_copy(
        update={"method": "tokens after the first over their time; normal interval of the mean gap, n_eff by its "
                "autocorrelation"}
    )  # fmt: skip


def generation_of(
    samples: Samples,
    pipeline: Pipeline,
    *,
    window_s: float,
    prompt_tokens: int | None,
    image_tokens: int | None,
    kv_cache_bytes: int | None,
) -> Generation | None:
    """Return the figures of a unit of work that writes text, None of one that does not."""
    if pipeline.generation is None:
        return None
    before = len(encoders(pipeline))
    tokens = samples.marks[:, before:]
    begun = samples.marks[:, before - 1] if before else samples.start
    notes = []
    if pipeline.generation.past is not None:
        notes.append("the decoder's file takes one token a call: the prompt was read token by token")
    return token_figures(
        tokens[:, 0] - samples.start,
        np.diff(tokens, axis=1).ravel(),
        window_s=window_s,
        prompt_tokens=prompt_tokens,
        image_tokens=image_tokens,
        output_tokens=pipeline.generation.output_tokens,
        prefill=tokens[:, 0] - begun,
        kv_cache_bytes=kv_cache_bytes,
        notes=notes,
    )


def served_generation(
    samples: Samples, *, asked: int, window_s: float, prompt_tokens: int | None, image: bool
) -> Generation:
    """Return the figures of a driven server.

    Parameters
    ----------
    samples
        With their marks: the arrival of each piece of text, 0 where none came; last the number of tokens by the
        server's own count, or minus the number of pieces where it does not tell.
    asked
        Tokens that each request asked for.
    image
        A picture was in each request.

    Raises
    ------
    RunFailedError
        The marks are not as many, or not in order.
    """
    if samples.marks.shape[1] != asked + 1:
        raise RunFailedError("The samples do not hold the moments of every token.")
    arrivals, told = samples.marks[:, :-1], np.abs(samples.marks[:, -1])
    if (arrivals[:, 0] < samples.start).any() or (arrivals > samples.end[:, None]).any() or (told > MAX_TOKENS).any():
        raise RunFailedError("The samples hold a token that came before its request, or after its end.")
    counts = told.astype(int)
    gaps, spread = [], []
    lumped = False
    for moments, count in zip(arrivals, counts, strict=True):
        seen = moments[moments > 0]
        own = np.diff(seen)
        if (own < 0).any():
            raise RunFailedError("The samples hold a token that came before the one before it.")
        if count not in (len(seen), 0) and count <= asked and count > 1:
            # Several tokens in a piece, or pieces without a token of their own: the mean is what is known.
            lumped = True
            mean = (seen[-1] - seen[0]) / (count - 1)
            gaps.append(np.array([mean]))
            spread.append(np.full(count - 1, mean))
        else:
            gaps.append(own)
            spread.append(own)
    notes = []
    if (samples.marks[:, -1] < 0).any():
        notes.append("the server does not count its tokens: each piece of text is taken for one")
    if lumped:
        notes.append("the server's pieces of text are not its tokens: between tokens stands each answer's mean")
    written = int(np.median(counts))
    if written < asked:
        notes.append(f"{asked} tokens were asked for, the server ended after {written} (median)")
    if image:
        notes.append("a server that keeps what it made of a picture it has seen is spared that work")
    return token_figures(
        arrivals[:, 0] - samples.start,
        np.concatenate(gaps),
        window_s=window_s,
        prompt_tokens=prompt_tokens,
        output_tokens=written,
        rate_gaps=np.concatenate(spread),
        notes=notes,
    )


def preprocessing(seconds: Sequence[float], how: Preparation, library: str | None) -> Preprocessing | None:
    """Return the figures of preparing pictures; None where none was prepared.

    Raises
    ------
    RunFailedError
        A time that cannot be.
    """
    if not seconds:
        return None
    spans = np.asarray(seconds, dtype=np.float64)
    if (spans < 0).any():
        raise RunFailedError("A picture took less than no time.")
    height, width = how.picture
    return Preprocessing(
        p50=percentile(spans, 0.5, window_s=float(spans.sum())),
        samples=encode(spans, "ns"),
        description=f"a {width} x {height} RGB picture in memory to {how.width} x {how.height} ({how.resample}, "
        f"normalised), on the device with {library or 'numpy'}; after the timed window, and in no other figure",
    )

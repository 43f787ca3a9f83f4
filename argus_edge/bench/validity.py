"""Whether a measurement may be trusted, and if not, why, and what to do about it."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from argus_edge.schema.agent import DeviceFacts, PartResult, Scenario, SeriesPoint
from argus_edge.schema.bench import Figures, Validity, ValidityCause
from argus_edge.schema.bundle import ParityLimits
from argus_edge.text import clean

MAX_DRIFT = 0.05
MAX_OTHER_CPU = 0.05
CLOCK_SHARE = 0.95
# So many readings in a row below that share, and at least this part of the window's, are a capped clock.
CAPPED_READINGS = 2
CAPPED_SHARE = 0.1
# x86 clocks sink below the single-core maximum as soon as all cores work: there only a fall within the window counts.
X86_CLOCK_FALL = 0.10
SWAP_BYTES = 1 << 20
SWAP_GROWTH_BYTES = 16 << 20
# Scenarios with idle gaps, in which a governor lowers the clock rightly.
GAPS = ("paced", "server")

# Bits of the Raspberry Pi's throttle word (get_throttled); the same 16 higher: since boot.
UNDER_VOLTAGE_BIT = 0
THROTTLE_BITS = {1: "the Arm clock was capped", 2: "throttled", 3: "the soft temperature limit was active"}
SINCE_BOOT = 16

COOL = "cool the board (fan, heat sink), let it rest, and run again"
SUPPLY = "use a stronger power supply and a short cable"


@dataclass(frozen=True)
class Observed:
    """What is known of one measurement.

    Attributes
    ----------
    part
        What the agent reported.
    series
        Sensor readings, t in seconds after the window's start.
    figures
        None where nothing was timed.
    facts
        Of the device.
    scenario
        As asked for.
    throttle_temperature_c
        From where on this board slows down, by its profile.
    limits, largest_output
        What outputs must keep, by the bundle; the largest magnitude that relative limits refer to.
    """

    part: PartResult
    series: Sequence[SeriesPoint]
    figures: Figures | None
    facts: DeviceFacts
    scenario: Scenario
    throttle_temperature_c: float | None = None
    limits: ParityLimits | None = None
    largest_output: float | None = None

    @property
    def window(self) -> list[SeriesPoint]:
        """Readings within the timed window."""
        length = self.figures.window_s if self.figures else 0.0
        return [point for point in self.series if 0 <= point.t <= length]

    def values(self, name: str) -> list[tuple[float, float]]:
        """(t, value) of one sensor value within the window."""
        return [(point.t, point.values[name]) for point in self.window if name in point.values]

    def since_before(self, name: str) -> list[tuple[float, float]]:
        """As :meth:`values`, with the last reading before the window first: what a counter rose from."""
        before = [(point.t, point.values[name]) for point in self.series if point.t < 0 and name in point.values]
        return before[-1:] + self.values(name)


def judge(seen: Observed) -> Validity:
    """Return the verdict on one measurement.

    Returns
    -------
    Validity
        ``valid`` is None where the only doubt is a throttle bit that cannot tell.
    """
    causes = [cause for check in CHECKS for cause in check(seen)]
    certain = [cause for cause in causes if cause.code != "throttle-unknown"]
    return Validity(valid=False if certain else None if causes else True, causes=causes)


def together(verdicts: Sequence[tuple[str, Validity]]) -> Validity:
    """Return the verdict on a run from those on its measurements, each with its name; equal causes come once."""
    if not verdicts:
        return Validity(valid=False, causes=[ValidityCause(code="incomplete", detail="nothing was measured")])
    several = len({name for name, _ in verdicts}) > 1
    causes: dict[tuple[str, str], ValidityCause] = {}
    for name, verdict in verdicts:
        for cause in verdict.causes:
            key = (cause.code, name)
            if key not in causes:
                detail = f"{name}: {cause.detail}" if several else cause.detail
                causes[key] = cause.model_copy(update={"detail": detail})
    valid: bool | None = True
    for _, verdict in verdicts:
        if verdict.valid is False:
            valid = False
        elif verdict.valid is None and valid:
            valid = None
    return Validity(valid=valid, causes=list(causes.values()))


def _word(vendor: dict[str, object]) -> int | None:
    """Return the Pi's throttle word from what the vendor's tool said, or None."""
    said = vendor.get("raspberrypi")
    word = said.get("throttled") if isinstance(said, dict) else None
    return word if isinstance(word, int) and not isinstance(word, bool) else None


def _incomplete(seen: Observed) -> Iterator[ValidityCause]:
    part, figures = seen.part, seen.figures
    if part.state != "done":
        yield ValidityCause(code="incomplete", detail=f"the part ended as {part.state}", remedy="run it again")
    elif figures is None or figures.count == 0:
        yield ValidityCause(code="incomplete", detail="no call was timed", remedy="run it again, longer")
    elif figures.count < seen.scenario.min_calls and part.stopped_by == "max-duration":
        yield ValidityCause(
            code="incomplete",
            detail=f"{figures.count} of at least {seen.scenario.min_calls} calls were done in {figures.window_s:.0f} s",
            remedy=f"--duration {max(1, round(figures.window_s / figures.count * seen.scenario.min_calls))} or more",
        )


def _throttled(seen: Observed) -> Iterator[ValidityCause]:
    before, after = _word(seen.part.vendor_before), _word(seen.part.vendor_after)
    if before is not None and after is not None:
        unknown = []
        for bit, meaning in THROTTLE_BITS.items():
            now, since = 1 << bit, 1 << bit + SINCE_BOOT
            if (before | after) & now or (after & since and not before & since):
                yield ValidityCause(code="throttled", detail=f"{meaning} during the run", remedy=COOL)
            elif before & since:
                unknown.append(meaning)
        if unknown:
            yield ValidityCause(
                code="throttle-unknown",
                detail=f"since boot, before the run, {' and '.join(unknown)}: whether again cannot be told",
                remedy="reboot the board (this clears the bits) and run again",
            )
    counts = seen.since_before("throttle_count")
    risen = next((t for (_, first), (t, value) in itertools.pairwise(counts) if value > first), None)
    if risen is not None:
        times = counts[-1][1] - counts[0][1]
        yield ValidityCause(
            code="throttled",
            detail=f"the processor throttled {times:.0f} times",
            remedy=COOL,
            from_s=max(0.0, risen),
        )
    cooling = seen.since_before("cooling_state")
    active = next((t for t, value in cooling if value > 0), None)
    if active is not None:
        yield ValidityCause(
            code="throttled",
            detail="the kernel slowed the processor down to cool it",
            remedy=COOL,
            from_s=max(0.0, active),
        )
    yield from _gpu_throttled(seen)
    yield from _over_current(seen)


def _gpu_throttled(seen: Observed) -> Iterator[ValidityCause]:
    slow = next((t for t, value in seen.values("gpu_throttled") if value > 0), None)
    if slow is not None:
        yield ValidityCause(code="throttled", detail="the GPU throttled", remedy=COOL, from_s=slow)


def _over_current(seen: Observed) -> Iterator[ValidityCause]:
    """A Jetson whose supply or power budget was exceeded: the clocks are cut at once."""
    counts = seen.since_before("over_current_events")
    risen = [t for (_, first), (t, value) in itertools.pairwise(counts) if value > first]
    begun = risen + [t for t, value in seen.values("over_current") if value > 0]
    if begun:
        yield ValidityCause(
            code="throttled",
            detail="over-current cut the clocks",
            remedy="use a stronger power supply, or a power mode with a lower budget",
            from_s=max(0.0, min(begun)),
        )


def _overheated(seen: Observed) -> Iterator[ValidityCause]:
    limit = seen.throttle_temperature_c
    if limit is None:
        return
    hot = [(t, value) for t, value in seen.values("temperature_c") if value >= limit]
    if hot:
        yield ValidityCause(
            code="overheated",
            detail=f"{max(value for _, value in hot):.0f} °C, and this board slows down from {limit:.0f} °C",
            remedy=COOL,
            from_s=hot[0][0],
        )


def _under_voltage(seen: Observed) -> Iterator[ValidityCause]:
    alarm = next((t for t, value in seen.values("under_voltage") if value > 0), None)
    if alarm is not None:
        yield ValidityCause(code="under-voltage", detail="the supply was too weak", remedy=SUPPLY, from_s=alarm)
        return
    before, after = _word(seen.part.vendor_before), _word(seen.part.vendor_after)
    if before is None or after is None:
        return
    now, since = 1 << UNDER_VOLTAGE_BIT, 1 << UNDER_VOLTAGE_BIT + SINCE_BOOT
    if (before | after) & now or (after & since and not before & since):
        yield ValidityCause(code="under-voltage", detail="the supply was too weak during the run", remedy=SUPPLY)
    elif before & since and not seen.values("under_voltage"):
        yield ValidityCause(
            code="throttle-unknown",
            detail="the supply was too weak once since boot, before the run: whether again cannot be told",
            remedy=f"{SUPPLY}, reboot the board and run again",
        )


def _clock(seen: Observed) -> Iterator[ValidityCause]:
    if seen.scenario.name in GAPS:
        return
    clocks = seen.values("clock_khz")
    if len(clocks) < 2:
        return
    if seen.facts.arch in ("x86_64", "i686", "AMD64"):
        fall = _fall(clocks, seen.since_before("clock_khz"))
        if fall is not None:
            before, after, begun = fall
            yield ValidityCause(
                code="clock-limited",
                detail=f"the clock fell from {before / 1e6:.2f} to {after / 1e6:.2f} GHz within the window",
                remedy=f"{COOL}, or measure the steady state with --scenario soak",
                from_s=begun,
            )
        return
    limits = [value for _, value in seen.values("clock_limit_khz")]
    if not limits:
        return
    # A single low reading is a governor's; several in a row are a cap, also one that begins late in the window.
    runs = itertools.groupby(clocks, key=lambda point: point[1] < CLOCK_SHARE * max(limits))
    low = max((list(run) for is_low, run in runs if is_low), key=len, default=[])
    if len(low) >= max(CAPPED_READINGS, CAPPED_SHARE * len(clocks)):
        yield ValidityCause(
            code="clock-limited",
            detail=f"the clock was {statistics.median(value for _, value in low) / 1e6:.2f} GHz, "
            f"its limit is {max(limits) / 1e6:.2f} GHz",
            remedy="set the governor to performance, or cool the board",
            from_s=low[0][0],
        )


def _fall(
    clocks: Sequence[tuple[float, float]], since_before: Sequence[tuple[float, float]]
) -> tuple[float, float, float] | None:
    """Return from where to where a clock without a limit to hold it against fell, and when; None where it did not.

    Against the first half of the window, in the median of the second or at its end for good; a cap that began in the
    first half, against the fastest two readings in a row.
    """
    half = len(clocks) // 2
    first, last = (statistics.median(value for _, value in part) for part in (clocks[:half], clocks[half:]))
    fastest = max((min(one, two) for (_, one), (_, two) in itertools.pairwise(since_before)), default=first)
    for before, enough in ((first, max(CAPPED_READINGS, CAPPED_SHARE * len(clocks))), (fastest, half)):
        capped: list[tuple[float, float]] = []
        for point in reversed(clocks):
            if point[1] >= before * (1 - X86_CLOCK_FALL):
                break
            capped.append(point)
        if len(capped) >= max(1, enough):
            return before, statistics.median(value for _, value in capped), capped[-1][0]
    if last < first * (1 - X86_CLOCK_FALL):
        return first, last, next(t for t, value in clocks if value < first * (1 - X86_CLOCK_FALL))
    return None


def _drifting(seen: Observed) -> Iterator[ValidityCause]:
    # A soak is run to see the drift; its figures say how far it went.
    drift = seen.figures.drift if seen.figures else None
    if drift is not None and abs(drift) > MAX_DRIFT and seen.scenario.name != "soak":
        yield ValidityCause(
            code="drifting",
            detail=f"the last quarter was {abs(drift):.0%} {'slower' if drift > 0 else 'faster'} than the first",
            remedy="run again on a quiet board, warm it up longer (--warmup), or measure with --scenario soak",
        )


def _contended(seen: Observed) -> Iterator[ValidityCause]:
    share = seen.part.other_cpu_share
    if share is None or share <= MAX_OTHER_CPU:
        return
    load = [clean(text, limit=100) for text in seen.part.other_load[:3]]
    by = f" by {'; '.join(load)}" if load else ""
    yield ValidityCause(
        code="contended",
        detail=f"{share:.0%} of the processor was used{by}",
        remedy="stop it and run again; if it belongs to the set-up, declare it: --background NAME",
    )


def _swapping(seen: Observed) -> Iterator[ValidityCause]:
    swapped = seen.part.memory.swap or 0
    used = [value for _, value in seen.since_before("swap_used_bytes")]
    growth = max(used) - used[0] if used else 0.0
    if swapped > SWAP_BYTES or growth > SWAP_GROWTH_BYTES:
        yield ValidityCause(
            code="swapping",
            detail=f"{max(swapped, growth) / 1e6:.0f} MB were swapped out",
            remedy="free memory on the device, or use a smaller precision",
        )


def _provider(seen: Observed) -> Iterator[ValidityCause]:
    if seen.part.provider_fell_back:
        detail = clean(seen.part.provider_detail or "", limit=200)
        yield ValidityCause(
            code="provider-fell-back",
            detail=detail or f"{seen.part.provider_requested} was asked for, {', '.join(seen.part.providers_used)} ran",
            remedy="install what the provider needs on the device, or ask for --provider cpu",
        )


def _emulated(seen: Observed) -> Iterator[ValidityCause]:
    if seen.facts.emulated:
        detail = clean(seen.facts.emulation_detail or "the device is emulated", limit=200)
        yield ValidityCause(code="emulated", detail=detail, remedy="measure on the real board")


def _not_steady(seen: Observed) -> Iterator[ValidityCause]:
    if seen.part.warmup_steady is False:
        yield ValidityCause(
            code="not-steady",
            detail=f"after {seen.part.warmup_s:.0f} s of warm-up the times had not settled",
            remedy="stop other load on the device, or warm up longer",
        )


def _parity(seen: Observed) -> Iterator[ValidityCause]:
    parity, limits = seen.part.parity, seen.limits
    if parity is None or limits is None:
        return
    if parity.cosine_min < limits.cosine:
        yield ValidityCause(
            code="parity",
            detail=f"the outputs' cosine to the host's is {parity.cosine_min:.4f} there, below {limits.cosine:g}",
            remedy="this precision does not compute the same here: export another one",
        )
    elif limits.max_abs_error is not None and seen.largest_output:
        relative = parity.max_abs_error / seen.largest_output
        if relative > limits.max_abs_error:
            yield ValidityCause(
                code="parity",
                detail=f"on the device the outputs differ by {relative:.1e} of their magnitude, more than "
                f"{limits.max_abs_error:g}",
                remedy="this precision does not compute the same here: export another one",
            )


CHECKS = (
    _incomplete,
    _emulated,
    _provider,
    _parity,
    _throttled,
    _overheated,
    _under_voltage,
    _clock,
    _drifting,
    _contended,
    _swapping,
    _not_steady,
)

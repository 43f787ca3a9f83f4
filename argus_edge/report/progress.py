"""The progress line: phase, count, time left, temperature. None without a terminal; messages go to stderr anyway."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO

from rich.live import Live
from rich.text import Text

from argus_edge.bench.plan import duration_text
from argus_edge.bench.watching import Nobody
from argus_edge.report.console import stderr_console
from argus_edge.schema.agent import Event
from argus_edge.text import clean

# What a phase of the agent's is to a person.
PHASES = {
    "import": "importing the runtime",
    "load": "loading the model",
    "first": "first call",
    "warmup": "warming up",
    "steady": "timing",
    "memory": "reading memory",
    "parity": "checking the outputs",
    "ops": "profiling operators",
}


class Progress:
    """How far a run has come, from what the agent says."""

    def __init__(self) -> None:
        self._name = ""
        self._phase = ""
        self._done: int | None = None
        self._left: float | None = None
        self.temperature: float | None = None

    def event(self, event: Event) -> None:
        """Take an event of the journal."""
        if event.event == "part":
            self._name, self._done, self._left = clean(event.message or "", limit=40), None, None
        elif event.event == "phase":
            self._phase, self._done = event.phase or "", None
            self._left = event.total_s
        elif event.event == "progress":
            self._done = event.done
            if event.total_s is not None and event.elapsed_s is not None:
                self._left = event.total_s - event.elapsed_s
        elif event.event == "sensor":
            self.temperature = event.values.get("temperature_c", self.temperature)

    @property
    def phase(self) -> str:
        """What is done now, and of which component."""
        return f"{self._name}: {PHASES.get(self._phase, clean(self._phase, limit=20) or 'starting')}"

    @property
    def count(self) -> str:
        """Calls done and time left, or how long past it, as far as they are known."""
        words = [f"{self._done:,} calls"] if self._done is not None else []
        if self._left is not None:
            # A model whose call takes longer than its window goes on until it has enough of them.
            late = self._left <= -1
            words.append(f"{duration_text(-self._left)} past its time" if late else f"{duration_text(self._left)} left")
        return ", ".join(words)

    @property
    def heat(self) -> str:
        """The temperature, or an empty string."""
        return "" if self.temperature is None else f"{self.temperature:.0f} °C"

    def line(self) -> str:
        """Return all of it on one line."""
        return ", ".join(filter(None, (self.phase, self.count, self.heat)))


def sending(done: int, total: int) -> str:
    """Return how far a transfer has come."""
    return f"sending {done / 1e6:,.1f} of {total / 1e6:,.1f} MB"


class ProgressLine(Nobody):
    """Tells a person what goes on.

    Parameters
    ----------
    stream
        Where to; None: stderr.
    """

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._console = stderr_console(stream)
        self._live: Live | None = None
        self._progress = Progress()

    def say(self, text: str) -> None:
        """Write a message on a line of its own, above the progress line."""
        self._console.print(Text(text))

    def transfer(self, done: int, total: int) -> None:
        """Show how much has been sent."""
        if done < total:
            self._show(sending(done, total))

    def started(self, run: str, stop: Callable[[], object]) -> None:
        """Begin anew; the run's id is said when it has started."""
        self._progress = Progress()

    def event(self, event: Event) -> None:
        """Show what the agent says."""
        self._progress.event(event)
        self._show(self._progress.line())

    def quiet(self) -> None:
        """Take the progress line away."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _show(self, text: str) -> None:
        if not self._console.is_terminal:
            return
        if self._live is None:
            self._live = Live(console=self._console, transient=True, auto_refresh=False)
            self._live.start()
        self._live.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)

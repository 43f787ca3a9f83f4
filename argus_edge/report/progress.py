"""The progress line: phase, count, time left, temperature. None without a terminal; messages go to stderr anyway."""

from __future__ import annotations

import sys
from typing import IO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from argus_edge.bench.plan import duration_text
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


class ProgressLine:
    """Tells a person what goes on.

    Parameters
    ----------
    stream
        Where to; None: stderr.
    """

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._console = Console(file=stream or sys.stderr, highlight=False, soft_wrap=True)
        self._live: Live | None = None
        self._name = ""
        self._phase = ""
        self._done: int | None = None
        self._left: float | None = None
        self._temperature: float | None = None

    def say(self, text: str) -> None:
        """Write a message on a line of its own, above the progress line."""
        self._console.print(Text(text))

    def transfer(self, done: int, total: int) -> None:
        """Show how much has been sent."""
        if done < total:
            self._show(f"sending {done / 1e6:,.1f} of {total / 1e6:,.1f} MB")

    def event(self, event: Event) -> None:
        """Show what the agent says."""
        if event.event == "part":
            self._name, self._done, self._left = clean(event.message or "", limit=40), None, None
        elif event.event == "phase":
            self._phase, self._done = event.phase or "", None
            self._left = event.total_s
        elif event.event == "progress":
            self._done = event.done
            if event.total_s is not None and event.elapsed_s is not None:
                self._left = max(0.0, event.total_s - event.elapsed_s)
        elif event.event == "sensor":
            self._temperature = event.values.get("temperature_c", self._temperature)
        self._show(self.line())

    def line(self) -> str:
        """Return the progress line."""
        words = [f"{self._name}: {PHASES.get(self._phase, clean(self._phase, limit=20) or 'starting')}"]
        if self._done is not None:
            words.append(f"{self._done:,} calls")
        if self._left is not None:
            words.append(f"{duration_text(self._left)} left")
        if self._temperature is not None:
            words.append(f"{self._temperature:.0f} °C")
        return ", ".join(words)

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

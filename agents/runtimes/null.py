"""The null runtime: no model, so that what is timed is the harness itself, or a wait of known length.

Options: ``work_s``, how long a call takes (default 0: nothing at all); ``spin``, true to burn the processor meanwhile.
"""

import time

from .base import BaseRuntime


def _nothing():
    pass


class Runtime(BaseRuntime):
    """Calls that do nothing, sleep, or spin."""

    formats = ("none",)

    def import_library(self):
        """There is none."""
        return "1"

    def load(self):
        """There is no model."""
        self.figures["providers_used"] = ["cpu"]

    def bind(self, inputs):
        """Return the call."""
        work_s = float(self.options.get("work_s", 0))
        if work_s <= 0:
            return _nothing
        if not self.options.get("spin"):
            return lambda: time.sleep(work_s)

        def spin():
            end = time.perf_counter() + work_s
            while time.perf_counter() < end:
                pass

        return spin

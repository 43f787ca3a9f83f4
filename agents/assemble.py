"""The result of a run, made from its journal and samples: by the supervisor, or after its death by ``collect``."""

import os
import platform

from . import samples, wire
from .home import is_number, journal_events, read_json

# Beyond so many points a part's series is thinned to every second one.
MAX_SERIES = 20000
# Interrupted while the window was open: what ended it.
STOPPED_BY = {"stopped": "stop", "timeout": "stop"}


def dict_of(value):
    """Return a value that ought to be a dict, and {} in the place of another."""
    return value if isinstance(value, dict) else {}


class Series:
    """Sensor points; thinned evenly when they grow too many."""

    def __init__(self):
        self.points = []
        self._stride = 1
        self._seen = 0

    def add(self, point):
        """Take a point, or pass over it."""
        self._seen += 1
        if self._seen % self._stride:
            return
        self.points.append(point)
        if len(self.points) >= MAX_SERIES:
            self.points = self.points[1::2]
            self._stride *= 2


class PartRecord:
    """What the journal says of one part."""

    def __init__(self, part):
        self.series = Series()
        self.steady = None
        self.available = None
        self.finished = False
        self.figures = {
            "name": part.get("name", ""),
            "repeat": part.get("repeat", 0),
            "state": "lost",
            "runtime": part.get("runtime", ""),
            "provider_requested": part.get("provider", "cpu"),
            "threads": part.get("threads"),
            "batch": (part.get("scenario") or {}).get("batch", 1),
            "memory": {},
            "notes": [],
        }

    def take(self, event):
        """Take an event of this part."""
        kind = event.get("event")
        figures = dict_of(event.get("figures"))
        self.figures["memory"].update(dict_of(figures.pop("memory", {})))
        notes = figures.pop("notes", [])
        self.figures["notes"] += notes if isinstance(notes, list) else []
        self.figures.update(figures)
        if kind == "part":
            self.available = event.get("available") if is_number(event.get("available")) else None
        elif kind == "phase" and event.get("phase") == "steady":
            self.steady = event
        elif kind == "sensor":
            values = {name: value for name, value in dict_of(event.get("values")).items() if is_number(value)}
            start = event.get("start")
            point = {"t": start if is_number(start) else event["t"], "took_s": event.get("took_s", 0.0)}
            self.series.add(dict(point, values=values))
        elif kind == "note" and event.get("message"):
            self.figures["notes"].append(event["message"])
        elif kind in ("part-done", "part-failed"):
            self.finished = True
            self.figures.update(state=event.get("state", "failed"), error=event.get("error"))

    def result(self, folder, index, state, fault):
        """Return the part's ``PartResult``; ``state`` and ``fault`` are the run's, for a part that never finished."""
        figures = self.figures
        if not self.finished:
            figures.update(state=state if state != "done" else "failed", error=fault)
        if self.steady and not figures.get("stopped_by"):
            figures["stopped_by"] = STOPPED_BY.get(figures["state"], "fault")
        figures["series"] = self.series.points
        figures["notes"] = figures["notes"][:200]
        self._add_system_delta()
        self._add_device_peak()
        self._add_samples(folder, index)
        return figures

    def _add_system_delta(self):
        lowest = [
            p["values"]["memory_available_bytes"] for p in self.series.points if "memory_available_bytes" in p["values"]
        ]
        if self.available and lowest:
            self.figures["memory"]["system_delta"] = max(0, int(self.available - min(lowest)))

    def _add_device_peak(self):
        """Where the runtime does not tell: the most that the GPU's memory in use grew by while the worker ran."""
        readings = [point["values"].get("gpu_memory_used_bytes") for point in self.series.points]
        used = [value for value in readings if value is not None]
        asked = self.figures["provider_requested"] in ("cuda", "tensorrt")
        on_gpu = asked and not self.figures.get("provider_fell_back")
        if on_gpu and len(used) > 1 and self.figures["memory"].get("device_peak") is None:
            self.figures["memory"]["device_peak"] = max(0, int(max(used) - used[0]))

    def _add_samples(self, folder, index):
        reader = samples.SampleReader.find(folder, index)
        if reader is None:
            return
        count = reader.count()
        self.figures.update(samples_file=wire.SAMPLES_FILE % index, samples_count=count, batch=reader.batch)
        if count:
            start = reader.value(2 if reader.columns - reader.marks > 2 else 0, 0)
            self.figures.update(window_start=start, window_end=reader.value(1, count - 1))
            if self.steady:
                self.figures["window_wall"] = self.steady["wall"] + start - self.steady["t"]
        reader.close()


def result(folder, state, fault):
    """Return the ``RunResult`` of the run in a folder.

    Parameters
    ----------
    state : str
        How the run ended.
    fault : dict or None
        Why, as it travels.
    """
    job = read_json(os.path.join(folder, wire.JOB_FILE)) or {}
    parts = job.get("parts") or []
    started, records, last = {}, {}, {}
    for _, event in journal_events(folder):
        last = event
        if event.get("event") == "started":
            started = event
        index = event.get("part")
        if isinstance(index, int) and 0 <= index < len(parts):
            records.setdefault(index, PartRecord(parts[index])).take(event)
    return {
        "wire": wire.WIRE_VERSION,
        "run": os.path.basename(folder),
        "state": state,
        "error": fault,
        "boot_id": started.get("boot_id"),
        "agent_sha256": started.get("agent_sha256"),
        "python": platform.python_version(),
        "started_wall": started.get("wall", 0.0),
        "ended_wall": last.get("wall", 0.0),
        "parts": [records[index].result(folder, index, state, fault) for index in sorted(records)],
    }

"""The supervisor: detached, takes a job's parts one after the other, and watches each worker from outside.

Whatever happens is appended to the journal as it happens; the result is made from the journal and the samples
(``assemble``), so that it can be made just as well after this process has been killed.
"""

import os
import signal
import time

from . import assemble, contention, samples, system, wire
from .home import Fault, Journal, no_space, read_json, release_reserve, write_json
from .worker_process import WorkerProcess, wait

# While nothing is timed the worker's memory is looked at this often, so that a limit holds while a model is loaded.
WATCH_S = 0.1
PROGRESS_S = 1.0
TIMED = ("warmup", "steady")
IDLE_READINGS = 5
IDLE_PERIOD_S = 0.2


class Stopped(Exception):
    """The run is to end now, in this state, for that reason."""

    def __init__(self, state, kind, message):
        super().__init__(message)
        self.state = state
        self.fault = Fault(kind, message)


class Supervisor:
    """One run."""

    def __init__(self, folder, lock):
        self.folder = folder
        self._lock = lock
        self.job = read_json(os.path.join(folder, wire.JOB_FILE))
        self.journal = Journal(folder)
        self.period = max(0.1, float(self.job.get("sample_period_s", 1.0)))
        self.deadline = time.perf_counter() + float(self.job.get("wall_limit_s", 3600.0))
        self.background = self.job.get("background") or []
        self._wake, self._wake_out = os.pipe()
        self._asked_to_stop = False
        self._sensors = None
        self._available = os.open("/proc/meminfo", os.O_RDONLY | os.O_CLOEXEC)

    def listen(self):
        """Be stopped by SIGTERM and by nothing else that can be caught: the terminal that started us may close."""
        for end in (self._wake, self._wake_out):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self._wake_out)
        signal.signal(signal.SIGTERM, self._stop)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)

    def _stop(self, *_):
        self._asked_to_stop = True

    # ------------------------------------------------------------ the run

    def run(self):
        """Take the parts in turn; leave a result in any case."""
        state, fault = "done", None
        try:
            self._open_sensors()
            for index, part in enumerate(self.job["parts"]):
                failure = self.run_part(index, part)
                if failure and not fault:
                    state, fault = "failed", failure
        except Stopped as stop:
            state, fault = stop.state, stop.fault.document()
        except OSError as error:
            kind = "no-space" if no_space(error) else "internal"
            state, fault = "failed", Fault(kind, error.strerror or str(error), path=error.filename).document()
        except Exception as error:
            import traceback

            state, fault = "failed", Fault("internal", error, traceback=traceback.format_exc()[-1500:]).document()
        self.finish(state, fault)

    def _open_sensors(self):
        names = self.job.get("sensors")
        if names:
            from .sensors import open_sensors

            self._sensors = open_sensors(names, self.job.get("system_root") or "/")

    def finish(self, state, fault):
        """Write the result, give the device back, and only then say that the run has ended."""
        release_reserve(self.folder)
        result = assemble.result(self.folder, state, fault)
        target = os.path.join(self.folder, wire.RESULT_FILE)
        try:
            write_json(target, result)
        except OSError as error:
            if not no_space(error):
                raise
            for part in result["parts"]:
                part["notes"].append("the disk was full: the sensors' series is only in the journal")
                part["series"] = []
            write_json(target, result)
        if self._sensors:
            self._sensors.close()
        os.close(self._lock)
        self.journal.write("ended", state=state, error=fault)

    # ------------------------------------------------------------ one part

    def run_part(self, index, part):
        """Run a part in a worker of its own; return its fault, or None. Raises Stopped."""
        self.part, self.phase, self._reader = index, None, None
        self._ours = set()  # processes beside the worker whose work is the run's own: a server's
        self.journal.write("part", part=index, message=part.get("name", ""), available=system.memory_available())
        self._idle_power()
        kills = system.oom_kills()
        output = os.path.join(self.folder, wire.OUTPUT_FILE % index)
        worker = WorkerProcess(self.folder, index, output)
        try:
            fault, ended = self._watch(worker)
        except BaseException:
            worker.close()
            self._keep_samples(index)
            raise
        for document in worker.close():
            fault, ended = self._hear(worker, document, fault, ended)
        if not ended and not fault:
            fault = worker.fault(system.oom_kills() - kills)
        self._keep_samples(index)
        if fault:
            self.journal.write("part-failed", part=index, state="failed", error=fault)
        else:
            self.journal.write("part-done", part=index, state="done")
        return fault

    def _keep_samples(self, index):
        """Move the samples into the run's folder; with a full disk they stay where they are until ``collect`` comes."""
        reader, self._reader = self._reader, None
        try:
            samples.keep(self.folder, index, reader)
        except OSError as error:
            if not no_space(error):
                raise
            message = "the disk was full: the samples are still in shared memory, and lost when the device is rebooted"
            self.journal.write("note", part=index, message=message)

    def _watch(self, worker):
        """Watch a worker until it has ended; return (its fault or None, whether it said that it was done)."""
        fault, ended = None, False
        self._entered = time.perf_counter()
        self._total = None
        next_tick = next_sample = self._entered
        limit = self.job.get("memory_limit_bytes")
        while not worker.ended():
            wait([self._wake, *worker.descriptors()], next_tick - time.perf_counter())
            heard_in = self.phase
            for document in worker.messages():
                fault, ended = self._hear(worker, document, fault, ended)
            now = time.perf_counter()
            if self.phase != heard_in and self.phase in TIMED:
                # A period shorter than the untimed phases' holds from the window's start.
                next_tick = next_sample = min(next_sample, now + self.period)
            if self._asked_to_stop:
                raise Stopped("stopped", "stopped", "the run was stopped")
            if now >= self.deadline:
                message = "the limit of %g s passed in phase %s" % (self.job.get("wall_limit_s", 3600.0), self.phase)
                raise Stopped("timeout", "timeout", message)
            if now < next_tick:
                continue
            resident, own = worker.resident()
            # Pages of a mapped model are not counted: the kernel drops them when it needs room.
            if limit and own and own > limit:
                message = "the worker held %d bytes, its limit is %d" % (own, limit)
                return Fault("out-of-memory", message, limit=limit, held=own).document(), True
            timed = self.phase in TIMED
            if now >= next_sample:
                self._sample(now, resident)
                next_sample = now + (self.period if timed else max(self.period, PROGRESS_S))
            next_tick = next_sample if timed else min(next_sample, now + WATCH_S)
        return fault, ended

    def _hear(self, worker, document, fault, ended):
        """Act on a worker's message; return what is now known of its end."""
        if "phase" in document:
            self.phase = document["phase"]
            self._entered = time.perf_counter()
            self._total = document.get("total_s")
            self.journal.write("phase", part=self.part, phase=self.phase, total_s=self._total)
        if "note" in document:
            self.journal.write("note", part=self.part, message=str(document["note"])[:2000])
        if "figures" in document:
            self.journal.write("note", part=self.part, phase=self.phase, figures=document["figures"])
        self._ours.update(document.get("ours") or ())
        if "ready" in document:
            vendor = self._vendor()
            self._before = contention.Snapshot(time.perf_counter)
            self.journal.write("note", part=self.part, phase=self.phase, figures={"vendor_before": vendor})
            worker.go_on()
        if "window" in document:
            after = contention.Snapshot(time.perf_counter)
            load = contention.compare(self._before, after, {worker.pid, os.getpid()} | self._ours, self.background)
            notes = ["declared background load: " + text for text in load.pop("background_load")]
            steal = load.pop("steal_share")
            if steal > contention.NAMED_SHARE:
                notes.append("the hypervisor kept %.0f %% of the processor for others" % (100 * steal))
            figures = dict(document["window"], vendor_after=self._vendor(), notes=notes, **load)
            self.journal.write("note", part=self.part, phase=self.phase, figures=figures)
        return document.get("error") or fault, ended or "end" in document

    # ------------------------------------------------------------ sensors

    def _vendor(self):
        return self._sensors.vendor() if self._sensors else {}

    def _read_sensors(self):
        return self._sensors.read() if self._sensors else {}

    def _idle_power(self):
        """Record the board's power before the worker starts."""
        if not self._sensors or not self._sensors.power:
            return
        self._read_sensors()  # a counter of energy gives power from its second reading on
        readings = []
        for _ in range(IDLE_READINGS):
            time.sleep(IDLE_PERIOD_S)
            readings.append(self._read_sensors().get("power_w"))
        readings = [power for power in readings if power is not None]
        if readings:
            self.journal.write("note", part=self.part, figures={"idle_power_w": sum(readings) / len(readings)})

    def _sample(self, now, resident):
        """Read the sensors and write their values and the progress."""
        values = {name: value for name, value in self._read_sensors().items() if value - value == 0.0}
        for line in os.pread(self._available, 256, 0).decode("ascii", "replace").splitlines():
            if line.startswith("MemAvailable:"):
                values["memory_available_bytes"] = int(line.split()[1]) * 1024.0
        if resident:
            values["worker_rss_bytes"] = float(resident)
        done = None
        if self.phase == "steady":
            self._reader = self._reader or samples.SampleReader.find(self.folder, self.part)
            done = self._reader.count() if self._reader else None
        elapsed = now - self._entered
        sensor = {"event": "sensor", "part": self.part, "start": now, "values": values}
        progress = {"event": "progress", "part": self.part, "phase": self.phase, "done": done}
        progress.update(elapsed_s=elapsed, total_s=self._total)
        sensor["took_s"] = time.perf_counter() - now
        self.journal.write_all([sensor, progress])


def main(folder, lock):
    """Supervise a run; the lock's descriptor stays open while it goes on. ``start`` calls this in a new session."""
    lock = int(lock)
    os.set_inheritable(lock, False)
    supervisor = Supervisor(folder, lock)
    supervisor.listen()
    supervisor.run()

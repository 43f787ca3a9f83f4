"""Many benches on many boards: boards at the same time, one bench a board at a time; a fault on one stops no other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from argus_edge.bench.drive import Connect, Outcome
from argus_edge.bench.watching import Listener, Nobody, come_back
from argus_edge.devices.connect import connect
from argus_edge.devices.transport import Transport
from argus_edge.errors import ArgusError, InterruptedRunError
from argus_edge.interrupts import Interrupts
from argus_edge.schema.agent import Event
from argus_edge.schema.device import DeviceEntry

# The agent ends a run within 5 s; so long do we wait for its word after Ctrl-C, over a slow link or from a busy board.
STOP_S = 15.0
NUDGE_S = 0.2


@dataclass(frozen=True)
class Task:
    """One bench on one board.

    Attributes
    ----------
    model
        How a person names what is benched.
    entry
        The board.
    action
        Does it: told whom to tell, and how to make the link.
    """

    model: str
    entry: DeviceEntry
    action: Callable[[Listener, Connect], Outcome]


@dataclass(frozen=True)
class Result:
    """What came of a task: an outcome, or the error that kept it from one."""

    task: Task
    outcome: Outcome | None = None
    error: Exception | None = None


class View(Protocol):
    """Shows a person how all boards stand. Called from the boards' threads."""

    def board(self, name: str) -> Listener:
        """Return who is told what happens on a board."""

    def begin(self, name: str, model: str, number: int, count: int) -> None:
        """Take it that a board begins with its ``number``-th bench of ``count``."""

    def end(self, name: str, result: Result) -> None:
        """Take it that a board's bench has ended."""

    def say(self, text: str) -> None:
        """Take a message that concerns no single board."""

    def close(self) -> None:
        """Take it that nothing more will come."""


class Unseen:
    """A view that shows nothing: what happens on the boards is told to one listener, or to nobody."""

    def __init__(self, listener: Listener | None = None) -> None:
        self._listener = listener or Nobody()

    def board(self, name: str) -> Listener:
        """Return the listener."""
        return self._listener

    def begin(self, name: str, model: str, number: int, count: int) -> None:
        """Pass over a beginning."""

    def end(self, name: str, result: Result) -> None:
        """Pass over an end."""

    def say(self, text: str) -> None:
        """Pass a message on."""
        self._listener.say(text)

    def close(self) -> None:
        """Do nothing."""


def run(tasks: Sequence[Task], view: View, interrupts: Interrupts, *, connect: Connect = connect) -> list[Result]:
    """Carry tasks out, those of one board in their order, and return their results in the order of the tasks.

    Parameters
    ----------
    tasks
        What to do.
    view
        Told what happens.
    interrupts
        Counts Ctrl-C: the first stops every run on its board, which takes these 5 s at most; the second leaves at once.
    connect
        Makes a board's transport.

    Returns
    -------
    list
        One for each task; after Ctrl-C those that did not end have an ``InterruptedRunError``.
    """
    lanes: dict[tuple[str | None, str], list[Task]] = {}
    for task in tasks:
        lanes.setdefault((task.entry.host, task.entry.home), []).append(task)
    boards = [_Board(queue, view, interrupts, connect) for queue in lanes.values()]
    for board in boards:
        board.start()
    deadline: float | None = None
    while not all(board.over for board in boards):
        interrupts.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
        if interrupts.count and deadline is None:
            deadline = time.monotonic() + STOP_S
            view.say("stopping (Ctrl-C again leaves at once and lets what runs on the boards go on)")
            for board in boards:
                board.interrupt()
        if interrupts.count > 1 or (deadline is not None and time.monotonic() >= deadline):
            break
    results = {id(result.task): result for board in boards for result in board.results()}
    return [results[id(task)] for task in tasks]


class _Board(threading.Thread):
    """One board's thread: takes its tasks in turn."""

    def __init__(self, tasks: Sequence[Task], view: View, interrupts: Interrupts, connect: Connect) -> None:
        super().__init__(name=f"bench {tasks[0].entry.name}", daemon=True)
        self._tasks = tasks
        self._view = view
        self._interrupts = interrupts
        self._connect = connect
        self._done: list[Result] = []
        self._ear: _Ear | None = None
        self._interrupted = False
        self._lock = threading.Lock()
        self.over = False

    def run(self) -> None:
        try:
            for number, task in enumerate(self._tasks, 1):
                with self._lock:
                    if self._interrupted:
                        return
                    self._ear = ear = _Ear(self._view.board(task.entry.name))
                self._view.begin(task.entry.name, task.model, number, len(self._tasks))
                result = self._perform(task, ear)
                self._done.append(result)
                self._view.end(task.entry.name, result)
        finally:
            # Not is_alive(): between this wake and the thread's end the main thread would go back to sleep, for ever.
            self.over = True
            self._interrupts.wake()

    def _perform(self, task: Task, ear: _Ear) -> Result:
        try:
            return Result(task, task.action(ear, lambda entry: ear.heard_link(self._connect(entry))))
        except KeyboardInterrupt:
            return Result(task, error=ear.interrupted())
        except ArgusError as error:
            return Result(task, error=ear.interrupted() if ear.silenced and error.exit_code != 130 else error)
        except Exception as error:  # a fault of ours on one board must not cost the others their runs
            return Result(task, error=error)

    def interrupt(self) -> None:
        """Begin to end what runs here; from another thread."""
        with self._lock:
            self._interrupted = True
            ear = self._ear
        if ear is not None and self.is_alive():
            ear.silence()
            threading.Thread(target=self._nudge, args=[ear], daemon=True).start()

    def _nudge(self, ear: _Ear) -> None:
        """End the run on the board, or the link where none was started: the board's thread wakes and draws its lines.

        A start may be under way, of which the board knows nothing yet: then again.
        """
        while self.is_alive() and not ear.end():
            self.join(NUDGE_S)

    def results(self) -> list[Result]:
        """Return what came of the tasks; of those that have not ended, how to come back to them."""
        done = list(self._done)
        with self._lock:
            ear = self._ear
        for number, task in enumerate(self._tasks[len(done) :]):
            underway = number == 0 and ear is not None and self.is_alive()
            error = ear.interrupted() if underway and ear else _not_begun(task)
            done.append(Result(task, error=error))
        return done


def _not_begun(task: Task) -> InterruptedRunError:
    return InterruptedRunError("Interrupted before it was begun.", where=f"{task.model} on {task.entry.name}")


class _Ear:
    """Listens between a board's bench and the view; after Ctrl-C its next call raises KeyboardInterrupt there, once."""

    def __init__(self, told: Listener) -> None:
        self._told = told
        self._link: Transport | None = None
        self._stop: Callable[[], object] | None = None
        self._run: str | None = None
        self._raised = False
        self._stopped = False
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self.silenced = False

    def heard_link(self, link: Transport) -> Transport:
        """Remember the link to the board."""
        with self._lock:
            self._link = link
        self._check()
        return link

    def silence(self) -> None:
        """Let the next call raise, and pass nothing on any more."""
        with self._lock:
            self.silenced = True
        self._woken.set()

    def end(self) -> bool:
        """End the run, else close the link; return whether the board has heard it."""
        with self._lock:
            stop, link = self._stop, self._link
        if stop is None:
            if link is not None:
                link.close()
            return True
        try:
            stop()
        except ArgusError:
            return False
        self._stopped = True
        return True

    def interrupted(self) -> InterruptedRunError:
        """Return the error of a bench that was left."""
        if self._run is None:
            return InterruptedRunError("Interrupted before the run was started.")
        if self._stopped:
            return InterruptedRunError(f"Interrupted; the run {self._run} was stopped.")
        return InterruptedRunError(
            f"Left the run {self._run} at once.",
            next_step=f"it may still be running: argus-edge runs stop {self._run}, or come back with "
            + come_back(self._run),
        )

    def _check(self) -> bool:
        with self._lock:
            if self.silenced and not self._raised:
                self._raised = True
                raise KeyboardInterrupt
            return not self.silenced

    # ------------------------------------------------------------ as a listener

    def say(self, text: str) -> None:
        """Pass a message on."""
        if self._check():
            self._told.say(text)

    def transfer(self, done: int, total: int) -> None:
        """Pass on how much has been sent."""
        if self._check():
            self._told.transfer(done, total)

    def started(self, run: str, stop: Callable[[], object]) -> None:
        """Remember how the run is ended; after Ctrl-C none is started."""
        with self._lock:
            if self.silenced:
                self._raised = True
                raise KeyboardInterrupt
            self._run, self._stop = run, stop
        self._told.started(run, stop)

    def event(self, event: Event) -> None:
        """Pass an event on."""
        if self._check():
            self._told.event(event)

    def quiet(self) -> None:
        """Pass it on."""
        self._told.quiet()

    def pause(self, seconds: float) -> None:
        """Let the time pass, unless Ctrl-C comes."""
        self._woken.wait(seconds)
        self._check()

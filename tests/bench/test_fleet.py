"""Many benches on many boards: at the same time, in order on each, and none stopped by another's fault."""

import threading
import time

import pytest

from argus_edge.bench.fleet import Task, run
from argus_edge.bench.watching import Nobody
from argus_edge.devices.mock import MockTransport
from argus_edge.errors import DeviceUnreachableError, InterruptedRunError, RunFailedError
from argus_edge.interrupts import Interrupts
from argus_edge.schema.device import DeviceEntry

PATIENCE_S = 60


class Watcher:
    """A view that keeps what it is told."""

    def __init__(self):
        self.told = []
        self.listener = Nobody()

    def board(self, name):
        return self.listener

    def begin(self, name, model, number, count):
        self.told.append((name, model, number, count))

    def end(self, name, result):
        self.told.append((name, "ended"))

    def say(self, text):
        self.told.append(text)

    def close(self):
        pass


def entry(name):
    return DeviceEntry(name=name, host=f"pi@{name}")


def task(name, action, model="m"):
    return Task(model, entry(name), action)


def carry_out(tasks, view=None, interrupts=None, transport=None):
    with interrupts or Interrupts() as counted:
        return run(tasks, view or Watcher(), counted, connect=lambda entry: transport or MockTransport())


def test_boards_work_at_the_same_time():
    together = threading.Barrier(8)

    def action(listener, connect):
        together.wait(PATIENCE_S)
        return "outcome"

    results = carry_out([task(f"b{number}", action) for number in range(8)])
    assert [result.outcome for result in results] == ["outcome"] * 8


def test_one_board_does_one_thing_after_the_other_and_results_come_in_the_tasks_order():
    busy, order, view = threading.Lock(), [], Watcher()

    def action(model):
        def act(listener, connect):
            assert busy.acquire(blocking=False), "two at once"
            order.append(model)
            busy.release()
            return model

        return act

    models = [f"m{number}" for number in range(5)]
    # As in a matrix, the other board's come in between.
    tasks = [task(board, action(m) if board == "a" else lambda *_: "b", m) for m in models for board in ("a", "b")]
    results = carry_out(tasks, view)
    assert order == models
    assert [result.outcome for result in results] == [word for m in models for word in (m, "b")]
    assert ("a", "m1", 2, 5) in view.told


def test_entries_with_one_address_and_one_home_are_one_board():
    busy = threading.Lock()

    def act(listener, connect):
        assert busy.acquire(blocking=False), "two at once"
        time.sleep(0.01)
        busy.release()

    same = [Task("m", DeviceEntry(name=name, host="pi@one"), act) for name in ("x", "y")]
    assert all(result.error is None for result in carry_out(same))


@pytest.mark.parametrize("fault", [DeviceUnreachableError("off"), RunFailedError("crashed"), ValueError("a bug")])
def test_a_fault_on_one_board_stops_no_other(fault):
    def fail(listener, connect):
        raise fault

    results = carry_out([task("a", fail), task("b", lambda *_: "b"), task("a", lambda *_: "next")])
    assert results[0].error is fault
    assert [result.outcome for result in results[1:]] == ["b", "next"]


class Board:
    """A board whose run ends only when it is stopped."""

    def __init__(self, heeds=True):
        self.running, self.stopped, self.heeds = threading.Event(), threading.Event(), heeds

    def stop(self):
        if not self.heeds:
            threading.Event().wait(PATIENCE_S)  # it does not answer
        self.stopped.set()

    def bench(self, listener, connect):
        connect(entry("a"))
        listener.started("run-1", self.stop)
        self.running.set()
        try:
            while True:
                if self.stopped.wait(0.02):
                    listener.say("the run has ended")
        except KeyboardInterrupt:
            raise InterruptedRunError("Interrupted; the run run-1 was stopped.") from None


def interrupt_when(event, interrupts, times=1):
    def press():
        event.wait(PATIENCE_S)
        interrupts.count += times
        interrupts.wake()

    threading.Thread(target=press, daemon=True).start()


def test_ctrl_c_stops_every_run_and_begins_no_other():
    boards, interrupts, view = [Board(), Board()], Interrupts(), Watcher()
    tasks = [task(f"b{number}", board.bench) for number, board in enumerate(boards)]
    tasks.append(task("b0", lambda *_: "never"))
    threading.Thread(
        target=lambda: boards[0].running.wait(PATIENCE_S) and interrupt_when(boards[1].running, interrupts), daemon=True
    ).start()
    results = carry_out(tasks, view, interrupts)
    assert all(board.stopped.is_set() for board in boards)
    assert [result.error.what for result in results] == [
        "Interrupted; the run run-1 was stopped.",
        "Interrupted; the run run-1 was stopped.",
        "Interrupted before it was begun.",
    ]
    assert any("Ctrl-C again" in text for text in view.told)


def test_a_second_ctrl_c_leaves_at_once_and_says_how_to_come_back():
    board, interrupts = Board(heeds=False), Interrupts()
    interrupt_when(board.running, interrupts, times=2)
    (result,) = carry_out([task("a", board.bench)], interrupts=interrupts)
    assert result.error.exit_code == 130
    assert "argus-edge bench --resume run-1" in result.error.next_step


def test_ctrl_c_before_a_run_is_started_closes_the_link():
    probing, closed = threading.Event(), threading.Event()

    class Silent(MockTransport):
        def close(self):
            closed.set()

    def act(listener, connect):
        connect(entry("a"))
        probing.set()
        closed.wait(PATIENCE_S)
        raise DeviceUnreachableError("The link was closed.")

    interrupts = Interrupts()
    interrupt_when(probing, interrupts)
    (result,) = carry_out([task("a", act)], interrupts=interrupts, transport=Silent())
    assert result.error.what == "Interrupted before the run was started."
    assert result.error.exit_code == 130


def test_ctrl_c_cuts_a_pause_short():
    pausing, interrupts = threading.Event(), Interrupts()

    def act(listener, connect):
        pausing.set()
        listener.pause(3600)

    interrupt_when(pausing, interrupts)
    (result,) = carry_out([task("a", act)], interrupts=interrupts)
    assert isinstance(result.error, InterruptedRunError)


def test_no_run_is_started_after_ctrl_c():
    started, interrupts = [], Interrupts()
    ready = threading.Event()

    def act(listener, connect):
        ready.set()
        while interrupts.count == 0:
            time.sleep(0.001)
        for _ in range(1000):  # until the board's thread has heard of it
            listener.started("run-1", lambda: None)
            time.sleep(0.001)
        started.append(True)

    interrupt_when(ready, interrupts)
    (result,) = carry_out([task("a", act)], interrupts=interrupts)
    assert started == []
    assert isinstance(result.error, InterruptedRunError)

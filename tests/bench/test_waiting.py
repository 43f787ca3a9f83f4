"""Queueing for a busy device: how long, for whom, and what is told."""

import math

import pytest

from argus_edge.bench.waiting import POLL_S, Queue
from argus_edge.bench.watching import RETRY_S, Nobody
from argus_edge.errors import DeviceBusyError, DeviceUnreachableError

BUSY = DeviceBusyError("The device is busy: ann@lab holds it since 21:14.", run="r-1", next_step="add --wait")
LOST = DeviceUnreachableError("The link was lost.")


class Clock(Nobody):
    """A listener whose pauses pass on its own clock."""

    def __init__(self):
        self.now, self.said = 0.0, []

    def __call__(self):
        return self.now

    def pause(self, seconds):
        self.now += seconds

    def say(self, text):
        self.said.append(text)


def attempts(*errors):
    """An action that raises these in turn, and is then done."""
    left = iter(errors)

    def act():
        for error in left:
            raise error
        return "done"

    return act


def test_a_free_device_is_not_waited_for():
    clock = Clock()
    assert Queue(clock=clock).when_free(attempts(), clock) == "done"
    assert clock.now == 0


def test_without_patience_a_busy_device_is_an_error():
    clock = Clock()
    with pytest.raises(DeviceBusyError) as caught:
        Queue(clock=clock).when_free(attempts(BUSY), clock)
    assert caught.value is BUSY


def test_with_patience_it_is_waited_for_and_told_once():
    clock = Clock()
    assert Queue(math.inf, clock=clock).when_free(attempts(*[BUSY] * 50), clock) == "done"
    assert clock.now == 50 * POLL_S
    assert clock.said == ["The device is busy: ann@lab holds it since 21:14. Waiting for it to be free."]


def test_patience_ends():
    clock = Clock()
    with pytest.raises(DeviceBusyError, match="Waited for 10 s") as caught:
        Queue(10, clock=clock).when_free(attempts(*[BUSY] * 50), clock)
    assert clock.now == 10
    assert caught.value.exit_code == 3


def test_a_run_of_ours_is_always_waited_for():
    clock = Clock()
    queue = Queue(clock=clock)
    queue.ours.add("r-1")
    assert queue.when_free(attempts(BUSY, BUSY), clock) == "done"


def test_a_link_that_is_lost_while_waiting_is_taken_up_again():
    clock = Clock()
    queue = Queue(math.inf, clock=clock)
    assert queue.when_free(attempts(BUSY, LOST, LOST, BUSY, LOST), clock) == "done"
    with pytest.raises(DeviceUnreachableError):
        queue.when_free(attempts(LOST), clock)
    with pytest.raises(DeviceUnreachableError):
        queue.when_free(attempts(BUSY, *[LOST] * (len(RETRY_S) + 1)), clock)

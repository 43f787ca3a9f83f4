"""A board that fails three times in a row is left out until it is looked at."""

import pytest

from argus_edge.bench.quarantine import LIMIT, Quarantine
from argus_edge.devices.inventory import Inventory
from argus_edge.errors import (
    BoardFailedError,
    DeviceBusyError,
    DeviceError,
    DeviceUnreachableError,
    DeviceUntrustedError,
    MisfitError,
    RunFailedError,
)
from argus_edge.schema.device import DeviceEntry

PI = DeviceEntry(name="pi5", host="pi@10.0.0.1")


@pytest.fixture
def inventory(tmp_path):
    saved = Inventory(tmp_path / "devices.yaml")
    saved.add(PI)
    return saved


@pytest.mark.parametrize("fault", [DeviceUnreachableError("off"), BoardFailedError("rebooted")])
def test_three_times_in_a_row(inventory, fault):
    quarantine = Quarantine(inventory)
    assert [quarantine.count(PI, fault) for _ in range(LIMIT - 1)] == [None] * (LIMIT - 1)
    quarantine.check(PI)
    assert "3 times in a row" in quarantine.count(PI, fault)
    # Another command knows it as well.
    for again in (quarantine, Quarantine(Inventory(inventory.path))):
        with pytest.raises(DeviceError, match="quarantine") as caught:
            again.check(PI)
        assert caught.value.exit_code == 3
        assert "argus-edge device doctor pi5" in caught.value.next_step


def test_a_good_bench_forgets_what_was_before(inventory):
    quarantine = Quarantine(inventory)
    for error in (DeviceUnreachableError("off"), DeviceUnreachableError("off"), None) * 3:
        quarantine.count(PI, error)
    quarantine.check(PI)
    assert inventory.entries["pi5"].failures == 0


@pytest.mark.parametrize(
    "error",
    [RunFailedError("the model crashed"), MisfitError("opset"), DeviceBusyError("ann"), DeviceUntrustedError("key")],
)
def test_what_is_not_the_boards_fault_is_not_counted(inventory, error):
    quarantine = Quarantine(inventory)
    for _ in range(2 * LIMIT):
        assert quarantine.count(PI, error) is None
    quarantine.check(PI)


def test_a_board_that_is_not_saved_is_not_counted(inventory):
    other = DeviceEntry(name="pi5", host="somebody@else")
    quarantine = Quarantine(inventory)
    for _ in range(LIMIT):
        assert quarantine.count(other, DeviceUnreachableError("off")) is None
    quarantine.check(PI)
    quarantine.check(DeviceEntry(name="local"))


def test_an_inventory_that_cannot_be_written_costs_the_count_only(inventory, tmp_path):
    quarantine = Quarantine(inventory)
    inventory.path.unlink()
    inventory.path.mkdir()
    assert "not counted" in quarantine.count(PI, DeviceUnreachableError("off"))


def test_several_commands_count_together(inventory):
    here, there = Quarantine(inventory), Quarantine(Inventory(inventory.path))
    off = DeviceUnreachableError("off")
    assert [here.count(PI, off), there.count(PI, off)] == [None, None]
    assert "3 times in a row" in here.count(PI, off)


def test_the_command_that_releases_it_names_another_inventory(inventory):
    inventory.change("pi5", quarantined=True, failures=LIMIT)
    with pytest.raises(DeviceError) as caught:
        Quarantine(inventory).check(PI)
    assert f"argus-edge device doctor pi5 --inventory {inventory.path}" in caught.value.next_step

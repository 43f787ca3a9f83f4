"""The user's boards: one private file; an unknown name brings the command that adds it."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from argus_edge.devices.inventory import Inventory, config_folder, entry_name, make_entry
from argus_edge.errors import InputError, UsageError


@pytest.fixture
def inventory(tmp_path):
    return Inventory(tmp_path / "config" / "devices.yaml")


def entry(name="pi5", **fields):
    return make_entry(name, {"host": "pi@192.168.1.20", **fields})


def test_what_is_added_is_there_the_next_time_and_private(inventory):
    added = entry(profile="pi5", tags=["lab"], labels={"case": "open"}, power_cycle=["pdu", "off"])
    inventory.add(added)
    assert Inventory(inventory.path).entries == {"pi5": added}
    assert inventory.path.stat().st_mode & 0o777 == 0o600
    assert inventory.path.parent.stat().st_mode & 0o777 == 0o700


def test_a_name_is_not_overwritten_unless_asked(inventory):
    inventory.add(entry())
    with pytest.raises(UsageError, match="already"):
        inventory.add(entry(host="pi@other"))
    inventory.add(entry(host="pi@other"), replace=True)
    assert Inventory(inventory.path).get("pi5").host == "pi@other"


def test_changes_at_once_lose_nothing(inventory):
    # Each has read the file before any of them writes.
    others = [Inventory(inventory.path) for _ in range(8)]
    threads = [threading.Thread(target=other.add, args=(entry(f"board-{n}"),)) for n, other in enumerate(others)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(Inventory(inventory.path).entries) == [f"board-{n}" for n in range(8)]
    inventory.change("board-3", failures=2)
    assert Inventory(inventory.path).get("board-3").failures == 2
    with pytest.raises(UsageError, match="no device"):
        inventory.change("nobody", failures=1)


def test_what_cannot_be_written_changes_nothing(inventory):
    inventory.add(entry())
    before = inventory.path.read_text()
    with pytest.raises(UsageError):
        inventory.change("pi5", home="nowhere")
    assert inventory.path.read_text() == before


def test_a_change_keeps_what_it_does_not_name():
    changed = make_entry("pi5", {"python": "~/v/bin/python"}, entry(tags=["lab"]))
    assert (changed.host, changed.tags, changed.python) == ("pi@192.168.1.20", ["lab"], "~/v/bin/python")


def test_local_is_built_in_and_uses_our_interpreter(inventory):
    assert inventory.get("local").host is None
    assert inventory.get("local").python == sys.executable


def test_an_address_works_unsaved(inventory):
    found = inventory.get("pi@192.168.1.20:2222")
    assert (found.name, found.host) == ("192.168.1.20", "pi@192.168.1.20:2222")


def test_an_unknown_name_brings_the_command_to_type(inventory):
    inventory.add(entry())
    with pytest.raises(UsageError, match="did you mean 'pi5'") as caught:
        inventory.get("pi6")
    assert caught.value.next_step.startswith("argus-edge device add pi6 --host ")
    assert caught.value.where == str(inventory.path)


def test_a_named_inventory_must_be_there_unless_it_is_begun(tmp_path):
    path = tmp_path / "lab one.yaml"
    with pytest.raises(InputError, match="no such inventory") as caught:
        Inventory(path, existing=True)
    assert caught.value.where == str(path)
    assert f"--inventory '{path}'" in caught.value.next_step
    with pytest.raises(UsageError) as lacking:
        Inventory(path).get("pi5")
    assert f"device add pi5 --host USER@HOST --inventory '{path}'" in lacking.value.next_step


@pytest.mark.parametrize("names", ["", " ", ",", " , "])
def test_no_name_is_not_every_board(inventory, names):
    inventory.add(entry("a"))
    with pytest.raises(UsageError, match="No device is named"):
        inventory.select(names)


def test_selecting(inventory):
    inventory.add(entry("a", tags=["pi5"]))
    inventory.add(entry("b"))
    assert [item.name for item in inventory.select("b,a,b")] == ["b", "a"]
    assert [item.name for item in inventory.select("all")] == ["a", "b"]
    assert [item.name for item in inventory.select("all", tag="pi5")] == ["a"]
    with pytest.raises(UsageError, match="No device is left"):
        inventory.select("b", tag="pi5")


@pytest.mark.parametrize("name", ["local", "all", "", "-x", "a b", "../x", "x" * 65, "a/b"])
def test_names_that_cannot_be(inventory, name):
    with pytest.raises(UsageError) as caught:
        inventory.add(entry(name))
    assert "pattern" not in caught.value.what
    assert caught.value.next_step


@pytest.mark.parametrize(
    "fields",
    [
        {"host": "-oProxyCommand=x"},
        {"home": "cache"},
        {"home": "~/../x"},
        {"python": "-c"},
        {"python": ""},
        {"tags": "lab"},
    ],
)
def test_fields_that_cannot_be(fields):
    with pytest.raises(UsageError):
        entry(**fields)


@pytest.mark.parametrize(
    "text",
    [
        "devices: [",
        "- a\n- b\n",
        "devices: 7\n",
        "devices:\n  pi5: 7\n",
        "devices:\n  pi5: {hosst: x}\n",
        "devices:\n  pi5: {host: -x}\n",
        "devices: !!python/object/apply:os.system ['true']\n",
        "\x00\x01",
        "a: &a [*a, *a]\n: [",
    ],
)
def test_a_file_that_does_not_hold_is_an_error_that_names_it(tmp_path, text):
    path = tmp_path / "devices.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        Inventory(path)
    assert caught.value.where == str(path)


def test_the_folder_can_be_set(tmp_path, monkeypatch):
    monkeypatch.setenv("ARGUS_EDGE_CONFIG", str(tmp_path / "mine"))
    assert config_folder() == tmp_path / "mine"
    Inventory().add(entry())
    assert (tmp_path / "mine" / "devices.yaml").exists()


@pytest.mark.parametrize(
    ("host", "name"), [("192.168.1.20", "192.168.1.20"), ("fe80::1%eth0", "fe80--1-eth0"), ("ü", "device")]
)
def test_names_for_hosts(host, name):
    assert entry_name(host) == name


def test_the_inventory_needs_no_ssh_to_be_read():
    program = (
        "import sys, argus_edge.devices.inventory, argus_edge.devices.connect; sys.exit('paramiko' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0

"""The agent in a container on the device: the words that docker gets, and a bench through a docker that execs them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from argus_edge.bench.drive import bench, resume
from argus_edge.bench.options import Options, scenario_of
from argus_edge.bench.prepare import prepare
from argus_edge.bench.request import Request
from argus_edge.devices import container
from argus_edge.devices.deploy import deploy_agent
from argus_edge.devices.local import LocalTransport
from argus_edge.devices.ssh import SshTransport
from argus_edge.devices.zipapp import build_agent
from argus_edge.errors import MisfitError, RunFailedError, UsageError
from argus_edge.schema.agent import Warmup
from argus_edge.schema.device import DeviceEntry
from argus_edge.store.records import Store
from tests.support import sshd

HERE = Path(__file__).parent


class Docker:
    """The fake, and what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "bin"
        self.path.mkdir(parents=True)
        program = self.path / "docker"
        program.write_text(f"#!{sys.executable}\n" + (HERE / "fake_docker.py").read_text())
        program.chmod(0o755)
        # Within the image the interpreter is python3.
        (self.path / "python3").symlink_to(sys.executable)

    @property
    def asked(self) -> list[list[str]]:
        said = self.folder / "asked"
        return [json.loads(line) for line in said.read_text().splitlines()] if said.exists() else []

    def asked_to(self, word: str) -> list[list[str]]:
        return [words for words in self.asked if words[0] == word]


@pytest.fixture
def docker(tmp_path, monkeypatch):
    found = Docker(tmp_path / "docker")
    monkeypatch.setenv("FAKE_DOCKER", str(found.folder))
    monkeypatch.setenv("PATH", f"{found.path}:{Path(sys.executable).parent}:/usr/bin:/bin")
    return found


@pytest.fixture
def entry(tmp_path):
    return DeviceEntry(name="nano", container="argus-edge-jetson", home=str(tmp_path / "a board's home"))


def value(words: list[str], option: str) -> list[str]:
    return [words[i + 1] for i, word in enumerate(words) if word == option]


def test_the_container_is_started_once_and_its_words_are_a_vector(docker, entry):
    client = deploy_agent(LocalTransport(), entry)
    assert client.list_runs() == []
    deploy_agent(LocalTransport(), entry)
    (words,) = docker.asked_to("run")
    assert {"--detach", "--rm"} <= set(words)
    assert value(words, "--runtime") == ["nvidia"]
    assert value(words, "--group-add") == ["video"]
    assert value(words, "--pull") == ["never"]
    assert value(words, "--network") == ["none"]
    assert value(words, "--cap-drop") == ["ALL"]
    assert value(words, "--user") == [f"{os.getuid()}:{os.getgid()}"]
    # The home is the device's own under the same path, blanks and quotes and all.
    assert value(words, "--mount")[0] == f"type=bind,source={entry.home},target={entry.home}"
    assert words[-5:] == [
        entry.container,
        f"{entry.home}/{build_agent().sha256}/agent.pyz",
        "--home",
        entry.home,
        "keep",
    ]
    (called,) = docker.asked_to("exec")
    assert called[:3] == ["exec", container.name_of(entry), "python3"]
    assert called[-1] == "list"


def test_a_container_that_has_ended_is_started_anew(docker, entry):
    deploy_agent(LocalTransport(), entry)
    (docker.folder / container.name_of(entry)).unlink()
    assert deploy_agent(LocalTransport(), entry).list_runs() == []
    assert len(docker.asked_to("run")) == 2


def test_without_an_image_docker_is_not_asked(docker, entry):
    plain = entry.model_copy(update={"container": None, "python": sys.executable})
    assert deploy_agent(LocalTransport(), plain).list_runs() == []
    assert docker.asked == []


def test_two_images_or_homes_have_containers_of_their_own(entry):
    others = [entry.model_copy(update=change) for change in ({"container": "other:1"}, {"home": "/srv/argus"})]
    assert len({container.name_of(one) for one in (entry, *others)}) == 3


@pytest.mark.parametrize(
    ("said", "what", "next_step"),
    [
        ("docker: Got permission denied while trying to connect to the Docker daemon socket", "may not use", "usermod"),
        ("Unable to find image 'argus-edge-jetson:latest' locally\ndocker: No such image", "no image", "docker build"),
        ("docker: Error response from daemon: Unknown runtime specified nvidia.", "runtime", "nvidia-container"),
        ("docker: unknown or invalid runtime name: nvidia", "runtime", "nvidia-container"),
        (
            "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is it running?\n"
            "\nRun 'docker run --help' for more information",
            "does not run",
            "systemctl enable --now docker",
        ),
    ],
)
def test_what_keeps_the_container_from_starting_is_named_with_what_mends_it(docker, entry, said, what, next_step):
    (docker.folder / "fault").write_text(said + "\n")
    with pytest.raises(MisfitError, match=what) as caught:
        deploy_agent(LocalTransport(), entry)
    assert next_step in caught.value.next_step


def test_another_failure_is_told_in_dockers_words_without_its_colours(docker, entry):
    said = "\x1b[31mthe disk is on fire\x1b[0m\n\nRun 'docker run --help' for more information\n"
    (docker.folder / "fault").write_text(said)
    with pytest.raises(RunFailedError, match=r"status 125\): the disk is on fire"):
        deploy_agent(LocalTransport(), entry)


def test_a_device_without_docker(docker, entry, monkeypatch):
    (docker.path / "docker").unlink()
    monkeypatch.setenv("PATH", str(docker.path))
    with pytest.raises(MisfitError, match="no docker"):
        container.ensure(LocalTransport(), entry, f"{entry.home}/x/agent.pyz")


@pytest.mark.parametrize("image", ["--privileged", "-v", "a b", "x;reboot", "$(id)", ""])
def test_an_image_is_never_an_option_nor_a_command(image):
    with pytest.raises(ValidationError):
        DeviceEntry(name="nano", container=image)


def test_a_server_is_not_to_be_had_without_a_network(entry):
    container.check_containers([entry], "onnxruntime")
    with pytest.raises(UsageError, match="no network"):
        container.check_containers([entry], "server")


def test_a_home_that_docker_would_misread_is_refused(docker, tmp_path):
    entry = DeviceEntry(name="nano", container="image", home=str(tmp_path / "a,readonly"))
    with pytest.raises(MisfitError, match="cannot be given the home"):
        deploy_agent(LocalTransport(), entry)


def test_a_bench_in_a_container_over_ssh(docker, entry, tmp_path):
    options = Options(runtime="null", scenario=scenario_of("single-stream", duration=0.5), warmup=Warmup(fixed_calls=2))
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    command = f'exec env PATH={docker.path}:$PATH FAKE_DOCKER={docker.folder} /bin/sh -c "$SSH_ORIGINAL_COMMAND"'
    script = tmp_path / "login"
    script.write_text(f"#!/bin/sh\n{command}\n")
    script.chmod(0o755)
    with sshd.serve(tmp_path / "sshd", force_command=str(script)) as server:
        config = server.config()
        board = entry.model_copy(update={"host": "board"})
        outcome = bench(
            prepare(Request(None, options)), board, store, connect=lambda one: SshTransport(one.host, config=config)
        )
        assert outcome.error is None
        assert outcome.report.measurements[0].state == "done"
        assert any("container of the image argus-edge-jetson" in note for note in outcome.report.notes)
        # The run has gone through docker from its start to its end.
        assert {"start", "follow", "collect", "remove"} <= {word for words in docker.asked_to("exec") for word in words}
        again = resume(store.list()[0], store)
        assert again.report == outcome.report

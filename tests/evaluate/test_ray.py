"""A real local Ray cluster gives the bytes of the local backend, whatever the number of workers."""

from __future__ import annotations

import os

import pytest

from argus_edge.errors import ArgusError, InputError, RunFailedError, UsageError
from argus_edge.evaluate.backends import BackendOptions
from argus_edge.evaluate.conditions import perturbation_lines
from argus_edge.evaluate.models.resolve import resolve_model
from argus_edge.evaluate.prompts import load_prompts
from argus_edge.evaluate.runner import Settings, evaluate

ray = pytest.importorskip("ray")
# A busy machine starts a worker in minutes.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def cluster():
    """Two CPUs, as the smallest machine has them; workers import the rule models from their working folder."""
    os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"
    for attempt in range(4):
        try:
            ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
            break
        except Exception as error:
            # Ray gives a node half a minute to start, which a busy machine does not always have.
            ray.shutdown()
            if "timed out during startup" not in str(error) or attempt == 3:
                raise
    yield ray
    ray.shutdown()


def run(model, data, out, monkeypatch, **settings):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    name, lines = perturbation_lines("gaussian_noise:2-3,fog:5,keyboard:3")
    return evaluate(
        resolve_model(f"rule_models:{model}", threads=1),
        Settings(data=data, out=out, perturbation_set=name, perturbations=lines, batch_size=4, **settings),
        load_prompts(),
    )


def files(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


@pytest.mark.parametrize("workers", [1, 2])
def test_any_number_of_workers_gives_the_local_bytes(cluster, painted, rule_models, tmp_path, monkeypatch, workers):
    run("Talker", {"mine": painted}, tmp_path / "local", monkeypatch)
    options = BackendOptions(workers=workers)
    run("Talker", {"mine": painted}, tmp_path / "ray", monkeypatch, backend="ray", options=options)
    assert files(tmp_path / "ray") == files(tmp_path / "local")


DYING = """

class Dying(Talker):
    def caption(self, images, prompt):
        import os
        marker = os.environ["ARGUS_TEST_DIED"]
        if not os.path.exists(marker):
            open(marker, "w").close()
            os.kill(os.getpid(), 9)
        return super().caption(images, prompt)


class AlwaysDying(Talker):
    def caption(self, images, prompt):
        import os
        os.kill(os.getpid(), 9)
"""


def test_a_worker_that_dies_is_made_up_for(cluster, painted, rule_models, tmp_path, monkeypatch):
    source = rule_models / "rule_models.py"
    source.write_text(source.read_text() + DYING.replace('os.environ["ARGUS_TEST_DIED"]', repr(str(tmp_path / "died"))))
    report = run(
        "Dying", {"mine": painted}, tmp_path / "ray", monkeypatch, backend="ray", options=BackendOptions(workers=2)
    )
    assert (tmp_path / "died").exists()
    assert {cell.task for cell in report.cells} == {"retrieval", "captioning", "reasoning"}


def test_work_that_kills_every_worker_is_an_error_with_its_place(cluster, painted, rule_models, tmp_path, monkeypatch):
    source = rule_models / "rule_models.py"
    source.write_text(source.read_text() + DYING)
    with pytest.raises(RunFailedError, match="died 3 times") as caught:
        run("AlwaysDying", {"mine": painted}, tmp_path / "r", monkeypatch, backend="ray")
    assert "caption of mine" in caught.value.where


def test_a_model_that_cannot_be_made_is_told_as_it_is_locally(cluster, painted, rule_models, tmp_path, monkeypatch):
    source = rule_models / "rule_models.py"
    source.write_text(source.read_text() + "\n\nclass Broken:\n    def __init__(self):\n        raise OSError('no')\n")
    with pytest.raises(InputError, match="cannot be made"):
        run("Broken", {"mine": painted}, tmp_path / "r", monkeypatch, backend="ray")


@pytest.mark.parametrize(
    ("constructor", "why"),
    [
        ("import os\n        os.kill(os.getpid(), 9)", "ended while it was started"),
        ("raise SystemExit(3)", "SystemExit: 3"),
    ],
)
def test_a_worker_that_cannot_be_started_is_said_so(
    cluster, painted, rule_models, tmp_path, monkeypatch, constructor, why
):
    source = rule_models / "rule_models.py"
    source.write_text(
        source.read_text() + f"\n\nclass Stillborn(Talker):\n    def __init__(self):\n        {constructor}\n"
    )
    with pytest.raises(ArgusError, match=why):
        run("Stillborn", {"mine": painted}, tmp_path / "r", monkeypatch, backend="ray")


def test_more_workers_than_the_cluster_has_room_for(cluster, painted, rule_models, tmp_path, monkeypatch):
    options = BackendOptions(workers=3)
    with pytest.raises(UsageError, match=r"room for 2 worker"):
        run("Talker", {"mine": painted}, tmp_path / "r", monkeypatch, backend="ray", options=options)


def test_no_cluster_at_the_address(painted, rule_models, tmp_path, monkeypatch):
    if ray.is_initialized():
        ray.shutdown()
    options = BackendOptions(address="127.0.0.1:1")
    with pytest.raises(UsageError, match="No Ray cluster"):
        run("Talker", {"mine": painted}, tmp_path / "r", monkeypatch, backend="ray", options=options)

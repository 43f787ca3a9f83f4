"""A model on the hub whose weights are a pickle: the hub's own conversion of them is found; the hub is a stand-in."""

from types import SimpleNamespace

import pytest

pytest.importorskip("torch", reason="needs the export extra")
transformers = pytest.importorskip("transformers", minversion="5", reason="the families need transformers 5")
huggingface_hub = pytest.importorskip("huggingface_hub")

from argus_edge.errors import InputError
from argus_edge.exporters.source import CONVERTER, resolve
from argus_edge.exporters.weights import explain_weights

PUBLISHED, CONVERTED = "3d74acf9", "c237dc49"
PICKLE = ["config.json", "pytorch_model.bin", "vocab.json"]


@pytest.fixture
def hub(monkeypatch):
    """Return a hub with one model; its files, pull requests and their commits can be changed."""
    state = SimpleNamespace(files=list(PICKLE), requests={"refs/pr/66": (CONVERTER, [CONVERTED, PUBLISHED])})

    class Api:
        def model_info(self, repo_id, *, revision, timeout=None):
            assert revision == PUBLISHED
            assert timeout, "a hub that never answers would be waited for"
            return SimpleNamespace(siblings=[SimpleNamespace(rfilename=name) for name in state.files])

        def get_repo_discussions(self, repo_id, *, author, discussion_type, discussion_status):
            assert (discussion_type, discussion_status) == ("pull_request", "open")
            return [SimpleNamespace(git_reference=name) for name, (by, _) in state.requests.items() if by == author]

        def list_repo_commits(self, repo_id, *, revision):
            return [SimpleNamespace(commit_id=commit) for commit in state.requests[revision][1]]

    def config(location, **_):
        found = transformers.CLIPConfig(architectures=["CLIPModel"])
        found._commit_hash = PUBLISHED
        return found

    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", config)
    return state


def test_the_hubs_own_conversion_is_taken(hub):
    assert resolve("someone/model").revision == CONVERTED


def test_weights_that_are_safetensors_are_taken_as_they_are(hub):
    hub.files.append("model.safetensors")
    assert resolve("someone/model").revision == PUBLISHED


def test_a_pickle_that_was_asked_for_is_taken_as_it_is(hub):
    assert resolve("someone/model", allow_pickle=True).revision == PUBLISHED
    assert resolve("someone/model", random_weights=True).revision == PUBLISHED


@pytest.mark.parametrize(
    "request_",
    [("somebody", [CONVERTED, PUBLISHED]), (CONVERTER, [CONVERTED, "older"]), (CONVERTER, [CONVERTED])],
    ids=["opened by somebody", "of another commit", "of none"],
)
def test_another_pull_request_is_not_trusted(hub, request_):
    hub.requests = {"refs/pr/1": request_}
    assert resolve("someone/model").revision == PUBLISHED


def test_without_the_hub_what_is_here_decides(hub, monkeypatch):
    def offline(*_, **__):
        raise huggingface_hub.errors.OfflineModeIsEnabled("offline")

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", offline)
    assert resolve("someone/model").revision == PUBLISHED


def test_a_pickle_on_the_hub_is_called_one(hub):
    hub.requests = {}
    source = resolve("someone/model")
    error = OSError(
        "someone/model does not appear to have a file named model.safetensors or model.safetensors.index.json and thus "
        "cannot be loaded with `safetensors`. Please do not set `use_safetensors=True`."
    )
    found = explain_weights(error, source)
    assert isinstance(found, InputError)
    assert "pickle" in found.what
    assert "--allow-pickle" in found.next_step

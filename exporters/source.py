"""Where a model comes from: the hub, a local folder, or a configuration that ships with the tool."""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from argus_edge.errors import InputError
from argus_edge.exporters.quiet import quiet
from argus_edge.exporters.registry import FAMILIES

# Who converts pickles on the hub into safetensors.
CONVERTER = "SFconvertbot"


@dataclass(frozen=True)
class ModelSource:
    """A model whose configuration is read and whose weights are not loaded yet.

    ``location`` is what ``from_pretrained`` takes; None where only a configuration is at hand. ``loaded`` is the model
    itself where a class of the user's has made it.
    """

    config: Any
    architecture: str
    source_id: str
    location: str | None
    revision: str | None
    random_weights: bool
    seed: int
    trust_remote_code: bool = False
    allow_pickle: bool = False
    loaded: Any = None


def shipped_models() -> dict[str, dict[str, Any]]:
    """Return the configurations that ship with the tool: name -> document of ``profiles/models/NAME.yaml``."""
    folder = files("argus_edge.profiles").joinpath("models")
    found = {}
    for entry in sorted(folder.iterdir(), key=lambda item: item.name):
        if entry.name.endswith(".yaml"):
            found[entry.name.removesuffix(".yaml")] = yaml.safe_load(entry.read_text(encoding="utf-8"))
    return found


def supported() -> str:
    """Return what can be exported, in words for an error message."""
    return (
        f"families {', '.join(FAMILIES)}; shipped configurations {', '.join(shipped_models())}; "
        'other architectures through Optimum (pip install "argus-edge[optimum]", in an environment of its own)'
    )


def resolve(
    model: str,
    *,
    revision: str | None = None,
    random_weights: bool = False,
    seed: int = 0,
    trust_remote_code: bool = False,
    allow_pickle: bool = False,
) -> ModelSource:
    """Find a model and read its configuration.

    Parameters
    ----------
    model
        A local folder, the name of a shipped configuration, or a hub id.

    Raises
    ------
    InputError
        No such model, no network, a gated model, an unreadable or unsupported configuration.
    """
    shipped = shipped_models()
    by_hub_id = {document["hub_id"].lower(): name for name, document in shipped.items()}
    path = Path(model)
    common: dict[str, Any] = {
        "random_weights": random_weights,
        "seed": seed,
        "trust_remote_code": trust_remote_code,
        "allow_pickle": allow_pickle,
    }
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise InputError(
                "This folder holds no config.json, so it is no Hugging Face model.",
                where=model,
                next_step="give the folder that save_pretrained() wrote",
            )
        config = read_config(str(path), revision=None, trust_remote_code=trust_remote_code)
        name = path.resolve().name
        return ModelSource(config, architecture_of(config, model), name, str(path), None, **common)
    if path.is_file():
        raise InputError(
            "This is a file; a model is a folder with config.json, or a hub id.",
            where=model,
            next_step=f"a model file needs no export: argus-edge inspect {model}",
        )
    if path.exists() or model.startswith(("./", "../", "/", "~")) or model.count("/") > 1:
        raise InputError("No such model folder.", where=model, next_step="check the path")
    key = model.lower()
    shipped_name = key if key in shipped else by_hub_id.get(key)
    if shipped_name and random_weights and revision is None:
        document = shipped[shipped_name]
        config = config_from_dict(document["config"], where=shipped_name)
        architecture = architecture_of(config, shipped_name)
        return ModelSource(config, architecture, shipped_name, None, document.get("revision"), **common)
    hub_id = shipped[key]["hub_id"] if key in shipped else model
    config = read_config(hub_id, revision=revision, trust_remote_code=trust_remote_code)
    commit = getattr(config, "_commit_hash", None) or revision
    if not random_weights and not allow_pickle:
        commit = with_safetensors(hub_id, commit)
    return ModelSource(config, architecture_of(config, model), hub_id, hub_id, commit, **common)


def with_safetensors(hub_id: str, commit: str | None) -> str | None:
    """Return the commit that has the weights as safetensors: the one given, or the hub's own conversion of it.

    Models from before 2023 (openai/clip-vit-base-patch32) were published as pickles. For many of them the hub's
    converter has opened a pull request that adds the same weights as safetensors. It is taken where the converter
    itself opened it and it follows right on the commit.
    """
    from huggingface_hub import HfApi, constants

    api = HfApi()
    try:
        with quiet():
            # Of itself it waits for a hub that never answers.
            published = api.model_info(hub_id, revision=commit, timeout=constants.HF_HUB_ETAG_TIMEOUT)
            files = published.siblings or []
            if commit is None or any(file.rfilename.endswith(".safetensors") for file in files):
                return commit
            wanted: dict[str, Any] = {"discussion_type": "pull_request", "discussion_status": "open"}
            for found in api.get_repo_discussions(hub_id, author=CONVERTER, **wanted):
                commits = [entry.commit_id for entry in api.list_repo_commits(hub_id, revision=found.git_reference)]
                if commits[1:2] == [commit]:
                    return commits[0]
    except Exception:
        return commit  # without the hub, what is on this machine decides; loading the weights says what is missing
    return commit


def config_from_dict(document: dict[str, Any], *, where: str) -> Any:
    """Build a configuration object from a plain mapping.

    Raises
    ------
    InputError
        A model type that this transformers does not know, or values that it does not take.
    """
    from transformers import CONFIG_MAPPING

    values = dict(document)
    model_type = str(values.pop("model_type", ""))
    if model_type not in CONFIG_MAPPING:
        raise unsupported(model_type, where)
    try:
        return CONFIG_MAPPING[model_type](**values)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise InputError(f"The configuration does not hold together: {error}.", where=where) from error


def read_config(location: str, *, revision: str | None, trust_remote_code: bool) -> Any:
    """Read a configuration from a folder or the hub, with errors in the user's words."""
    from transformers import AutoConfig

    check_json(Path(location, "config.json"))
    try:
        with quiet():  # the hub's client logs each of its attempts
            return AutoConfig.from_pretrained(location, revision=revision, trust_remote_code=trust_remote_code)
    except Exception as error:
        raise explain(error, location) from error


def check_json(path: Path) -> None:
    """Raise where there is a file and it is no JSON object; what else may be wrong with it, transformers says.

    Raises
    ------
    InputError
        With the place where it stops to be JSON.
    """
    if not path.is_file():
        return
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"Not a JSON file: {error}.", where=str(path), next_step="copy the model again") from error
    if not isinstance(found, dict):
        raise InputError(
            "Not a JSON object.", where=str(path), next_step="give the config.json that came with the weights"
        )


def architecture_of(config: Any, where: str) -> str:
    """Return the one architecture that a configuration names.

    Raises
    ------
    InputError
        The configuration names none.
    """
    architectures = getattr(config, "architectures", None) or []
    if not architectures:
        raise InputError(
            'The configuration does not say which class the weights belong to ("architectures" is missing).',
            where=where,
            next_step='add it to config.json, e.g. "architectures": ["CLIPModel"]',
        )
    return str(architectures[0])


def unsupported(what: str, where: str) -> InputError:
    """Return the error for an architecture that cannot be exported, with a list of what can."""
    return InputError(f"{what or 'This model'} is not supported.", where=where, next_step=f"supported: {supported()}")


def did_you_mean(name: str) -> str:
    """Return a question that names the shipped configuration most like a name; empty where none is like it."""
    close = difflib.get_close_matches(name.lower(), shipped_models(), n=1, cutoff=0.7)
    return f"did you mean {close[0]}? Or " if close else ""


def _chain(error: BaseException) -> Iterable[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


def explain(error: Exception, location: str) -> Exception:
    """Turn what transformers and the hub raise into an error of ours.

    The classes and phrases are those of huggingface_hub and transformers 5; anything unknown keeps its own words.
    """
    if isinstance(error, MemoryError):
        return error
    names = {type(item).__name__ for item in _chain(error)}
    text = " ".join(str(item) for item in _chain(error))
    first = " ".join(str(error).split())[:300]
    local = Path(location).is_dir()
    if "GatedRepoError" in names or "gated repo" in text:
        return InputError(
            "The model is gated: its owner wants you to accept a licence first.",
            where=location,
            next_step="accept it on the model's page and set HF_TOKEN, or size it now with --random-weights",
        )
    if "trust_remote_code" in text:
        return InputError(
            "The model brings its own Python code, which is not run unless you ask for it.",
            where=location,
            next_step="read that code, then add --trust-remote-code",
        )
    if "RepositoryNotFoundError" in names or "is not a valid model identifier" in text:
        return InputError(
            "No such model on the hub (or it is private).",
            where=location,
            next_step=f"{did_you_mean(location)}check the name, or set HF_TOKEN for a private one",
        )
    if "RevisionNotFoundError" in names:
        return InputError("The model has no such revision.", where=location, next_step="check --revision")
    offline = os.environ.get("HF_HUB_OFFLINE") or names & {"OfflineModeIsEnabled", "LocalEntryNotFoundError"}
    if not local and (offline or "ConnectError" in names or "ConnectionError" in names or "connect" in text.lower()):
        return InputError(
            "The model is not on this machine and the hub cannot be reached.",
            where=location,
            next_step=f"{did_you_mean(location)}connect, copy the model's folder here, or size it with "
            f"--random-weights (shipped configurations: {', '.join(shipped_models())})",
        )
    if "does not recognize this architecture" in text or "Unrecognized model" in text:
        named = re.search(r"model type `([^`]{1,100})`", text)
        return unsupported(f"The architecture {named.group(1)}" if named else "A model of unnamed type", location)
    return InputError(
        f"The model cannot be read: {first}",
        where=location,
        next_step="correct its config.json, or copy the model again",
    )

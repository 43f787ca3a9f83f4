"""Random weights: a network as at the start of training, tied where the architecture ties, the same for a seed."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the export extra")
transformers = pytest.importorskip("transformers", minversion="5", reason="the families need transformers 5")

from argus_edge.exporters.capacity import parameter_count
from argus_edge.exporters.export import family_of
from argus_edge.exporters.parity import cosine
from argus_edge.exporters.source import resolve
from argus_edge.exporters.weights import empty_model, randomise
from tests.exporters.tiny_models import BUILDERS

DEPTH = 24


def deep_gemma():
    config = BUILDERS["gemma3"]().config
    text = config.text_config
    text.num_hidden_layers = DEPTH
    text.layer_types = ["full_attention"] * DEPTH
    return transformers.Gemma3ForConditionalGeneration(config).model.language_model.eval()


def deep_qwen():
    config = BUILDERS["qwen2_5_vl"]().config
    text = config.text_config
    text.num_hidden_layers = DEPTH
    text.layer_types = ["full_attention"] * DEPTH
    return transformers.Qwen2_5_VLForConditionalGeneration(config).model.language_model.eval()


@pytest.mark.parametrize("build", [deep_gemma, deep_qwen])
def test_signals_keep_their_size_and_an_error_its_share_however_deep_the_network(build):
    model = build()
    randomise(model, seed=0)
    ids = torch.arange(1, 13)[None]
    with torch.no_grad():
        found = model(input_ids=ids, output_hidden_states=True)
        sizes = [float(hidden.pow(2).mean().sqrt()) for hidden in found.hidden_states[:-1]]
        embeds = found.hidden_states[0]
        noise = torch.randn(embeds.shape, generator=torch.Generator().manual_seed(1)) * embeds.std() * 0.1
        disturbed = model(inputs_embeds=embeds + noise).last_hidden_state
        original = model(inputs_embeds=embeds).last_hidden_state
    assert min(sizes) > 0.5
    assert max(sizes) < 3.0
    # A tenth of noise is a cosine of 0.995; chaotic networks turn it into anything.
    assert cosine(original.numpy(), disturbed.numpy()) > 0.98


def test_weights_are_those_of_the_seed():
    models = [BUILDERS["clip"]() for _ in range(3)]
    for model, seed in zip(models, (1, 1, 2), strict=True):
        randomise(model, seed)
    first, same, other = (np.concatenate([p.detach().ravel() for p in m.parameters()]) for m in models)
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)
    assert all(parameter.std() > 0 for parameter in models[0].parameters() if parameter.numel() > 1)


@pytest.mark.parametrize("name", ["gemma-3-4b", "qwen2.5-vl-3b", "blip-captioning-base"])
def test_a_tied_vocabulary_is_there_once(name):
    source = resolve(name, random_weights=True)
    model_class = getattr(transformers, family_of(source).architectures[source.architecture])
    with torch.device("meta"):
        model = empty_model(model_class, source.config, torch.bfloat16)
    assert sum(parameter.numel() for parameter in model.parameters()) == parameter_count(source, family_of(source))

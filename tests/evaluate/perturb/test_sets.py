"""The sets are data: what they name exists, and what they are for holds."""

from __future__ import annotations

from argus_edge.evaluate.perturb import IMAGE_PERTURBATIONS, PERTURBATION_SETS, SEVERITIES, TEXT_PERTURBATIONS

REGISTRIES = {"image": IMAGE_PERTURBATIONS, "text": TEXT_PERTURBATIONS}


def test_every_name_is_registered_and_every_severity_exists() -> None:
    assert set(PERTURBATION_SETS) == {"quick", "standard", "full"}
    for lines in PERTURBATION_SETS.values():
        for line in lines:
            assert line.name in REGISTRIES[line.modality]
            assert set(line.severities) <= set(SEVERITIES)
        assert len({line.name for line in lines}) == len(lines)


def test_full_is_everything() -> None:
    full = {(line.modality, line.name): line.severities for line in PERTURBATION_SETS["full"]}
    everything = {(modality, name) for modality, registry in REGISTRIES.items() for name in registry}
    assert set(full) == everything
    assert set(full.values()) == {SEVERITIES}


def test_the_sets_grow() -> None:
    pairs = {
        name: {(line.name, severity) for line in lines for severity in line.severities}
        for name, lines in PERTURBATION_SETS.items()
    }
    assert pairs["quick"] < pairs["standard"] < pairs["full"]
    assert [len(pairs[name]) for name in ("quick", "standard", "full")] == [12, 75, 145], "as sets.yaml says"


def test_every_perturbation_can_be_imported() -> None:
    for registry in REGISTRIES.values():
        for name in registry:
            assert callable(registry[name])
            assert registry[name].__name__ == name

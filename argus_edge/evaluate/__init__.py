"""Capability and robustness on the host: models, datasets, tasks, metrics, perturbations, runner."""

"""Exporters: heavy host code that turns a model into a checked bundle."""

"""Conformal intervals for a VLM judge's scores."""

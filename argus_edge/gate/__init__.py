"""Budgets, verdicts, sizing."""

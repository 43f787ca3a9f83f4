"""Data: devices, models, budgets, weights."""

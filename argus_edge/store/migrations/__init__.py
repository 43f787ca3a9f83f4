"""Alembic's migrations of the store, oldest first in ``versions``."""

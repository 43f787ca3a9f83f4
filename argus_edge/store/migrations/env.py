"""Alembic's entry: migrates over the connection that :mod:`argus_edge.store.migrate` hands over."""

from alembic import context

from argus_edge.store.models import Base

connection = context.config.attributes["connection"]
# SQLite cannot alter a column in place: batch mode rebuilds the table.
context.configure(connection=connection, target_metadata=Base.metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()

"""Which matrix a run belongs to, and which of its cells it is."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

COLUMNS = {"batch": 40, "cell": 64}


def upgrade() -> None:
    """Add the columns and the index by which a matrix is taken up again."""
    # SQLite does not roll a table back: a migration that was killed half-way must be able to go on.
    present = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("runs")}
    for name, length in COLUMNS.items():
        if name not in present:
            op.add_column("runs", sa.Column(name, sa.String(length)))
    op.create_index("ix_runs_cell", "runs", ["cell"], if_not_exists=True)


def downgrade() -> None:
    """Drop them."""
    op.drop_index("ix_runs_cell", "runs")
    for name in COLUMNS:
        op.drop_column("runs", name)

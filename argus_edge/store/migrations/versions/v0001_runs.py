"""The table of runs."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the table and its indices."""
    op.create_table(
        "runs",
        sa.Column("id", sa.String(80), primary_key=True),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("state", sa.String(32), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended", sa.DateTime(timezone=True)),
        sa.Column("device", sa.String(64), nullable=False),
        sa.Column("profile", sa.String(64), nullable=False),
        sa.Column("model", sa.String(256), nullable=False),
        sa.Column("model_sha256", sa.String(64)),
        sa.Column("scenario", sa.String(32), nullable=False),
        sa.Column("valid", sa.Boolean()),
        sa.Column("p50_s", sa.Float()),
        sa.Column("error", sa.Text()),
        sa.Column("entry", sa.Text(), nullable=False),
        sa.Column("context", sa.Text(), nullable=False),
        sa.Column("report", sa.LargeBinary()),
        sa.Column("report_sha256", sa.String(64)),
        # SQLite does not roll a table back: a first migration that was killed half-way must be able to go on.
        if_not_exists=True,
    )
    op.create_index("ix_runs_created", "runs", ["created"], if_not_exists=True)
    op.create_index("ix_runs_device_model", "runs", ["device", "model"], if_not_exists=True)


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("runs")

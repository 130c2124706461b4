"""Goal hashes, and events by time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table and the index."""
    op.create_table(
        "goals",
        sa.Column("namespace", sa.Text(), primary_key=True),
        sa.Column("task_id", sa.Text(), primary_key=True),
        sa.Column("goal_hash", sa.Text(), nullable=False),
        sa.Column("first_seen", sa.BigInteger(), nullable=False),
    )
    op.create_index("events_happened_at", "events", ["happened_at"])

"""What is left of an erased record tells who may still hear that it was erased."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Records that were erased before have no name: keys that may read all records hear of them."""
    op.add_column("seals", sa.Column("caller", sa.Text()))
    named = sa.text("caller IS NOT NULL")
    op.create_index("seals_caller", "seals", ["caller"], sqlite_where=named, postgresql_where=named)

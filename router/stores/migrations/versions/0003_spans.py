"""The events of a span may share a row; the tables stay as they are, but older releases cannot read such rows."""

from __future__ import annotations

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing to do: rows that hold one event are read as before."""

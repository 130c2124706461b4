"""The first tables: cards, vectors, keys, policies, decisions, events, meta."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_SEQUENCE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create them."""
    op.create_table(
        "cards",
        sa.Column("namespace", sa.Text(), primary_key=True),
        sa.Column("agent_id", sa.Text(), primary_key=True),
        sa.Column("version", sa.Text(), primary_key=True),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "vectors",
        sa.Column("encoder_id", sa.Text(), primary_key=True),
        sa.Column("digest", sa.Text(), primary_key=True),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.Column("unknown_share", sa.Float(), nullable=False),
    )
    op.create_table(
        "policies",
        sa.Column("generation", _SEQUENCE, primary_key=True, autoincrement=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "meta",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("value", sa.Text(), nullable=False),
    )
    _create_keys()
    _create_records()


def _create_keys() -> None:
    op.create_table(
        "keys",
        sa.Column("key_id", sa.Text(), primary_key=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("secret_sha256", sa.Text(), nullable=False),
        sa.Column("permissions", sa.Text(), nullable=False),
        sa.Column("namespaces", sa.Text()),
        sa.Column("callers", sa.Text()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger()),
    )
    valid = sa.text("revoked_at IS NULL")
    op.create_index("keys_valid_name", "keys", ["name"], unique=True, sqlite_where=valid, postgresql_where=valid)


def _create_records() -> None:
    op.create_table(
        "decisions",
        sa.Column("decision_id", sa.Text(), primary_key=True),
        sa.Column("trace_id", sa.Text(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("intent", sa.Text()),
        sa.Column("agent_id", sa.Text()),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("inputs", sa.Text(), nullable=False),
        sa.Column("happened_at", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "events",
        sa.Column("sequence", _SEQUENCE, primary_key=True),
        sa.Column("trace_id", sa.Text(), nullable=False),
        sa.Column("span_id", sa.Text(), nullable=False),
        sa.Column("parent_span_id", sa.Text()),
        sa.Column("node_id", sa.Text(), nullable=False),
        sa.Column("event_type", sa.Text(), nullable=False),
        sa.Column("decision", sa.Text()),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("cost_tokens", sa.BigInteger(), nullable=False),
        sa.Column("latency_ms", sa.Float(), nullable=False),
        sa.Column("happened_at", sa.BigInteger(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("events_trace_id", "events", ["trace_id"])

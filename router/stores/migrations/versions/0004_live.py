"""Outcomes, usage, tickets of the degrade queue, repeated requests, heartbeats."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_SEQUENCE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create them."""
    _create_outcomes()
    _create_tickets()
    op.create_table(
        "repeats",
        sa.Column("caller", sa.Text(), primary_key=True),
        sa.Column("idempotency_key", sa.Text(), primary_key=True),
        sa.Column("body_sha256", sa.Text(), nullable=False),
        sa.Column("decision_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
    )
    op.create_index("repeats_created_at", "repeats", ["created_at"])
    op.create_table(
        "heartbeats",
        sa.Column("namespace", sa.Text(), primary_key=True),
        sa.Column("agent_id", sa.Text(), primary_key=True),
        sa.Column("version", sa.Text(), primary_key=True),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("happened_at", sa.BigInteger(), nullable=False),
    )


def _create_outcomes() -> None:
    op.create_table(
        "outcomes",
        sa.Column("sequence", _SEQUENCE, primary_key=True),
        sa.Column("decision_id", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("idempotency_key", sa.Text()),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("charged", sa.Text(), nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("outcomes_decision_id", "outcomes", ["decision_id"])
    op.create_index("outcomes_caller", "outcomes", ["caller"])
    op.create_table(
        "usage",
        sa.Column("hour", sa.BigInteger(), primary_key=True),
        sa.Column("caller", sa.Text(), primary_key=True),
        sa.Column("team", sa.Text(), primary_key=True),
        sa.Column("namespace", sa.Text(), primary_key=True),
        sa.Column("agent_id", sa.Text(), primary_key=True),
        sa.Column("n_decisions", sa.BigInteger(), nullable=False),
        sa.Column("n_calls", sa.BigInteger(), nullable=False),
        sa.Column("n_succeeded", sa.BigInteger(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost_usd", sa.Float(), nullable=False),
        sa.Column("n_latencies", sa.BigInteger(), nullable=False),
        sa.Column("latency_ms", sa.Float(), nullable=False),
    )


def _create_tickets() -> None:
    op.create_table(
        "tickets",
        sa.Column("ticket", sa.Text(), primary_key=True),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("intent", sa.Text(), nullable=False),
        sa.Column("decision_id", sa.Text(), nullable=False),
        sa.Column("trace_id", sa.Text(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("n_claims", sa.Integer(), nullable=False),
        sa.Column("claim_id", sa.Text()),
        sa.Column("claimed_by", sa.Text()),
        sa.Column("claimed_until", sa.BigInteger()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("settled_at", sa.BigInteger()),
        sa.Column("note", sa.Text()),
    )
    op.create_index("tickets_open", "tickets", ["state", "namespace", "created_at"])

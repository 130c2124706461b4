"""Seals, generations, weights, reviews, promotions; whom a decision was for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_SEQUENCE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create them, and tell of the decisions there are whom they were for."""
    op.add_column("decisions", sa.Column("session_id", sa.Text()))
    op.add_column("decisions", sa.Column("asker", sa.Text(), nullable=False, server_default=""))
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            "UPDATE decisions SET session_id = json_extract(request, '$.caller.session_id'), "
            "asker = coalesce(json_extract(request, '$.caller.agent_id'), caller)"
        )
    else:
        op.execute(
            "UPDATE decisions SET session_id = request::json #>> '{caller,session_id}', "
            "asker = coalesce(request::json #>> '{caller,agent_id}', caller)"
        )
    op.create_index("decisions_happened_at", "decisions", ["happened_at"])
    op.create_index("decisions_session_id", "decisions", ["session_id"])
    op.create_index("decisions_asker", "decisions", ["asker"])
    op.create_index("decisions_caller", "decisions", ["caller"])
    op.add_column("outcomes", sa.Column("learnt", sa.Text()))
    op.create_index("outcomes_received_at", "outcomes", ["received_at"])
    _create_records()
    _create_weights()
    _create_reviews()
    _create_promotions()


def _create_records() -> None:
    op.create_table(
        "seals",
        sa.Column("sequence", _SEQUENCE, primary_key=True),
        sa.Column("decision_id", sa.Text(), nullable=False),
        sa.Column("salt", sa.Text()),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("chain", sa.Text(), nullable=False),
        sa.Column("happened_at", sa.BigInteger(), nullable=False),
        sa.Column("erased_at", sa.BigInteger()),
        sqlite_autoincrement=True,
    )
    op.create_index("seals_decision_id", "seals", ["decision_id"], unique=True)
    op.create_table(
        "generations",
        sa.Column("kind", sa.Text(), primary_key=True),
        sa.Column("digest", sa.Text(), primary_key=True),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("used_at", sa.BigInteger(), nullable=False),
    )


def _create_weights() -> None:
    op.create_table(
        "weights",
        sa.Column("namespace", sa.Text(), primary_key=True),
        sa.Column("agent_id", sa.Text(), primary_key=True),
        sa.Column("version", sa.Text(), primary_key=True),
        sa.Column("intent", sa.Text(), primary_key=True),
        sa.Column("caller", sa.Text(), primary_key=True),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.Column("s", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "learner",
        sa.Column("namespace", sa.Text(), primary_key=True),
        sa.Column("agent_id", sa.Text(), primary_key=True),
        sa.Column("version", sa.Text(), primary_key=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "weight_snapshots",
        sa.Column("version", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
    )


def _create_reviews() -> None:
    op.create_table(
        "reviews",
        sa.Column("review_id", sa.Text(), primary_key=True),
        sa.Column("decision_id", sa.Text(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("text", sa.Text()),
        sa.Column("intent", sa.Text()),
        sa.Column("correct_intent", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False, server_default="waiting"),
        sa.Column("decided_at", sa.BigInteger()),
        sa.Column("decided_by", sa.Text()),
    )
    op.create_index("reviews_state", "reviews", ["state", "created_at"])
    op.create_index("reviews_decision_id", "reviews", ["decision_id"])
    op.create_index("reviews_caller", "reviews", ["caller", "state"])
    op.create_index("reviews_correct_intent", "reviews", ["correct_intent", "namespace"])


def _create_promotions() -> None:
    op.create_table(
        "promotions",
        sa.Column("promotion_id", _SEQUENCE, primary_key=True),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "shadows",
        sa.Column("decision_id", sa.Text(), primary_key=True),
        sa.Column("promotion_id", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("happened_at", sa.BigInteger(), nullable=False),
    )
    op.create_index("shadows_promotion_id", "shadows", ["promotion_id", "happened_at"])

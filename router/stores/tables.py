"""The tables as they are at the newest schema revision; `migrations/` leads there."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Index, Integer, LargeBinary, MetaData, Table, Text, text

REVISION = "0006"
"""The newest schema revision, kept here too so that opening a current store needs no Alembic."""

metadata = MetaData()

_SEQUENCE = BigInteger().with_variant(Integer(), "sqlite")

cards = Table(
    "cards",
    metadata,
    Column("namespace", Text, primary_key=True),
    Column("agent_id", Text, primary_key=True),
    Column("version", Text, primary_key=True),
    Column("source", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
)

vectors = Table(
    "vectors",
    metadata,
    Column("encoder_id", Text, primary_key=True),
    Column("digest", Text, primary_key=True),
    Column("vector", LargeBinary, nullable=False),
    Column("unknown_share", Float, nullable=False),
)

keys = Table(
    "keys",
    metadata,
    Column("key_id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("secret_sha256", Text, nullable=False),
    Column("permissions", Text, nullable=False),
    Column("namespaces", Text),
    Column("callers", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("revoked_at", BigInteger),
)
Index(
    "keys_valid_name",
    keys.c.name,
    unique=True,
    sqlite_where=text("revoked_at IS NULL"),
    postgresql_where=text("revoked_at IS NULL"),
)

policies = Table(
    "policies",
    metadata,
    Column("generation", _SEQUENCE, primary_key=True, autoincrement=False),
    Column("body", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

decisions = Table(
    "decisions",
    metadata,
    Column("decision_id", Text, primary_key=True),
    Column("trace_id", Text, nullable=False),
    Column("caller", Text, nullable=False),
    Column("namespace", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("intent", Text),
    Column("agent_id", Text),
    Column("request", Text, nullable=False),
    Column("answer", Text, nullable=False),
    Column("inputs", Text, nullable=False),
    Column("happened_at", BigInteger, nullable=False),
    Column("session_id", Text),
    Column("asker", Text, nullable=False, server_default=""),
    Index("decisions_happened_at", "happened_at"),
    Index("decisions_session_id", "session_id"),
    Index("decisions_asker", "asker"),
    Index("decisions_caller", "caller"),
)

seals = Table(
    "seals",
    metadata,
    Column("sequence", _SEQUENCE, primary_key=True),
    Column("decision_id", Text, nullable=False),
    Column("salt", Text),
    Column("digest", Text, nullable=False),
    Column("chain", Text, nullable=False),
    Column("happened_at", BigInteger, nullable=False),
    Column("erased_at", BigInteger),
    Column("caller", Text),
    Index("seals_decision_id", "decision_id", unique=True),
    Index(
        "seals_caller", "caller", sqlite_where=text("caller IS NOT NULL"), postgresql_where=text("caller IS NOT NULL")
    ),
    sqlite_autoincrement=True,
)

generations = Table(
    "generations",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("digest", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("used_at", BigInteger, nullable=False),
)

weights = Table(
    "weights",
    metadata,
    Column("namespace", Text, primary_key=True),
    Column("agent_id", Text, primary_key=True),
    Column("version", Text, primary_key=True),
    Column("intent", Text, primary_key=True),
    Column("caller", Text, primary_key=True),
    Column("n", BigInteger, nullable=False),
    Column("s", BigInteger, nullable=False),
)

learner = Table(
    "learner",
    metadata,
    Column("namespace", Text, primary_key=True),
    Column("agent_id", Text, primary_key=True),
    Column("version", Text, primary_key=True),
    Column("body", Text, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
)

weight_snapshots = Table(
    "weight_snapshots",
    metadata,
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    Column("reason", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

reviews = Table(
    "reviews",
    metadata,
    Column("review_id", Text, primary_key=True),
    Column("decision_id", Text, nullable=False),
    Column("caller", Text, nullable=False),
    Column("namespace", Text, nullable=False),
    Column("text", Text),
    Column("intent", Text),
    Column("correct_intent", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("state", Text, nullable=False, server_default="waiting"),
    Column("decided_at", BigInteger),
    Column("decided_by", Text),
    Index("reviews_state", "state", "created_at"),
    Index("reviews_decision_id", "decision_id"),
    Index("reviews_caller", "caller", "state"),
    Index("reviews_correct_intent", "correct_intent", "namespace"),
)

promotions = Table(
    "promotions",
    metadata,
    Column("promotion_id", _SEQUENCE, primary_key=True),
    Column("folder", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("stage", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    sqlite_autoincrement=True,
)

shadows = Table(
    "shadows",
    metadata,
    Column("decision_id", Text, primary_key=True),
    Column("promotion_id", BigInteger, nullable=False),
    Column("body", Text, nullable=False),
    Column("happened_at", BigInteger, nullable=False),
    Index("shadows_promotion_id", "promotion_id", "happened_at"),
)

events = Table(
    "events",
    metadata,
    Column("sequence", _SEQUENCE, primary_key=True),
    Column("trace_id", Text, nullable=False),
    Column("span_id", Text, nullable=False),
    Column("parent_span_id", Text),
    Column("node_id", Text, nullable=False),
    Column("event_type", Text, nullable=False),
    Column("decision", Text),
    Column("payload", Text, nullable=False),
    Column("cost_tokens", BigInteger, nullable=False),
    Column("latency_ms", Float, nullable=False),
    Column("happened_at", BigInteger, nullable=False),
    Column("caller", Text, nullable=False),
    Index("events_trace_id", "trace_id"),
    Index("events_happened_at", "happened_at"),
    # a sequence number is never given twice, not even after the newest rows were erased: readers page by it
    sqlite_autoincrement=True,
)

goals = Table(
    "goals",
    metadata,
    Column("namespace", Text, primary_key=True),
    Column("task_id", Text, primary_key=True),
    Column("goal_hash", Text, nullable=False),
    Column("first_seen", BigInteger, nullable=False),
)

outcomes = Table(
    "outcomes",
    metadata,
    Column("sequence", _SEQUENCE, primary_key=True),
    Column("decision_id", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("idempotency_key", Text),
    Column("caller", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("charged", Text, nullable=False),
    Column("received_at", BigInteger, nullable=False),
    Column("learnt", Text),
    Index("outcomes_decision_id", "decision_id"),
    Index("outcomes_caller", "caller"),
    Index("outcomes_received_at", "received_at"),
    sqlite_autoincrement=True,
)

usage = Table(
    "usage",
    metadata,
    Column("hour", BigInteger, primary_key=True),
    Column("caller", Text, primary_key=True),
    Column("team", Text, primary_key=True),
    Column("namespace", Text, primary_key=True),
    Column("agent_id", Text, primary_key=True),
    Column("n_decisions", BigInteger, nullable=False),
    Column("n_calls", BigInteger, nullable=False),
    Column("n_succeeded", BigInteger, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    Column("cost_usd", Float, nullable=False),
    Column("n_latencies", BigInteger, nullable=False),
    Column("latency_ms", Float, nullable=False),
)

tickets = Table(
    "tickets",
    metadata,
    Column("ticket", Text, primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("intent", Text, nullable=False),
    Column("decision_id", Text, nullable=False),
    Column("trace_id", Text, nullable=False),
    Column("caller", Text, nullable=False),
    Column("request", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("n_claims", Integer, nullable=False),
    Column("claim_id", Text),
    Column("claimed_by", Text),
    Column("claimed_until", BigInteger),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("settled_at", BigInteger),
    Column("note", Text),
    Index("tickets_open", "state", "namespace", "created_at"),
)

repeats = Table(
    "repeats",
    metadata,
    Column("caller", Text, primary_key=True),
    Column("idempotency_key", Text, primary_key=True),
    Column("body_sha256", Text, nullable=False),
    Column("decision_id", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Index("repeats_created_at", "created_at"),
)

heartbeats = Table(
    "heartbeats",
    metadata,
    Column("namespace", Text, primary_key=True),
    Column("agent_id", Text, primary_key=True),
    Column("version", Text, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("happened_at", BigInteger, nullable=False),
)

meta = Table(
    "meta",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

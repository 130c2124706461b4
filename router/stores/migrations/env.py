"""What Alembic runs: the revisions, inside the transaction that `router.stores.sqlite` holds."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"])
with context.begin_transaction():
    context.run_migrations()

"""How tests/data/store_0001.db was made: `python -m tests.router.stores.make_store_0001`.

It stays as it is: it stands for the files that the first release wrote.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, text

import router.stores

STORE_0001 = Path(__file__).parents[2] / "data" / "store_0001.db"

_ROWS = (
    "INSERT INTO cards VALUES ('default', 'orders', '1.0.0', 'api', "
    """'{"agent_id":"orders","version":"1.0.0","capabilities":[{"intent":"order_status"}]}', 1700000000000)""",
    "INSERT INTO keys VALUES ('aaaaaaaaaaaaaaaa', 'shop', "
    "'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', "
    """'["user:erase"]', NULL, NULL, 1700000000000, NULL)""",
    "INSERT INTO policies VALUES (1, '{}', 1700000000000)",
    "INSERT INTO decisions VALUES ('d1', 't1', '', 'default', 'invoke', 'selected', 'order_status', 'orders', "
    "'{}', '{}', '{}', 1700000000000)",
    "INSERT INTO events VALUES (1, 't1', 's1', NULL, 'router', 'route', 'invoke', '{}', 0, 1.5, 1700000000000, '')",
    "INSERT INTO meta VALUES ('created_at', '1700000000000')",
)


def make(path: Path) -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(router.stores.__file__).parent / "migrations"))
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        for row in _ROWS:
            connection.execute(text(row.replace(":", "\\:")))
    engine.dispose()


if __name__ == "__main__":
    make(STORE_0001)

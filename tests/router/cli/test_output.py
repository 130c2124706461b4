from __future__ import annotations

import subprocess
import sys

import pytest

from router.cli.output import table
from router.cli.progress import counting
from router.cli.training import bar

ID = "01a22dd98b28f0f8baaf2b256cd1819c"
TABLE = f"""from router.cli.output import table
table(["review_id", "state", "namespace", "correct_intent", "text"],
      [["{ID}", "waiting", "prod/commerce/emea", "change_delivery_address", "where is my parcel " * 3]])"""


def test_a_table_in_a_pipe_has_each_cell_on_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    text = "when will the refund for my chair arrive " * 5
    table(["review_id", "state", "text"], [[ID, "waiting", text]])

    _, head, _, row, _ = capsys.readouterr().out.splitlines()
    assert head.split() == ["┃", "review_id", "┃", "state", "┃", "text", "┃"]
    assert [cell.strip() for cell in row.strip("│").split("│")] == [ID, "waiting", text.strip()]


def test_a_narrow_terminal_breaks_cells_and_loses_nothing_of_them() -> None:
    shown = subprocess.run(
        [sys.executable, "-c", TABLE],
        env={"COLUMNS": "80", "FORCE_COLOR": "1", "TERM": "dumb"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert "…" not in shown
    assert ID in shown
    rows = [line.split("│")[1:-1] for line in shown.splitlines() if line.startswith("│")]
    assert "".join(row[3].strip() for row in rows) == "change_delivery_address"
    assert "".join(row[2].strip() for row in rows) == "prod/commerce/emea"


def test_progress_is_a_line_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with counting("checking lines") as told:
        told(1000)
    with bar("embedding") as shown:
        shown(1, 2)

    assert capsys.readouterr() == ("", "checking lines …\nembedding …\n")

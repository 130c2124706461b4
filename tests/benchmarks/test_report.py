import json
from pathlib import Path

import pytest

from benchmarks.machine import Machine, cpu_model
from benchmarks.report import Goal, Quantiles, Report


def test_a_goal_says_whether_it_is_met(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report("title")
    report.section("part")
    report.add("speed", 900.0, "requests/s", Goal(">=", 800))
    report.add_latency("latency", Quantiles.of([[1.0, 2.0]]), Goal("<=", 1.0))
    report.close()
    printed = capsys.readouterr().out
    assert "[goal >= 800: met]" in printed
    assert "[goal p50 <= 1: NOT met]" in printed
    assert "1 of 2 goals met" in printed


def test_json_is_one_object_and_all_that_is_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report("title", as_json=True)
    report.section("part")
    report.add("share", 0.5, "%", Goal(">", 0.6))
    report.close()
    printed = json.loads(capsys.readouterr().out)
    assert printed["machine"]["n_cores"] >= 1
    assert printed["figures"] == [
        {
            "section": "part",
            "name": "share",
            "value": 0.5,
            "unit": "%",
            "goals": [{"goal": "> 0.6", "met": False}],
        }
    ]


def test_quantiles_are_medians_over_the_repeats() -> None:
    found = Quantiles.of([[1.0] * 3, [9.0] * 3, [2.0] * 3])
    assert (found.p50, found.best_p50, found.n, found.n_repeats) == (2.0, 1.0, 9, 3)


def test_the_processor_is_named_as_the_system_names_it(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: Abacus 9\n")
    assert cpu_model(tmp_path / "cpuinfo") == "Abacus 9"
    assert cpu_model(tmp_path / "none")


def test_the_machine_tells_its_versions() -> None:
    assert Machine.here().versions["pydantic"] != "-"


def test_a_figure_of_several_seeds_is_their_mean_with_the_least_and_the_most(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = Report("title")
    report.section("part")
    report.add_spread("share", [0.5, 0.7, 0.6], "%", Goal(">=", 0.55), "3 rows")
    report.add_spread("alone", [2.0], "s")
    printed = capsys.readouterr().out
    assert "60.00 %  [goal >= 0.55: met]  (50.00 % to 70.00 % over 3 seeds; 3 rows)" in printed
    assert "(one seed)" in printed
    assert report.figures[0]["seeds"] == [0.5, 0.7, 0.6]


def test_figures_become_tables_of_their_sections() -> None:
    report = Report("title", as_json=True)
    report.section("first")
    report.add_spread("  share", [0.5, 0.7], "%", Goal(">=", 0.965))
    report.section("second")
    report.add_latency("a reading", Quantiles.of([[1.0, 1.0]]), Goal("<=", 0.5), Goal("<=", 3))
    rows = [line for line in report.markdown().splitlines() if line.startswith(("| ", "**"))]
    assert rows == [
        "**first**",
        "| | figure | goal |",
        "| share | 60.00 % (50.00 % to 70.00 %) | >= 96.5 %: NOT met |",
        "**second**",
        "| | figure | goal |",
        "| a reading | p50 1.000, p99 1.000 ms | <= 0.5: NOT met, <= 3: met |",
    ]

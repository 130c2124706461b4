from __future__ import annotations

from router.readiness import Readiness


def test_it_is_not_ready_until_it_is_set() -> None:
    readiness = Readiness()
    assert not readiness.ready.is_set()
    readiness.ready.set()
    assert readiness.ready.is_set()


def test_the_last_report_of_a_part_stands_until_it_is_cleared() -> None:
    readiness = Readiness()
    readiness.report("cards", "line 3")
    readiness.report("cards", "line 4")
    readiness.report("policy", "not a mapping")
    assert readiness.problems == {"cards": "line 4", "policy": "not a mapping"}
    readiness.clear("cards")
    readiness.clear("cards")
    assert readiness.problems == {"policy": "not a mapping"}


def test_two_services_do_not_share_their_problems() -> None:
    Readiness().report("cards", "line 3")
    assert Readiness().problems == {}

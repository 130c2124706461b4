from __future__ import annotations

from models.card import AgentCard, RateLimit
from models.live_policy import Quota
from router.live import quota_rules
from router.live.asker import Asker
from router.live.quota_rules import QuotaRules

SHOP, DESK = Asker("shop", "default"), Asker("desk", "default")


def test_a_card_that_was_replaced_has_its_own_limit() -> None:
    rules = QuotaRules([])
    old, new = (AgentCard(agent_id="a", rate_limit=RateLimit(max_calls=most)) for most in (5, 9))
    found = [[claim.max_calls for claim in rules.of_agent(SHOP, card)] for card in (old, old, new, old)]
    assert found == [[5], [5], [9], [5]]


def test_callers_and_namespaces_are_told_apart_again_and_again() -> None:
    rules = QuotaRules([Quota(caller="shop", max_calls=3), Quota(per_caller=True, namespace="eu", max_calls=4)])
    for _ in range(2):
        assert [claim.max_calls for _, claim in rules.own(SHOP)] == [3]
        assert [claim.max_calls for _, claim in rules.own(DESK)] == []
        assert [claim.max_calls for _, claim in rules.own(Asker("shop", "eu"))] == [3, 4]
        assert [claim.max_calls for _, claim in rules.own(Asker("desk", "eu"))] == [4]


def test_an_agent_is_limited_by_its_card_or_by_any_quota_of_agents() -> None:
    plain, limited = AgentCard(agent_id="a"), AgentCard(agent_id="b", rate_limit=RateLimit(max_calls=1))
    of_callers, of_agents = (
        QuotaRules([Quota(per_caller=True, max_calls=1)]),
        QuotaRules([Quota(agent="a", max_calls=1)]),
    )
    assert [of_callers.limits(plain), of_callers.limits(limited), of_agents.limits(plain)] == [False, True, True]
    assert list(of_callers.of_agent(SHOP, plain)) == []
    assert [claim.max_calls for claim in of_agents.of_agent(SHOP, plain)] == [1]


def test_what_is_kept_of_claims_is_bounded() -> None:
    rules = QuotaRules([Quota(per_caller=True, max_calls=1)])
    card = AgentCard(agent_id="b", rate_limit=RateLimit(max_calls=1))
    for number in range(quota_rules.MAX_CLAIMED + 2):
        asker = Asker(str(number), "default")
        assert len(rules.own(asker)) == len(rules.of_agent(asker, card)) == 1
    assert len(rules._own_of) == len(rules._claims) == 2

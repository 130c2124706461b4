"""Quotas against a plain list of all reservations ever made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from router.live.quotas import Claim, Quotas, Refused

EXACT = [
    Claim(("caller", "shop"), 100, 4, None),
    Claim(("caller", "shop"), 250, 7, 60),
    Claim(("agent", "a"), 100, 3, 40),
    Claim(("agent", "b"), 40, 2, None),
]
IN_PARTS = [Claim(("tokens", "shop"), 5000, None, 70), Claim(("tokens", "a"), 20_000, 20_000, 90)]
some_claims = st.lists(st.sampled_from(EXACT + IN_PARTS), min_size=1, max_size=4, unique=True)
picks = st.integers(0, 1_000_000)
tokens = st.integers(0, 30)


def until_ms(claim: Claim, at_ms: int) -> int:
    """When a call at that time leaves; the parts of a window are whole milliseconds here."""
    if claim in EXACT:
        return at_ms + claim.window_ms
    part_ms = claim.window_ms // 1000
    return (at_ms // part_ms + 1) * part_ms + claim.window_ms


@dataclass
class Reserved:
    name: str
    claims: Sequence[Claim]
    at_ms: int
    n_tokens: int
    state: str = "open"


class QuotaMachine(RuleBasedStateMachine):
    """Any order of calls while time goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.quotas = Quotas()
        self.now_ms = 0
        self.n_names = 0
        self.all: list[Reserved] = []

    def used(self, claim: Claim, at_ms: int) -> tuple[int, int]:
        counted = [
            each
            for each in self.all
            if claim in each.claims and each.state != "refunded" and until_ms(claim, each.at_ms) > at_ms
        ]
        return len(counted), sum(each.n_tokens for each in counted)

    def has_room(self, claims: Sequence[Claim], n_tokens: int, at_ms: int) -> bool:
        for claim in claims:
            n_calls, n_used = self.used(claim, at_ms)
            if claim.max_calls is not None and n_calls >= claim.max_calls:
                return False
            if claim.max_tokens is not None and n_used + n_tokens > claim.max_tokens:
                return False
        return True

    def first_room_ms(self, claims: Sequence[Claim], n_tokens: int) -> int:
        instants = {until_ms(claim, each.at_ms) for each in self.all for claim in each.claims}
        later = sorted(instant for instant in instants if instant > self.now_ms)
        return next(instant for instant in later if self.has_room(claims, n_tokens, instant))

    def reserve(self, claims: Sequence[Claim], n_tokens: int) -> None:
        self.n_names += 1
        name = f"r{self.n_names}"
        peeked = self.quotas.peek(claims, n_tokens, self.now_ms)
        refused = self.quotas.reserve(name, claims, n_tokens, self.now_ms)
        assert refused == peeked
        if self.has_room(claims, n_tokens, self.now_ms):
            assert refused is None
            self.all.append(Reserved(name, claims, self.now_ms, n_tokens))
        else:
            wait_ms = self.first_room_ms(claims, n_tokens) - self.now_ms
            assert refused is not None
            assert refused.retry_after_ms == wait_ms
            assert refused.claim in claims
            assert not self.has_room([refused.claim], n_tokens, self.now_ms + wait_ms - 1)

    @rule(claims=some_claims, n_tokens=tokens, n=st.integers(1, 6))
    def reserve_at_once(self, claims: list[Claim], n_tokens: int, n: int) -> None:
        for _ in range(n):
            self.reserve(claims, n_tokens)

    @rule(pick=picks, n_tokens=st.integers(0, 100))
    def settle(self, pick: int, n_tokens: int) -> None:
        if self.all:
            each = self.all[pick % len(self.all)]
            is_settled = self.quotas.settle(each.name, n_tokens, self.now_ms)
            if self.is_in_a_window(each):
                assert is_settled is (each.state == "open")
            if is_settled:
                each.state, each.n_tokens = "settled", n_tokens

    @rule(pick=picks, n_tokens=st.integers(0, 100))
    def amend(self, pick: int, n_tokens: int) -> None:
        if self.all:
            each = self.all[pick % len(self.all)]
            is_amended = self.quotas.amend(each.name, n_tokens, self.now_ms)
            assert is_amended is (each.state == "settled" and self.is_in_a_window(each))
            if is_amended:
                each.n_tokens = n_tokens

    @rule(pick=picks)
    def refund(self, pick: int) -> None:
        if self.all:
            each = self.all[pick % len(self.all)]
            is_refunded = self.quotas.refund(each.name)
            if self.is_in_a_window(each):
                assert is_refunded is (each.state == "open")
            if is_refunded:
                each.state = "refunded"

    @rule(ms=st.integers(0, 120))
    def wait(self, ms: int) -> None:
        self.now_ms += ms

    @rule()
    def wait_long(self) -> None:
        self.now_ms += 5000

    @rule()
    def sweep(self) -> None:
        self.quotas.sweep(self.now_ms)

    def is_in_a_window(self, each: Reserved) -> bool:
        return any(until_ms(claim, each.at_ms) > self.now_ms for claim in each.claims)

    @invariant()
    def sums_agree(self) -> None:
        for claim in EXACT + IN_PARTS:
            usage = self.quotas.usage(claim.key, self.now_ms)
            of_length = [(each.n_calls, each.n_tokens) for each in usage if each.window_ms == claim.window_ms]
            n_calls, n_tokens = self.used(claim, self.now_ms)
            assert of_length == ([(n_calls, n_tokens)] if n_calls else [])

    def teardown(self) -> None:
        for nth, each in enumerate(self.all):
            if nth % 2:
                self.refund(nth)
            else:
                self.quotas.settle(each.name, 5, self.now_ms)
        self.now_ms += 30_000
        assert [self.quotas.usage(claim.key, self.now_ms) for claim in EXACT + IN_PARTS] == [[]] * 6
        self.quotas.sweep(self.now_ms)
        assert (self.quotas.n_windows, self.quotas.n_open) == (0, 0)


QuotaMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
test_quotas_are_what_a_list_of_all_reservations_says = QuotaMachine.TestCase


@settings(max_examples=100, deadline=None)
@given(
    n_used=st.integers(0, 30),
    n=st.integers(0, 60),
    max_calls=st.integers(0, 30),
    n_tokens=st.integers(1, 50),
    max_tokens=st.none() | st.integers(0, 1000),
    data=st.data(),
)
def test_of_any_number_at_one_instant_exactly_the_quota_passes(
    n_used: int, n: int, max_calls: int, n_tokens: int, max_tokens: int | None, data: st.DataObject
) -> None:
    quotas, claim = Quotas(), Claim(("caller", "shop"), 1000, max_calls, max_tokens)
    before = [name for name in range(n_used) if quotas.reserve(f"b{name}", [claim], n_tokens, 10.0) is None]
    n_refunded = data.draw(st.integers(0, len(before)))
    for name in before[:n_refunded]:
        assert quotas.refund(f"b{name}")

    answers = [quotas.reserve(f"r{name}", [claim], n_tokens, 500.0) for name in range(n)]

    most = max_calls if max_tokens is None else min(max_calls, max_tokens // n_tokens)
    n_passed = min(n, most - (len(before) - n_refunded))
    assert answers[:n_passed] == [None] * n_passed
    assert all(isinstance(answer, Refused) for answer in answers[n_passed:])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=150))
def test_no_window_takes_in_more_than_the_quota(arrivals: list[tuple[int, int]]) -> None:
    exact, parted = Claim(("exact",), 300, 5, 50), Claim(("parted",), 300, None, 50)
    for claim in (exact, parted):
        quotas, now_ms = Quotas(), 0
        passed: list[tuple[int, int]] = []
        for nth, (wait_ms, n_tokens) in enumerate(arrivals):
            now_ms += wait_ms
            if quotas.reserve(str(nth), [claim], n_tokens, now_ms) is None:
                passed.append((now_ms, n_tokens))
        for start_ms, _ in passed:
            inside = [n_tokens for at_ms, n_tokens in passed if start_ms <= at_ms < start_ms + 300]
            assert sum(inside) <= 50
            assert claim.max_calls is None or len(inside) <= claim.max_calls

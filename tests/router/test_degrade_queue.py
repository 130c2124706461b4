from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule

from models.decision import QueueTicket
from models.errors import ConflictError, ForbiddenError, NotFoundError
from models.key import ADMIN, QUEUE, READ
from models.live_policy import QueuePolicy
from models.policy import NamespacePolicy, Policy
from models.ports import TicketStore
from models.queue import Claimed, ClaimRequest, SettleRequest, TicketFilter, TicketState
from router.degrade_queue import SWEEP_S, DegradeQueue
from router.permit import OPEN, Grants
from router.stores.open import open_store
from router.wire import dumps
from tests.builders import START_MS, FakeClock
from tests.service_builders import key_grants

POLICY = QueuePolicy(max_tickets=4, ttl_ms=10_000, claim_ms=1000, max_claims=2)
DAY_MS = 86_400_000


class Desk:
    """A queue over a real store, a clock that stands still and ids that count."""

    def __init__(self, store: TicketStore) -> None:
        self.clock = FakeClock()
        self.policy = Policy(defaults=NamespacePolicy(queue=POLICY))
        self.naps: list[float] = []
        self.n_naps = 0
        self._numbers = count(1)
        self.use(store)

    def use(self, store: TicketStore) -> None:
        """Go on with another store."""
        self.store = store
        self.queue = DegradeQueue(
            store, lambda: self.policy, self.clock, lambda: f"{next(self._numbers):08}", sleep=self._slept
        )

    async def _slept(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.clock.advance(seconds * 1000)
        if len(self.naps) >= self.n_naps:
            raise asyncio.CancelledError

    async def put(self, namespace: str = "default", caller: str = "shop", **fields: Any) -> QueueTicket | None:
        values: dict[str, Any] = {
            "request_json": '{"intent": "order_status"}',
            "intent": "order_status",
            "decision_id": "d1",
            "trace_id": "t1",
            "expires_at": None,
            "policy": self.policy.of(namespace).queue,
            "now_ms": self.clock.now_ms(),
        }
        return await self.queue.put(**{"namespace": namespace, "caller": caller, **values, **fields})

    async def filed(self, **fields: Any) -> str:
        """The name of a new ticket."""
        made = await self.put(**fields)
        assert made is not None
        return made.ticket

    async def claim(self, grants: Grants = OPEN, **fields: Any) -> Claimed:
        return await self.queue.claim(ClaimRequest(**fields), grants)

    async def settle(self, ticket: str, claim_id: str, status: Any = "settled", grants: Grants = OPEN) -> TicketState:
        return (await self.queue.settle(ticket, SettleRequest(claim_id=claim_id, status=status), grants)).state

    async def state(self, ticket: str) -> TicketState:
        return (await self.queue.get(ticket, OPEN)).state


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with open_store(f"sqlite:///{tmp_path / 'store.db'}") as store:
        yield Desk(store.tickets)


def names(claimed: Claimed) -> list[str]:
    return [each.ticket for each in claimed.tickets]


async def test_a_ticket_says_where_to_ask_and_until_when(desk: Desk) -> None:
    ticket = await desk.put()
    assert ticket == QueueTicket(ticket="00000001", url="/queue/00000001", expires_at=int(START_MS) + 10_000)
    shown = await desk.queue.get("00000001", OPEN)
    assert shown.members() == {
        "ticket": "00000001", "url": "/queue/00000001", "state": TicketState.WAITING, "namespace": "default",
        "intent": "order_status", "decision_id": "d1", "trace_id": "t1", "caller": "shop", "n_claims": 0,
        "claimed_by": None, "claimed_until": None, "created_at": int(START_MS), "expires_at": int(START_MS) + 10_000,
        "settled_at": None, "note": None,
    }  # fmt: skip


@pytest.mark.parametrize(("in_ms", "wanted_ms"), [(4000.9, 4000), (10_000, 10_000), (99_999, 10_000)])
async def test_a_ticket_expires_with_the_deadline_of_its_request_if_that_is_earlier(
    desk: Desk, in_ms: float, wanted_ms: int
) -> None:
    ticket = await desk.put(expires_at=START_MS + in_ms)
    assert ticket is not None
    assert ticket.expires_at == START_MS + wanted_ms


async def test_a_deadline_that_is_over_and_a_full_namespace_get_no_ticket(desk: Desk) -> None:
    assert await desk.put(expires_at=START_MS) is None
    made = [await desk.put() for _ in range(5)]
    assert [each is None for each in made] == [False, False, False, False, True]
    assert await desk.put("other") is not None


async def test_a_worker_gets_the_request_as_it_came(desk: Desk) -> None:
    text = '{"intent":"refund","payload":{"a":0.1234567890123456789,"n":9007199254740993},"utterance":"</script>退款"}'
    await desk.put(request_json=text)
    claimed = await desk.claim(key_grants(QUEUE, caller="worker"))
    assert (claimed.claimed_until, claimed.tickets[0].claimed_by) == (START_MS + 1000, "worker")
    body = dumps(claimed).decode()
    assert f'"request":{text}' in body
    assert json.loads(body)["tickets"][0]["state"] == "claimed"


async def test_a_claim_holds_for_the_time_asked_for_or_that_of_the_policy(desk: Desk) -> None:
    first = await desk.filed()
    assert names(await desk.claim(claim_ms=50)) == [first]
    desk.clock.advance(49)
    assert names(await desk.claim()) == []
    desk.clock.advance(1)
    assert names(await desk.claim()) == [first]
    desk.clock.advance(999)
    assert await desk.state(first) is TicketState.CLAIMED
    desk.clock.advance(1)
    assert await desk.state(first) is TicketState.GIVEN_UP


async def test_what_ran_out_is_told_as_such_at_once_by_every_way_of_asking(desk: Desk) -> None:
    old = await desk.filed(expires_at=START_MS + 100)
    young = await desk.filed()
    desk.clock.advance(100)
    assert names(await desk.claim()) == [young]
    assert await desk.state(old) is TicketState.EXPIRED
    desk.clock.advance(1000)
    page = await desk.queue.page(TicketFilter(), OPEN)
    assert [each.state for each in page.tickets] == [TicketState.EXPIRED, TicketState.WAITING]
    assert (page.n_waiting, page.n_claimed, page.oldest_wait_ms) == (1, 0, 1100)


async def test_pages_follow_one_another_and_the_last_says_so(desk: Desk) -> None:
    made = [await desk.filed() for _ in range(4)]
    await desk.claim()
    first = await desk.queue.page(TicketFilter(), OPEN, limit=2)
    second = await desk.queue.page(TicketFilter(), OPEN, after=first.next or "", limit=2)
    assert [each.ticket for page in (first, second) for each in page.tickets] == made
    assert (first.next, second.next) == (made[1], None)
    assert [(page.n_waiting, page.n_claimed) for page in (first, second)] == [(3, 1), (3, 1)]
    claimed = await desk.queue.page(TicketFilter(state=TicketState.CLAIMED), OPEN)
    assert [each.ticket for each in claimed.tickets] == [made[0]]


async def test_nothing_waits_in_an_empty_queue(desk: Desk) -> None:
    page = await desk.queue.page(TicketFilter(), OPEN)
    assert page.members() == {"tickets": [], "n_waiting": 0, "n_claimed": 0, "oldest_wait_ms": None, "next": None}
    assert (await desk.claim(limit=10)).tickets == []


async def test_no_view_of_a_ticket_tells_the_claim(desk: Desk) -> None:
    ticket = await desk.filed()
    claim_id = (await desk.claim()).claim_id
    page = await desk.queue.page(TicketFilter(), OPEN)
    for view in (page, await desk.queue.get(ticket, OPEN)):
        assert claim_id not in dumps(view).decode()


@pytest.mark.parametrize(
    ("grants", "may_claim", "may_list", "may_see"),
    [
        (OPEN, True, True, True),
        (key_grants(QUEUE), True, False, True),
        (key_grants(READ), False, True, True),
        (key_grants(ADMIN), True, True, True),
        (key_grants("other:queue"), False, False, False),
        (key_grants(caller="shop"), False, False, True),
        (key_grants(caller=""), False, False, False),
    ],
    ids=["open", "queue", "read", "admin", "other", "owner", "nameless"],
)
async def test_who_may_do_what(desk: Desk, grants: Grants, may_claim: bool, may_list: bool, may_see: bool) -> None:
    ticket = await desk.filed()
    nameless = await desk.filed(caller="")
    claim_id = (await desk.claim(limit=2)).claim_id
    for work, may in [
        (desk.claim(grants), may_claim),
        (desk.settle(ticket, claim_id, grants=grants), may_claim),
        (desk.queue.page(TicketFilter(), grants), may_list),
    ]:
        if may:
            await work
        else:
            with pytest.raises(ForbiddenError):
                await work
    if may_see:
        assert (await desk.queue.get(ticket, grants)).ticket == ticket
    else:
        for each in (ticket, nameless):
            with pytest.raises(NotFoundError):
                await desk.queue.get(each, grants)


async def test_a_worker_that_is_bound_to_namespaces_knows_of_no_others(desk: Desk) -> None:
    bound = key_grants(QUEUE, READ, namespaces=frozenset({"here"}))
    here, there = await desk.filed(namespace="here"), await desk.filed(namespace="there")
    claim_id = (await desk.claim(namespace="there")).claim_id
    page = await desk.queue.page(TicketFilter(), bound)
    assert ([each.ticket for each in page.tickets], page.n_waiting, page.n_claimed) == ([here], 1, 0)
    assert names(await desk.claim(bound, namespace="here")) == [here]
    with pytest.raises(ForbiddenError):
        await desk.claim(bound, namespace="there")
    with pytest.raises(ForbiddenError):
        await desk.queue.page(TicketFilter(frozenset({"there"})), bound)
    for ticket in (there, "nowhere"):
        with pytest.raises(NotFoundError, match=f"there is no ticket '{ticket}'"):
            await desk.settle(ticket, claim_id, grants=bound)
        with pytest.raises(NotFoundError, match=f"there is no ticket '{ticket}'"):
            await desk.queue.get(ticket, bound)


async def test_a_changed_policy_counts_from_then_on(desk: Desk) -> None:
    ticket = await desk.filed()
    await desk.claim()
    changed = POLICY.model_copy(update={"max_claims": 1, "claim_ms": 5})
    desk.policy = Policy(namespaces={"default": NamespacePolicy(queue=changed)})
    desk.clock.advance(1000)
    assert await desk.state(ticket) is TicketState.GIVEN_UP
    await desk.filed()
    assert (await desk.claim()).claimed_until == desk.clock.now_ms() + 5


async def test_the_task_in_the_background_ends_what_ran_out_and_forgets_it_a_day_later(desk: Desk) -> None:
    tickets = [await desk.filed() for _ in range(3)]
    claim_id = (await desk.claim()).claim_id
    await desk.settle(tickets[0], claim_id)
    desk.n_naps = 4
    with pytest.raises(asyncio.CancelledError):
        await desk.queue.run()
    assert desk.naps == [SWEEP_S] * 4
    rows = await desk.store.page(TicketFilter(), "", 10)
    assert [row.state for row in rows] == [TicketState.SETTLED, TicketState.EXPIRED, TicketState.EXPIRED]
    # the first was settled at the start, the others expired ten seconds later
    desk.clock.ms = START_MS + DAY_MS
    kept = await desk.filed()
    for at_ms, left in [(0, [*tickets, kept]), (1, [*tickets[1:], kept]), (10_001, [kept])]:
        desk.clock.ms = START_MS + DAY_MS + at_ms
        desk.n_naps += 1
        with pytest.raises(asyncio.CancelledError):
            await desk.queue.run()
        assert [row.ticket for row in await desk.store.page(TicketFilter(), "", 10)] == left


async def test_while_it_runs_it_forgets_now_and_then(desk: Desk) -> None:
    ticket = await desk.filed()
    await desk.settle(ticket, (await desk.claim()).claim_id)
    desk.clock.ms = START_MS + DAY_MS
    desk.n_naps = 60
    with pytest.raises(asyncio.CancelledError):
        await desk.queue.run()
    assert await desk.state(ticket) is TicketState.SETTLED
    desk.clock.ms = START_MS + DAY_MS
    desk.n_naps += 61
    with pytest.raises(asyncio.CancelledError):
        await desk.queue.run()
    assert await desk.store.get(ticket) is None


async def test_more_than_one_batch_runs_out_and_is_forgotten_at_once(desk: Desk) -> None:
    wide = POLICY.model_copy(update={"max_tickets": 2000})
    await asyncio.gather(*(desk.put(policy=wide) for _ in range(1203)))
    desk.clock.advance(10_000)
    await desk.queue.expire()
    assert await desk.store.due(int(desk.clock.now_ms())) == []
    desk.clock.advance(DAY_MS + 1)
    await desk.queue.forget()
    assert await desk.store.page(TicketFilter(), "", 10) == []


class Model(RuleBasedStateMachine):
    """The queue beside a list of plain dictionaries."""

    tickets = Bundle("tickets")
    claims = Bundle("claims")

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = TemporaryDirectory()
        self.opened = open_store(f"sqlite:///{self.folder.name}/store.db")
        self.desk = Desk(self.runner.run(self.opened.__aenter__()).tickets)
        self.model: dict[str, dict[str, Any]] = {}
        self.ended_claims: dict[tuple[str, str], str] = {}

    def teardown(self) -> None:
        self.runner.run(self.opened.__aexit__(None, None, None))
        self.runner.close()
        self.folder.cleanup()

    @property
    def now(self) -> float:
        return self.desk.clock.now_ms()

    def lapse(self) -> None:
        for each in self.model.values():
            is_out = each["state"] == "claimed" and each["until"] <= self.now
            if is_out or each["state"] == "waiting":
                is_over = each["expires"] <= self.now
                spent = is_out and each["n"] >= POLICY.max_claims
                each["state"] = "expired" if is_over else "given_up" if spent else "waiting"
            if is_out:
                each["claim"] = None

    def open_ones(self, namespace: str) -> list[str]:
        return [
            name
            for name, each in self.model.items()
            if each["namespace"] == namespace and each["state"] in ("waiting", "claimed")
        ]

    @rule(target=tickets, namespace=st.sampled_from("ab"), life=st.sampled_from([None, 300, 2500]))
    def put(self, namespace: str, life: int | None) -> Any:
        # what has run out still counts until somebody looks
        self.runner.run(self.desk.queue.expire())
        self.lapse()
        expires = None if life is None else self.now + life
        made = self.runner.run(self.desk.put(namespace, expires_at=expires))
        assert (made is None) == (len(self.open_ones(namespace)) >= POLICY.max_tickets)
        if made is None:
            return multiple()
        self.model[made.ticket] = {
            "namespace": namespace, "state": "waiting", "n": 0, "claim": None, "until": 0, "expires": made.expires_at,
        }  # fmt: skip
        return made.ticket

    @rule(target=claims, namespace=st.sampled_from("ab"), limit=st.integers(1, 3))
    def claim(self, namespace: str, limit: int) -> str:
        self.lapse()
        claimed = self.runner.run(self.desk.claim(namespace=namespace, limit=limit))
        waiting = [name for name in self.open_ones(namespace) if self.model[name]["state"] == "waiting"]
        assert names(claimed) == waiting[:limit]
        for name in waiting[:limit]:
            each = self.model[name]
            each.update(state="claimed", claim=claimed.claim_id, n=each["n"] + 1, until=self.now + POLICY.claim_ms)
        return claimed.claim_id

    @rule(ticket=tickets, claim=claims, status=st.sampled_from(["settled", "returned", "given_up"]))
    def settle(self, ticket: str, claim: str, status: str) -> None:
        self.lapse()
        each = self.model[ticket]
        again = self.ended_claims.get((ticket, claim)) == status and each["claim"] == claim
        work = self.desk.settle(ticket, claim, status)
        if each["state"] == "claimed" and each["claim"] == claim:
            if status == "returned":
                each.update(state="waiting" if each["expires"] > self.now else "expired", n=each["n"] - 1)
            else:
                each["state"] = status
            self.ended_claims[ticket, claim] = status
            assert self.runner.run(work) == each["state"]
        elif again:
            assert self.runner.run(work) == each["state"]
        else:
            with pytest.raises(ConflictError):
                self.runner.run(work)

    @rule(ms=st.sampled_from([1, 200, 999, 1000, 3000]))
    def time_passes(self, ms: int) -> None:
        self.desk.clock.advance(ms)

    @rule()
    def sweep(self) -> None:
        self.runner.run(self.desk.queue.expire())

    @rule()
    def restart(self) -> None:
        self.runner.run(self.opened.__aexit__(None, None, None))
        self.opened = open_store(f"sqlite:///{self.folder.name}/store.db")
        self.desk.use(self.runner.run(self.opened.__aenter__()).tickets)

    @invariant()
    def every_ticket_is_as_the_model_says(self) -> None:
        self.lapse()
        page = self.runner.run(self.desk.queue.page(TicketFilter(), OPEN))
        assert {each.ticket: (str(each.state), each.n_claims) for each in page.tickets} == {
            name: (each["state"], each["n"]) for name, each in self.model.items()
        }
        states = [each["state"] for each in self.model.values()]
        assert (page.n_waiting, page.n_claimed) == (states.count("waiting"), states.count("claimed"))


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=12, stateful_step_count=25, deadline=None)

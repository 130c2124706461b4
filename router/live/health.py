"""Health: signs of life of every agent, and the state and score that they add up to (SPEC R2)."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from models.card import AgentCard, AgentKey
from models.heartbeat import Heartbeat
from models.live_policy import HealthPolicy
from router.live.health_score import ProbeResult, suggested_timeout_ms
from router.live.keys import CallId
from router.live.latencies import Figures, Latencies
from router.live.life import Life
from router.live.vitals import NEVER_HEARD, HealthState, HealthView, ProbeReport, Vitals

MAX_TICK_GAP_MS = 2000
"""Ticks that lie further apart show that the router stood still: the rest of the gap is held against nobody."""

_REFRESH_MS = 1000
"""A new outcome shows in the score after so long at most."""


class Health:
    """The health of the agents whose cards are in force; all others are forgotten, and unknown.

    Every `now_ms` is of one steady clock. The score of an agent is computed when something happens to it and when a
    deadline of it passes; in between it costs a look-up.

    Args:
        latencies: the outcomes; None makes an empty one. Add to it by `outcome` and `take_back` of this class.

    >>> agent, card, policy = ("default", "a", "1.0.0"), AgentCard(agent_id="a", version="1.0.0"), HealthPolicy()
    >>> health = Health()
    >>> health.follow({agent: "0" * 64}, now_ms=0)
    >>> health.beat(agent, Heartbeat(digest="0" * 64), card.heartbeat_s, 0, policy)
    True
    >>> [str(health.vitals(agent, card, now_ms, policy).state) for now_ms in (22_499, 22_500, 45_000)]
    ['healthy', 'suspect', 'down']
    """

    def __init__(self, latencies: Latencies | None = None) -> None:
        self.latencies = Latencies() if latencies is None else latencies
        self._lives: dict[AgentKey, Life] = {}
        self._has_followed = False
        self._tick_ms = inf
        self._stalled_ms = 0.0

    def follow(self, digests: Mapping[AgentKey, str], now_ms: float) -> None:
        """These are the digests of the cards in force.

        An agent that had a heartbeat is down from when its card is replaced until it presents the new digest. A card
        that was not there before warms up from now on; those of the first call do not.
        """
        warm_from_ms = self._time(now_ms) if self._has_followed else -inf
        self._has_followed = True
        lives = {}
        for agent, digest in digests.items():
            life = self._lives.get(agent)
            if life is None:
                life = Life(digest, warm_from_ms)
            elif life.digest != digest:
                life.digest, life.until_ms = digest, -inf
            lives[agent] = life
        self._lives = lives
        self.latencies.keep(lives)

    def restore(self, agent: AgentKey, digest: str, last_beat_age_ms: float, now_ms: float) -> None:
        """What was stored of an agent before a restart of the router: it owes nothing from before `now_ms`.

        It is warm already. Call `follow` before; an agent that has had a heartbeat since is left as it is.
        """
        life = self._lives.get(agent)
        if life is None or life.presented is not None:
            return
        life.presented, life.warm_from_ms = digest, -inf
        life.beat_ms, life.heard_ms = self._time(now_ms), now_ms - last_beat_age_ms
        life.until_ms = -inf

    def accepts(self, agent: AgentKey, digest: str) -> bool:
        """Whether this is the digest of the agent's card in force; False too for an agent without a card."""
        life = self._lives.get(agent)
        return life is not None and life.digest == digest

    def beat(
        self, agent: AgentKey, heartbeat: Heartbeat, heartbeat_s: float, now_ms: float, policy: HealthPolicy
    ) -> bool:
        """Take a heartbeat; False, and nothing has changed, where `accepts` says no to its digest.

        The agent warms up from the first one on, and from one that ends its being down.
        """
        life = self._lives.get(agent)
        if life is None or life.digest != heartbeat.digest:
            return False
        time_ms = self._time(now_ms)
        if life.presented is None or life.pulse(heartbeat_s, time_ms, policy).state is HealthState.DOWN:
            life.warm_from_ms = time_ms
        life.presented, life.heartbeat = heartbeat.digest, heartbeat
        life.beat_ms, life.heard_ms = time_ms, now_ms
        life.until_ms = -inf
        return True

    def probed(self, agent: AgentKey, result: ProbeResult, latency_ms: float, now_ms: float) -> None:
        """Take the result of a probe."""
        life = self._lives.get(agent)
        if life is not None:
            life.probes.append((result, latency_ms, now_ms))
            life.until_ms = -inf

    def unprobed(self, agent: AgentKey) -> None:
        """Forget the agent's probes: it is probed no more, or elsewhere."""
        life = self._lives.get(agent)
        if life is not None:
            life.probes.clear()
            life.until_ms = -inf

    def outcome(self, agent: AgentKey, call: CallId, *, failed: bool, latency_ms: float | None, now_ms: float) -> None:
        """Count the outcome of a call that is charged to the agent; None for a latency that is not known."""
        life = self._lives.get(agent)
        if life is not None:
            self.latencies.add(agent, call, failed=failed, latency_ms=latency_ms, now_ms=now_ms)
            life.until_ms = min(life.until_ms, self._time(now_ms) + _REFRESH_MS)

    def take_back(self, agent: AgentKey, call: CallId, now_ms: float) -> bool:
        """Forget the outcome of a call; False where it does not count any more."""
        life = self._lives.get(agent)
        if life is None or not self.latencies.take_back(agent, call):
            return False
        life.until_ms = min(life.until_ms, self._time(now_ms) + _REFRESH_MS)
        return True

    def ticked(self, now_ms: float) -> None:
        """Called each second: for how long it was not called, beyond `MAX_TICK_GAP_MS`, counts as `stalled`.

        Until it is called again the time stands still, so that nobody is down in between either.
        """
        self._stalled_ms += max(0.0, now_ms - self._tick_ms - MAX_TICK_GAP_MS)
        self._tick_ms = now_ms

    def stalled(self, gap_ms: float) -> None:
        """The router stood still for so long, and could not take heartbeats: all are owed that much later.

        Only for who does not call `ticked`, and before the heartbeats that have waited are taken.
        """
        self._stalled_ms += gap_ms

    def state(self, agent: AgentKey, heartbeat_s: float, now_ms: float, policy: HealthPolicy) -> HealthState:
        """What the heartbeats say of an agent whose card has this period."""
        life = self._lives.get(agent)
        return HealthState.UNKNOWN if life is None else life.pulse(heartbeat_s, self._time(now_ms), policy).state

    def vitals(self, agent: AgentKey, card: AgentCard, now_ms: float, policy: HealthPolicy) -> Vitals:
        """State and score of an agent; kept until something may have changed them.

        Args:
            card: of the key `agent`, always the same object while it is in force, as is `policy`.
        """
        life = self._lives.get(agent)
        if life is None:
            return NEVER_HEARD
        time_ms = self._time(now_ms)
        if time_ms < life.until_ms and life.card is card and life.policy is policy:
            return life.vitals
        return life.look(card, time_ms, self._measured(agent, now_ms, policy), policy)

    def current(self, now_ms: float) -> tuple[Mapping[AgentKey, Life], float]:
        """(the lives of agents, the time by which their vitals hold): for who asks of very many at once."""
        return self._lives, self._time(now_ms)

    def reported(self, agent: AgentKey, now_ms: float, max_age_ms: float) -> Heartbeat | None:
        """The last heartbeat; None where it is `max_age_ms` old, or there was none since the router's start."""
        life = self._lives.get(agent)
        return None if life is None else life.reported(self._time(now_ms), max_age_ms)

    def timeout_ms(self, agent: AgentKey, card: AgentCard, now_ms: float, policy: HealthPolicy) -> int:
        """Suggested timeout: 2 * P95 + 500 once there are outcomes enough, else the card's (SPEC R5)."""
        return suggested_timeout_ms(card.timeout_ms, self._measured(agent, now_ms, policy), policy)

    def view(self, agent: AgentKey, card: AgentCard, now_ms: float, policy: HealthPolicy) -> HealthView:
        """All that is known of an agent; `card` is of that key."""
        life = self._lives.get(agent) or Life("", -inf)
        time_ms, measured = self._time(now_ms), self._measured(agent, now_ms, policy)
        return HealthView(
            vitals=life.look(card, time_ms, measured, policy),
            layers=life.layers(card, time_ms, measured, policy),
            digest=life.presented,
            beat_age_ms=None if life.presented is None else now_ms - life.heard_ms,
            n_missed=0 if life.presented is None else int((time_ms - life.beat_ms) // (card.heartbeat_s * 1000)),
            reported=life.reported(time_ms, policy.window_ms),
            probes=tuple(ProbeReport(result, ms, now_ms - at_ms) for result, ms, at_ms in life.probes),
            measured=measured,
            timeout_ms=self.timeout_ms(agent, card, now_ms, policy),
        )

    def _measured(self, agent: AgentKey, now_ms: float, policy: HealthPolicy) -> Figures:
        return self.latencies.figures(agent, now_ms, policy.window_ms)

    def _time(self, now_ms: float) -> float:
        return min(now_ms, self._tick_ms + MAX_TICK_GAP_MS) - self._stalled_ms

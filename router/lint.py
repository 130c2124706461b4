"""The linter of cards: what loads but will not route well."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from models.card import AgentCard, Capability
from models.policy import Policy
from router.finding import Finding, Severity, order_of, place_of
from router.lint_overlap import Embed, duplicates, overlaps
from router.lint_text import text_faults
from router.versions import parse

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def lint_cards(
    cards: Sequence[AgentCard],
    embed: Embed | None = None,
    policy: Policy | None = None,
    languages: frozenset[str] | None = None,
) -> list[Finding]:
    """All findings about a set of cards, the worst first, in a stable order.

    Args:
        cards: of all namespaces, at most one of each key.
        embed: gives unit vectors, for the overlaps; None leaves them out.
        policy: says which schemas are needed and which intents are reserved; None is the one as shipped.
        languages: what the encoder was made for; None means all.
    """
    rules = policy if policy is not None else Policy()
    by_agent: dict[tuple[str, str], list[AgentCard]] = defaultdict(list)
    for card in cards:
        by_agent[card.namespace, card.agent_id].append(card)
    findings = [*duplicates(cards), *_reserved(by_agent, rules)]
    for card in cards:
        findings += _reach(card)
        findings += _backup(card, by_agent)
        findings += _versions(card, by_agent[card.namespace, card.agent_id])
        findings += _card_texts(card)
        findings += _intents(card)
        for capability in card.capabilities:
            findings += _capability(card, capability, rules)
    if embed is not None:
        findings += overlaps(cards, embed, languages)
    return sorted(findings, key=order_of)


def _finding(
    card: AgentCard, code: str, severity: Severity, message: str, capability: Capability | None = None
) -> Finding:
    return Finding(
        code=code,
        severity=severity,
        where=place_of(card),
        message=message,
        agent_id=card.agent_id,
        intent=None if capability is None else capability.intent,
    )


def _reach(card: AgentCard) -> Iterator[Finding]:
    """Settings with which an agent gets no calls."""
    for name in ("allowed_sources", "allowed_callers"):
        if getattr(card, name) == []:
            yield _finding(
                card,
                "unreachable",
                Severity.WARNING,
                f"{name} is empty, so nobody can reach it; leave it out for anybody",
            )
    if card.weight == 0:
        yield _finding(card, "weight_zero", Severity.WARNING, "weight is 0: it gets no share among near-equals")
    if not card.endpoint and card.protocol != "in_process":
        yield _finding(card, "no_endpoint", Severity.WARNING, f"no endpoint, though the protocol is {card.protocol}")
    if not card.capabilities:
        yield _finding(card, "no_capabilities", Severity.WARNING, "no capabilities: nothing is ever routed to it")


def _backup(card: AgentCard, by_agent: Mapping[tuple[str, str], Sequence[AgentCard]]) -> Iterator[Finding]:
    name = card.backup_agent_id
    if name is None:
        return
    code = "backup"
    if name == card.agent_id:
        yield _finding(card, code, Severity.ERROR, "is its own backup")
        return
    versions = by_agent.get((card.namespace, name), ())
    if not versions:
        elsewhere = sorted(namespace for namespace, agent_id in by_agent if agent_id == name)
        there = (
            f" (there is one in {', '.join(elsewhere)}, but a backup must not cross namespaces)" if elsewhere else ""
        )
        yield _finding(card, code, Severity.ERROR, f"the backup '{name}' does not exist in {card.namespace}{there}")
        return
    live = [version for version in versions if version.enabled]
    if not live:
        yield _finding(card, code, Severity.ERROR, f"the backup '{name}' is disabled")
        return
    served = {capability.intent for version in live for capability in version.capabilities}
    for capability in card.capabilities:
        if capability.intent not in served:
            message = f"the backup '{name}' does not serve '{capability.intent}'"
            yield _finding(card, code, Severity.INFO, message, capability)
    if card.capabilities and served.isdisjoint(capability.intent for capability in card.capabilities):
        yield _finding(card, code, Severity.WARNING, f"the backup '{name}' serves none of its intents")


def _versions(card: AgentCard, versions: Sequence[AgentCard]) -> Iterator[Finding]:
    if card.enabled:
        return
    older = [each for each in versions if each.enabled and parse(each.version) < parse(card.version)]
    if older:
        serving = max(older, key=lambda each: parse(each.version))
        message = f"is disabled, so the older version {serving.version} serves"
    elif any(each.enabled for each in versions):
        message = "is disabled; a newer version serves"
    else:
        message = "is disabled, and no other version serves"
    yield _finding(card, "disabled", Severity.INFO, message)


def _card_texts(card: AgentCard) -> Iterator[Finding]:
    for name in ("display_name", "description"):
        for code, severity, message in text_faults(getattr(card, name)):
            # a name is short by nature
            if not (name == "display_name" and code == "generic_text"):
                yield _finding(card, code, severity, f"{name} {message}")


def _intents(card: AgentCard) -> Iterator[Finding]:
    seen: set[str] = set()
    for capability in card.capabilities:
        if capability.intent in seen:
            message = f"lists the intent '{capability.intent}' more than once; make them one capability"
            yield _finding(card, "duplicate_capability", Severity.ERROR, message, capability)
        seen.add(capability.intent)


def _capability(card: AgentCard, capability: Capability, policy: Policy) -> Iterator[Finding]:
    required = policy.of(card.namespace).require_schemas
    sides = {"both": ("input", "output"), "input": ("input",)}.get(required, ())
    missing = [side for side in sides if getattr(capability, f"{side}_schema") is None]
    if missing:
        message = f"no {' and no '.join(missing)} schema, so it is not routable; 'text' and 'none' are built in"
        yield _finding(card, "schema_gap", Severity.WARNING, message, capability)
    if not _IDENTIFIER.fullmatch(capability.intent):
        meant = re.sub(r"\W+", "_", capability.intent.strip(), flags=re.ASCII).strip("_").lower()
        hint = f"; '{meant}' would be" if _IDENTIFIER.fullmatch(meant) else ""
        message = f"the intent '{capability.intent}' is not named like an identifier{hint}"
        yield _finding(card, "intent_name", Severity.WARNING, message, capability)
    if not capability.examples:
        message = "no examples: sentences find it by its description alone"
        yield _finding(card, "no_examples", Severity.WARNING, message, capability)
    if not capability.description.strip():
        yield _finding(card, "no_description", Severity.WARNING, "no description", capability)
    for code, severity, message in text_faults(capability.description):
        yield _finding(card, code, severity, f"description {message}", capability)
    reserved = policy.of(card.namespace).intents.get(capability.intent)
    if reserved is not None and reserved.agents is not None and card.agent_id not in reserved.agents:
        message = f"the policy reserves this intent for {', '.join(reserved.agents) or 'nobody'}"
        yield _finding(card, "reserved_intent", Severity.INFO, message, capability)


def _reserved(by_agent: Mapping[tuple[str, str], Sequence[AgentCard]], policy: Policy) -> Iterator[Finding]:
    """Agents that a policy names for an intent, but that do not serve it in the namespace."""
    for namespace in sorted({namespace for namespace, _ in by_agent}):
        claimed = {
            (card.agent_id, capability.intent)
            for (home, _), cards in by_agent.items()
            for card in cards
            if home == namespace
            for capability in card.capabilities
        }
        for intent, rule in policy.of(namespace).intents.items():
            # defaults hold for every namespace, also for those that have nothing to do with the intent
            if not any(intent == claimed_intent for _, claimed_intent in claimed):
                continue
            for agent_id in rule.agents or ():
                if (agent_id, intent) not in claimed:
                    message = f"the policy reserves '{intent}' for '{agent_id}', which does not serve it here"
                    yield Finding("reserved_agent_missing", Severity.ERROR, namespace, message, agent_id, intent)

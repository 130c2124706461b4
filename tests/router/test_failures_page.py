from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

from router.failures_page import failures_page

EVIL = "<script>alert(1)</script>&\"'\x00\x1b[31m‮"


def report(text: str = "where is my order", n: int = 2) -> dict[str, Any]:
    example = {"trace_id": text, "decision_id": text, "at_ms": 1_700_000_000_000, "utterance": text}
    cluster = {
        "name": text,
        "phrases": [text],
        "stage": "agent",
        "size": 2,
        "share": 0.5,
        "trend": {"change": "rising", "window_ms": 604_800_000, "n_recent": 2, "n_before": 0, "bars": [0, 1, 4]},
        "first_seen": 1_700_000_000_000,
        "last_seen": 1_700_000_000_000,
        "agents": [{"value": text, "n": 2}],
        "errors": [{"value": text, "n": 2}],
        "intents": [{"value": text, "n": 2}],
        "fix": {"kind": "sick_agent", "text": text, "reason": text},
        "examples": [example],
    }
    rest = {"size": 1 if n else 0, "share": 0.5, "examples": [{**example, "utterance": None}]}
    return {
        "n_outcomes": 9,
        "n_failures": n,
        "n_left_out": 0,
        "from_ms": 1_700_000_000_000,
        "until_ms": 1_700_000_000_000,
        "clusters": [cluster] if n else [],
        "rest": rest,
    }


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.attributes += attrs


def parsed(page: str) -> Tags:
    tags = Tags()
    tags.feed(page)
    return tags


def test_what_callers_sent_is_text_and_nothing_else() -> None:
    plain, evil = failures_page(report()), failures_page(report(EVIL))

    assert parsed(evil).seen == parsed(plain).seen
    assert "script" not in parsed(evil).seen
    assert evil.count("&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;&#x27;\ufffd\ufffd[31m\ufffd") == 11
    assert re.search(r"[\x00-\x08\x0b-\x1f\x7f‮]", evil) is None


def test_the_page_loads_nothing() -> None:
    page = failures_page(report())

    assert not {"script", "link", "img", "iframe", "a"} & set(parsed(page).seen)
    assert not {"src", "href", "style", "onload"} & {name for name, _ in parsed(page).attributes}
    assert "http:" not in page
    assert "https:" not in page
    assert "url(" not in page
    assert "default-src 'none'" in page
    assert "prefers-color-scheme: dark" in page


def test_the_trend_is_drawn() -> None:
    page = failures_page(report())

    assert '<rect x="6" y="21.0" width="5" height="7.0"/><rect x="12" y="0.0" width="5" height="28.0"/></svg>' in page
    assert "rising: 2 in the last 7 d, 0 in those before" in page
    assert "2023-11-14 22:13" in page
    assert "(no text is kept)" in page


def test_a_log_without_failures_says_so() -> None:
    page = failures_page(report(n=0))

    assert "Nothing failed among 9 outcome(s)" in page
    assert "<section>" not in page

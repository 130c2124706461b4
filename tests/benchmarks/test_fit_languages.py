from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.bench_languages import _told
from benchmarks.fit_languages import TEXTS, cross_pools, directions_of
from benchmarks.report import Report
from intent.language import language_of, may_be_in
from intent.nano_e5 import without_language


def test_the_neutral_texts_are_the_same_sentences_in_all_languages() -> None:
    texts = json.loads(TEXTS.read_text(encoding="utf-8"))
    assert len(texts) == 18
    assert {len(each) for each in texts.values()} == {20}
    assert len({text for each in texts.values() for text in each}) == 18 * 20
    alike = {"id": "ms"}
    for language, each in texts.items():
        wanted = alike.get(language, language)
        others = [text for text in each if language_of(text) not in (wanted, "und")]
        assert len(others) <= 2, (language, others)
        assert sum(may_be_in(text, [wanted]) for text in each) >= 16


def test_directions_of_languages_are_found_and_taken_off() -> None:
    generator = np.random.default_rng(0)
    meanings, shared = generator.normal(size=(12, 64)), 8 * generator.normal(size=64)
    accents = {name: 2 * generator.normal(size=64) for name in ("en", "de", "zh", "ja")}

    def unit(vector: NDArray[np.float64]) -> NDArray[np.float32]:
        scaled: NDArray[np.float32] = (vector / np.linalg.norm(vector)).astype(np.float32)
        return scaled

    raw = {name: [unit(meaning + shared + accent) for meaning in meanings] for name, accent in accents.items()}
    found = directions_of(raw)
    assert found.shape == (4, 64)
    assert np.abs(found[1:] @ found[1:].T - np.eye(3)).max() < 1e-5
    bare = {name: np.stack([without_language(each, found[0], found[1:]) for each in raw[name]]) for name in raw}
    cosines = bare["en"] @ bare["zh"].T
    assert np.diag(cosines).min() > 0.9
    assert abs(cosines[~np.eye(12, dtype=np.bool_)].mean()) < 0.15


def test_examples_and_texts_to_read_share_no_sentence(tmp_path: Path) -> None:
    xsid, home = ("en", "zh", "de", "ja", "ar", "it"), ("en", "zh-CN", "de", "fr")
    for name, languages in (("xsid/valid", xsid), ("home_assistant/train", home)):
        rows = [
            {"text": f"{name} {lang} {number}", "intent": f"intent {number % 4}", "lang": lang, "id": number}
            for lang in languages
            for number in range(40)
        ]
        path = tmp_path / f"{name}.jsonl.gz"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    pools = cross_pools(tmp_path, 0)
    assert len(pools) == 20
    for pool in pools:
        if pool.examples[0].text.startswith("xsid"):
            numbers = [{each.text.split()[-1] for each in rows} for rows in (pool.examples, pool.others)]
            assert not numbers[0] & numbers[1]
        assert {each.text.split()[1] for each in pool.examples} != {each.text.split()[1] for each in pool.others}
        assert {text.split()[0] for text in pool.far}.isdisjoint({each.text.split()[0] for each in pool.examples})


def test_a_language_is_right_none_or_another(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report("title")
    _told(
        report, "some", [("wo ist mein Paket", "de"), ("ok", "de"), ("where is my parcel", "de"), ("moj paket", "sr")]
    )
    assert report.figures[0]["value"] == 0.25
    assert "none 50.00%, another 25.00%; 4 rows" in capsys.readouterr().out

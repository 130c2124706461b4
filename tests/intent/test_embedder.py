import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from intent.embedder import (
    MANIFEST_FILE,
    MAX_CHARS,
    MODEL_FILE,
    TOKENIZER_FILE,
    FileRecord,
    OnnxEmbedder,
    bundled,
    cpu_features,
    derive_encoder_id,
    int8_accelerated,
    read_manifest,
)
from models.errors import EncoderError
from models.ports import Embedder

WEIGHTS = Path(__file__).parents[2] / "intent" / "weights"
DATA = Path(__file__).parents[1] / "data"
TEXTS = (DATA / "encoder_texts.txt").read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def embedder() -> OnnxEmbedder:
    return bundled()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    for name in (MANIFEST_FILE, MODEL_FILE, TOKENIZER_FILE):
        shutil.copyfile(WEIGHTS / name, tmp_path / name)
    yield tmp_path
    shutil.rmtree(tmp_path)


def values(embedder: Embedder, text: str) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.frombuffer(embedder.embed(text).vector, dtype="<f4")


def test_vectors_are_near_those_of_the_source_in_fp32(embedder: OnnxEmbedder) -> None:
    with np.load(DATA / "encoder_fp32.npz") as recorded:
        assert recorded["texts"].tolist() == TEXTS
        reference = recorded["vectors"].astype(np.float32)
    cosines = np.einsum("nd,nd->n", np.stack([values(embedder, text) for text in TEXTS]), reference)
    assert len(cosines) == 200
    assert cosines.mean() >= 0.995
    assert cosines.min() >= 0.98


def test_every_vector_has_unit_length(embedder: OnnxEmbedder) -> None:
    for text in [*TEXTS, "", " ", "\n\t", "\0", "😀", "帮我把客厅的灯打开"]:
        vector = values(embedder, text)
        assert vector.shape == (embedder.dim,) == (384,)
        assert abs(float(np.linalg.norm(vector)) - 1.0) <= 1e-5


def test_near_texts_are_nearer_than_far_ones(embedder: OnnxEmbedder) -> None:
    one, near, far = (values(embedder, text) for text in ("turn off the light", "lights out", "refund my order"))
    assert float(one @ near) > float(one @ far) + 0.2


def test_a_vector_does_not_depend_on_what_came_before(embedder: OnnxEmbedder) -> None:
    alone = embedder.embed("yes")
    embedder.embed("house " * 250)
    assert embedder.embed("yes") == alone
    assert bundled().embed("yes") == alone


def test_padding_and_truncation_of_the_tokenizer_file_do_not_count(folder: Path, embedder: OnnxEmbedder) -> None:
    tokenizer = json.loads((folder / TOKENIZER_FILE).read_text(encoding="utf-8"))
    assert (tokenizer["padding"]["strategy"], tokenizer["truncation"]["max_length"]) == ({"Fixed": 128}, 128)
    content = json.dumps(tokenizer | {"padding": None, "truncation": None}).encode()
    (folder / TOKENIZER_FILE).write_bytes(content)
    old = embedder.manifest
    files = old.files | {TOKENIZER_FILE: FileRecord.of(content)}
    new_id = derive_encoder_id(files, old.max_tokens, old.pooling)
    manifest = old.model_copy(update={"files": files, "encoder_id": new_id})
    (folder / MANIFEST_FILE).write_text(manifest.model_dump_json(), encoding="utf-8")
    plain = OnnxEmbedder(folder)
    assert plain.encoder_id != embedder.encoder_id
    for text in ("yes", "turn on the light", "house " * 200, "house " * 300):
        assert plain.embed(text) == embedder.embed(text)


def test_only_the_first_256_tokens_count(embedder: OnnxEmbedder) -> None:
    assert embedder.embed("house " * 300) == embedder.embed("house " * 254)
    assert embedder.embed("house " * 254) != embedder.embed("house " * 253)


def test_only_the_first_characters_are_tokenized(embedder: OnnxEmbedder) -> None:
    assert embedder.embed(" " * MAX_CHARS + "light") == embedder.embed("")


def test_an_empty_text_has_a_vector_and_nothing_unknown(embedder: OnnxEmbedder) -> None:
    assert embedder.embed("").unknown_share == 0.0
    assert embedder.embed("") == embedder.embed("   ")


def test_a_lone_surrogate_reads_as_a_question_mark(embedder: OnnxEmbedder) -> None:
    assert embedder.embed("light \ud800") == embedder.embed("light ?")


def test_threads_get_the_same_vectors_as_one_thread(embedder: OnnxEmbedder) -> None:
    alone = [embedder.embed(text) for text in TEXTS[:40]]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(embedder.embed, TEXTS[:40] * 4)) == alone * 4


def test_chinese_is_largely_unknown_and_english_is_not(embedder: OnnxEmbedder) -> None:
    assert embedder.embed("帮我把客厅的灯打开").unknown_share > 0.2
    assert embedder.embed("请帮我预订明天从北京到上海的航班").unknown_share > 0.2
    assert embedder.embed("turn on the light in the living room").unknown_share < 0.2


def test_an_altered_byte_of_the_weights_is_refused(folder: Path) -> None:
    content = bytearray((folder / MODEL_FILE).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / MODEL_FILE).write_bytes(content)
    expected = read_manifest(folder).files[MODEL_FILE].sha256
    with pytest.raises(EncoderError, match=rf"{MODEL_FILE}.*{expected}, found [0-9a-f]{{64}}; reinstall"):
        OnnxEmbedder(folder)


@pytest.mark.parametrize("name", [MANIFEST_FILE, MODEL_FILE, TOKENIZER_FILE])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(EncoderError, match=f"{name} cannot be read.*agency-router models export"):
        OnnxEmbedder(folder)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('"dim": 384', '"dim": 0', "dim"),
        ('"max_tokens": 256', '"max_tokens": 128', "encoder_id"),
        ('"mean"', '"cls"', "encoder_id"),
        ("tokenizer.json", "other.json", "other.json"),
        ("{", "", "JSON"),
    ],
)
def test_a_wrong_manifest_is_refused_with_what_is_wrong(folder: Path, old: str, new: str, complaint: str) -> None:
    path = folder / MANIFEST_FILE
    path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    with pytest.raises(EncoderError, match=f"not an encoder's manifest.*{complaint}"):
        OnnxEmbedder(folder)


def test_a_manifest_with_another_dim_than_the_graph_is_refused(folder: Path) -> None:
    path = folder / MANIFEST_FILE
    path.write_text(path.read_text(encoding="utf-8").replace('"dim": 384', '"dim": 768'), encoding="utf-8")
    with pytest.raises(EncoderError, match=r"gives 384 values.*says 768"):
        OnnxEmbedder(folder)


def test_the_same_files_elsewhere_have_the_same_id(folder: Path, embedder: OnnxEmbedder) -> None:
    assert OnnxEmbedder(folder).encoder_id == embedder.encoder_id


def test_cpu_features_are_read_from_either_spelling(tmp_path: Path) -> None:
    intel, arm, other = tmp_path / "intel", tmp_path / "arm", tmp_path / "other"
    intel.write_text("processor\t: 0\nflags\t\t: fpu AVX2 avx512_vnni\n", encoding="utf-8")
    arm.write_text("processor\t: 0\nFeatures\t: fp asimd asimddp\n", encoding="utf-8")
    other.write_text("processor : 0\n", encoding="utf-8")
    assert cpu_features(intel) == frozenset({"fpu", "avx2", "avx512_vnni"})
    assert cpu_features(arm) == frozenset({"fp", "asimd", "asimddp"})
    assert cpu_features(other) is None
    assert cpu_features(tmp_path / "missing") is None


def test_int8_acceleration_is_unknown_without_features() -> None:
    assert int8_accelerated(frozenset({"avx2", "avx512_vnni"})) is True
    assert int8_accelerated(frozenset({"avx2"})) is False
    assert int8_accelerated(None) is None


def test_the_prompt_of_the_manifest_is_read_first_and_counts_for_nothing_else(
    embedder: OnnxEmbedder, folder: Path
) -> None:
    manifest, prompt = embedder.manifest, "query: "
    own_id = derive_encoder_id(manifest.files, manifest.max_tokens, manifest.pooling, prompt)
    assert own_id != derive_encoder_id(manifest.files, manifest.max_tokens, manifest.pooling) == embedder.encoder_id
    prompted = manifest.model_copy(update={"prompt": prompt, "encoder_id": own_id})
    (folder / MANIFEST_FILE).write_text(prompted.model_dump_json(), encoding="utf-8")
    other = OnnxEmbedder(folder)
    assert other.encoder_id == own_id
    for text in ("cancel my order", "请取消我的订单", "", " x"):
        assert other.embed(text).vector == embedder.embed(prompt + text).vector
        assert other.embed(text).unknown_share == embedder.embed(text).unknown_share


def test_the_bundled_encoder_was_made_for_english(embedder: OnnxEmbedder) -> None:
    assert embedder.languages == frozenset({"en"})


@pytest.mark.parametrize("languages", ["English", "EN", ""])
def test_a_manifest_names_languages_by_their_tags(folder: Path, languages: str) -> None:
    found = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
    (folder / MANIFEST_FILE).write_text(json.dumps(found | {"languages": [languages]}), encoding="utf-8")
    with pytest.raises(EncoderError, match="languages"):
        OnnxEmbedder(folder)

import json
import shutil
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from typer.testing import CliRunner

from intent.embedder import MANIFEST_FILE, MODEL_FILE, TOKENIZER_FILE, OnnxEmbedder, bundled, derive_encoder_id
from intent.export import (
    PACKAGE,
    PINNED_LANGUAGES,
    PINNED_NAME,
    PINNED_REVISION,
    PINNED_SHA256,
    Source,
    calibration_texts,
    check_fidelity,
    check_files,
    export_encoder,
    find_source,
    probe_texts,
    require_extra,
    use_prompt,
)
from models.errors import EncoderError
from router.cli.main import app
from tests.intent.tiny_model import tiny_model

WEIGHTS = Path(__file__).parents[2] / "intent" / "weights"
TEXTS = (Path(__file__).parents[1] / "data" / "encoder_texts.txt").read_text(encoding="utf-8").splitlines()


def test_the_bundled_encoder_is_made_from_the_pinned_source() -> None:
    manifest = bundled().manifest
    assert (manifest.name, manifest.source_revision) == (PINNED_NAME, PINNED_REVISION)
    assert (manifest.dim, manifest.max_tokens, manifest.pooling) == (384, 256, "mean")
    assert manifest.languages == PINNED_LANGUAGES == ("en",)
    assert manifest.files[TOKENIZER_FILE].sha256 == PINNED_SHA256["tokenizer.json"]
    for name, record in manifest.files.items():
        assert record.n_bytes == (WEIGHTS / name).stat().st_size


def test_the_provenance_page_names_what_the_manifest_names() -> None:
    page, manifest = (WEIGHTS / "PROVENANCE.md").read_text(encoding="utf-8"), bundled().manifest
    digests = [record.sha256 for record in manifest.files.values()]
    for fact in (PINNED_NAME, PINNED_REVISION, *PINNED_SHA256.values(), *digests, manifest.encoder_id, "Apache-2.0"):
        assert fact in page


def test_the_source_is_pinned_to_the_published_digests() -> None:
    assert PINNED_SHA256 == {
        "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    }


def test_a_missing_extra_is_named_with_its_fix() -> None:
    with pytest.raises(
        EncoderError, match=r"no_such_module is not installed: run pip install 'agency-router\[train\]'"
    ):
        require_extra("no_such_module")


@pytest.mark.skipif(find_spec("torch") is not None, reason="the extra is installed")
def test_export_without_the_extra_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(EncoderError, match=r"agency-router\[train\]"):
        export_encoder(Source(tmp_path, "any"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(find_spec(PACKAGE) is not None, reason="the extra is installed")
def test_the_default_source_needs_the_extra() -> None:
    with pytest.raises(EncoderError, match=rf"{PACKAGE} is not installed.*agency-router\[train\]"):
        find_source()


def test_a_folder_is_a_source_without_pins(tmp_path: Path) -> None:
    assert find_source(str(tmp_path)) == Source(tmp_path, tmp_path.name, None, {})


def test_an_altered_source_is_refused_with_both_digests(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(b"{}")
    source = Source(tmp_path, "model", sha256={"tokenizer.json": PINNED_SHA256["tokenizer.json"]})
    with pytest.raises(EncoderError, match=r"tokenizer\.json is not the file of model.*be50c3.*found 44136f"):
        check_files(source)


def test_a_source_without_a_pinned_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EncoderError, match=r"model\.safetensors is missing, expected sha256 53aa51"):
        check_files(Source(tmp_path, "model", sha256=PINNED_SHA256))


def test_vectors_far_from_the_reference_are_refused() -> None:
    embedder, texts = bundled(), TEXTS[:20]
    own = np.stack([np.frombuffer(embedder.embed(text).vector, dtype="<f4") for text in texts])
    assert check_fidelity(embedder, texts, own).min() == pytest.approx(1.0, abs=1e-5)
    with pytest.raises(EncoderError, match=r"too far from fp32: cosine mean .* \(needs 0.99\), min .* \(needs 0.98\)"):
        check_fidelity(embedder, texts, np.roll(own, 1, axis=0))


def test_one_far_vector_is_enough_to_refuse() -> None:
    embedder, texts = bundled(), ["stop"] * 200
    own = np.stack([np.frombuffer(embedder.embed(text).vector, dtype="<f4") for text in texts])
    own[7] = np.frombuffer(embedder.embed("play some jazz").vector, dtype="<f4")
    with pytest.raises(EncoderError, match="too far"):
        check_fidelity(embedder, texts, own)


def test_vectors_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(EncoderError, match="nan"):
        check_fidelity(bundled(), ["stop"], np.full((1, 384), np.nan, dtype=np.float32))


def test_there_are_200_probe_texts_and_none_is_a_fidelity_text() -> None:
    assert len(set(probe_texts())) == 200
    assert not set(TEXTS) & set(calibration_texts())


def test_the_encoder_folder_holds_what_the_manifest_names() -> None:
    assert {path.name for path in WEIGHTS.iterdir() if path.suffix in {".onnx", ".json"}} == {
        MODEL_FILE,
        TOKENIZER_FILE,
        MANIFEST_FILE,
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("activation", "is_traced"), [("gelu", False), ("gelu_new", True)])
def test_a_model_that_is_no_bert_is_traced_and_as_near(tmp_path: Path, activation: str, is_traced: bool) -> None:
    pytest.importorskip("torch", reason="exporting needs the extra `train`").set_num_threads(1)
    folder = tiny_model(tmp_path / "tiny", probe_texts())
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"hidden_act": activation}), encoding="utf-8")
    exported = export_encoder(find_source(str(folder)), tmp_path / "out")
    session = ort.InferenceSession(tmp_path / "out" / MODEL_FILE, providers=["CPUExecutionProvider"])
    names = {node.name for node in session.get_inputs()}
    assert names >= {"input_ids", "attention_mask"} if is_traced else names == {"input_ids"}
    assert exported.cosines.min() >= 0.98
    embedder = OnnxEmbedder(tmp_path / "out")
    vectors = np.stack([np.frombuffer(embedder.embed(text).vector, dtype="<f4") for text in probe_texts()])
    assert (np.einsum("nd,nd->n", vectors, exported.reference) >= 0.98).all()


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    pytest.importorskip("torch", reason="exporting needs the extra `train`").set_num_threads(1)
    return tiny_model(tmp_path / "tiny", [*probe_texts(), "query find this"])


def with_default(folder: Path, prompt: str) -> Path:
    """The model with a default prompt of its own."""
    path = folder / "config_sentence_transformers.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(config | {"prompts": {"own": prompt}, "default_prompt_name": "own"}), encoding="utf-8")
    return folder


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("default", "wanted", "expected"),
    [
        ("", None, ""),
        ("", "query: ", "query: "),
        ("find: ", None, "find: "),
        ("find: ", "query: ", "query: "),
        ("find: ", "", ""),
    ],
)
def test_a_prompt_stands_before_every_text_and_is_part_of_the_id(
    tiny: Path, tmp_path: Path, default: str, wanted: str | None, expected: str
) -> None:
    source = find_source(str(with_default(tiny, default) if default else tiny))
    # the check compares with the vectors that the model itself gives with its prompt
    exported = export_encoder(replace(source, prompt=wanted), tmp_path / "out")
    embedder, text = OnnxEmbedder(tmp_path / "out"), "cancel the invoice"
    assert embedder.manifest.prompt == expected
    bare = tmp_path / "bare"
    shutil.copytree(tmp_path / "out", bare)
    manifest = exported.manifest
    bare_id = derive_encoder_id(manifest.files, manifest.max_tokens, manifest.pooling)
    without = manifest.model_copy(update={"prompt": "", "encoder_id": bare_id})
    (bare / MANIFEST_FILE).write_text(without.model_dump_json(), encoding="utf-8")
    assert embedder.embed(text).vector == OnnxEmbedder(bare).embed(expected + text).vector
    assert (embedder.encoder_id == bare_id) == (expected == "")


@pytest.mark.filterwarnings("ignore")
def test_a_prompt_that_the_model_leaves_out_of_its_mean_is_refused(tiny: Path) -> None:
    model = require_extra("sentence_transformers").SentenceTransformer(str(tiny), device="cpu")
    model.set_pooling_include_prompt(False)
    assert use_prompt(model, None) == ""
    with pytest.raises(EncoderError, match="leaves its prompt 'query: ' out of the pooling"):
        use_prompt(model, "query: ")


@pytest.mark.filterwarnings("ignore")
def test_languages_and_prompt_are_named_on_the_command_line(tiny: Path, tmp_path: Path) -> None:
    command = ["models", "export", str(tiny), "--out", str(tmp_path / "out"), "--json"]
    result = CliRunner().invoke(app, [*command, "--prompt", "query: ", "--language", "de", "--language", "en"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["prompt"] == "query: "
    embedder = OnnxEmbedder(tmp_path / "out")
    assert (embedder.manifest.prompt, embedder.languages) == ("query: ", frozenset({"de", "en"}))


def test_a_language_that_is_no_tag_is_refused(tmp_path: Path) -> None:
    command = ["models", "export", str(tmp_path), "--out", str(tmp_path / "out"), "--language", "German"]
    result = CliRunner().invoke(app, command)
    assert (result.exit_code, (tmp_path / "out").exists()) == (2, False)
    assert "--language German: expected a language tag" in result.stderr

"""A sentence-transformers model small enough to tune in seconds: random weights, words as tokens."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def tiny_model(folder: Path, texts: Iterable[str]) -> Path:
    """Write a model that knows the words of the texts; the folder."""
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
    from tokenizers.models import WordLevel

    words = sorted({word for text in texts for word in re.findall(r"\w+", text.lower())})
    tokenizer: Any = Tokenizer(WordLevel({word: place for place, word in enumerate((*SPECIAL, *words))}, "[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair=None, special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    parts = _parts(folder, tokenizer, len(SPECIAL) + len(words))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        SentenceTransformer(modules=parts, device="cpu").save(str(folder), create_model_card=False)
    return folder


def _parts(folder: Path, tokenizer: Any, n_words: int) -> list[Any]:
    import torch
    from sentence_transformers.models import Normalize, Pooling, Transformer
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    torch.manual_seed(3)
    config = BertConfig(
        vocab_size=n_words,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.2,
        hidden_dropout_prob=0.0,
    )
    plain = folder.with_name(f"{folder.name}.plain")
    BertModel(config).save_pretrained(plain)
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL, strict=True))
    made: Any = PreTrainedTokenizerFast
    made(tokenizer_object=tokenizer, model_max_length=64, **names).save_pretrained(plain)
    transformer = Transformer(str(plain), max_seq_length=64)
    return [transformer, Pooling(transformer.get_embedding_dimension(), "mean"), Normalize()]

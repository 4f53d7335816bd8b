"""A tiny random causal language model with a real tokenizer, made here: no download, a few hundred kilobytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

WORDS = [chr(c) for c in range(ord("a"), ord("z") + 1)] + [" ", ".", "\n", "`", "#", "é", "?", ":"]
SIZE = 3 + len(WORDS)
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<{{ message['role'] }}> {{ message['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant> {% endif %}"
)


def make(folder: Path, *, chat: bool = False, seed: int = 0, byte_level: bool = False, config: Any = None) -> Path:
    """Write the model to `folder` in the format of transformers and return it; `byte_level` has one token a byte.

    `config` is for a model of another architecture, with a vocabulary of `SIZE`.
    """
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedTokenizerFast

    words = sorted(pre_tokenizers.ByteLevel.alphabet()) if byte_level else WORDS
    vocabulary = {token: k for k, token in enumerate(["<bos>", "<eos>", "<unk>", *words])}
    if byte_level:
        inner = Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>"))
        inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        inner.decoder = decoders.ByteLevel()
    else:
        inner = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
        inner.pre_tokenizer = pre_tokenizers.Split("", "isolated")
        inner.decoder = decoders.Fuse()
    inner.post_processor = processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 0)])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        bos_token="<bos>",
        eos_token="<eos>",
        unk_token="<unk>",
        clean_up_tokenization_spaces=False,
    )
    if chat:
        tokenizer.chat_template = TEMPLATE
    torch.manual_seed(seed)
    config = config or LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        bos_token_id=0,
        eos_token_id=1,
        initializer_range=0.4,
    )
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder

"""Tiny random models of many architectures, in float32, made here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

VOCABULARY = 97
_SIZE: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
}


def _config(name: str, **more: Any) -> Callable[[], Any]:
    def make() -> Any:
        import transformers

        return getattr(transformers, name)(**{**_SIZE, **more})

    return make


def _gpt2() -> Any:
    from transformers import GPT2Config

    return GPT2Config(vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=256)


_SLIDING = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 7}

# Those that share a context, and those that the library's own way must take.
SHARING: dict[str, Callable[[], Any]] = {
    "llama": _config("LlamaConfig"),
    "mistral": _config("MistralConfig", sliding_window=7),
    "qwen2": _config("Qwen2Config"),
    "qwen3": _config("Qwen3Config", head_dim=16),
    "gemma": _config("GemmaConfig", head_dim=16),
    "gemma2": _config("Gemma2Config", head_dim=16, attn_logit_softcapping=3.0, query_pre_attn_scalar=16, **_SLIDING),
    "gemma3": _config("Gemma3TextConfig", head_dim=16, query_pre_attn_scalar=16, **_SLIDING),
    "olmo2": _config("Olmo2Config"),
    "phi3": _config("Phi3Config"),
    "smollm3": _config("SmolLM3Config"),
    "gpt-oss": _config("GptOssConfig", head_dim=16, num_local_experts=4, num_experts_per_tok=2, **_SLIDING),
    "gpt2": _gpt2,
    "pythia": _config("GPTNeoXConfig"),
}
PLAIN: dict[str, Callable[[], Any]] = {
    "mamba": _config("MambaConfig", state_size=8),
    "llama4": _config(
        "Llama4TextConfig", head_dim=8, intermediate_size_mlp=48, num_local_experts=2, attention_chunk_size=32
    ),
}


def make(config: Any) -> Any:
    """A model with random weights that are large enough to matter, in evaluation mode."""
    import torch
    from transformers import AutoModelForCausalLM

    torch.manual_seed(0)
    net = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for parameter in net.parameters():
            if parameter.dim() > 1:
                parameter.mul_(6)
    return net.eval()

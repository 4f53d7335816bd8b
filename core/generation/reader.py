"""How a local model reads a text: its tokenizer, its chat template and its limit, without its weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.errors import OvertonError
from core.heavy import LOADING
from core.models import Located


class TokenReader:
    """The tokenizer of a model; fulfils `core.generation.base.Reads`."""

    def __init__(self, model: str, revision: str, tokenizer: Any, config: Any) -> None:
        self.model = model
        self.revision = revision
        self.tokenizer = tokenizer
        self.chat = bool(tokenizer.chat_template)
        self.limit = int(getattr(config.get_text_config(), "max_position_embeddings", 0) or 2048)
        bos = tokenizer.bos_token_id
        self._adds_bos = bos is not None and tokenizer("a")["input_ids"][:1] == [bos]

    def encode(self, context: str) -> list[int]:
        """The token ids of a context, with exactly one BOS where the model wants one."""
        # The library would add a second BOS to a chat template that already starts with one.
        bos = self.tokenizer.bos_token
        ids = self.bare(context)
        if self._adds_bos and not (bos and context.startswith(bos)):
            ids.insert(0, self.tokenizer.bos_token_id)
        return ids

    def bare(self, text: str) -> list[int]:
        """The token ids of a text by itself."""
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def special(self, texts: Sequence[str]) -> set[int]:
        """The ids of those texts that are special tokens: decoding leaves these out, so no text ever holds them."""
        known = {str(token): int(k) for k, token in self.tokenizer.added_tokens_decoder.items() if token.special}
        return {known[text] for text in texts if text in known}

    def count_tokens(self, context: str) -> int:
        """Number of tokens that the model reads for this context, special tokens included."""
        return len(self.encode(context))

    def chat_context(self, prompt: str) -> str:
        """The model's own chat template around one user message. Raises `OvertonError` without a template."""
        return self.chat_messages([{"role": "user", "content": prompt}])

    def chat_messages(self, messages: Sequence[Mapping[str, str]]) -> str:
        """The model's own chat template around messages, ready for the answer.

        Raises `OvertonError` without a template, and for roles or an order of roles that the template refuses.
        """
        if not self.chat:
            raise OvertonError(f"{self.model} has no chat template: use the query/answer format.")
        try:
            made = self.tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True)
        except Exception as error:  # templates raise what they like
            roles = ", ".join(str(message.get("role")) for message in messages)
            raise OvertonError(
                f"The chat template of {self.model} refuses messages with the roles {roles}: use user and assistant "
                "in turn, beginning with user."
            ) from error
        return str(made)


def read_tokens(found: Located) -> TokenReader:
    """The reader of a model that was located. Raises `OvertonError` where its tokenizer cannot be loaded."""
    try:
        with LOADING:
            from transformers import AutoConfig, AutoTokenizer

            config: Any = AutoConfig.from_pretrained(found.source)
            tokenizer: Any = AutoTokenizer.from_pretrained(found.source)
    except Exception as error:  # the libraries raise many types: network, format, unknown architecture
        raise OvertonError(
            f"The tokenizer of {found.model} cannot be loaded ({type(error).__name__}): give a model of the "
            "catalogue, a folder in the format of transformers, or a hub id that this machine can reach."
        ) from error
    revision = found.revision
    if revision == "hub":
        revision = str(getattr(config, "_commit_hash", None) or "hub")[:12]
    return TokenReader(found.model, revision, tokenizer, config)

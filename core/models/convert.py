"""A GGUF file becomes a folder in the format of transformers: loading takes seconds from then on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from core.errors import OvertonError
from core.heavy import LOADING


def check_gguf(file: Path) -> str:
    """The architecture of a GGUF file. Raises `OvertonError` where it is damaged, cut short or not supported."""
    with LOADING:
        from gguf import GGUFReader
        from transformers.integrations.ggml import GGUF_CONFIG_MAPPING

    supported = sorted(GGUF_CONFIG_MAPPING)
    try:
        reader = GGUFReader(file)
        field = reader.fields["general.architecture"]
        architecture = bytes(field.parts[field.data[0]]).decode()
        ends = max((int(t.data_offset) + int(t.n_bytes) for t in reader.tensors), default=0)
    except Exception as error:  # the reader raises many types on a damaged file
        raise OvertonError(f"{file.name} is not a complete GGUF file: fetch or copy it again.") from error
    if ends == 0 or ends > file.stat().st_size:
        raise OvertonError(f"{file.name} is cut short: fetch or copy it again.")
    if architecture not in supported and architecture.replace("gemma3", "gemma3_text") not in supported:
        raise OvertonError(
            f"{file.name} holds a model of the kind {architecture!r}, which cannot be read; "
            f"supported are: {', '.join(supported)}."
        )
    return architecture


def gguf_to_folder(file: Path, folder: Path) -> None:
    """Write `file` as bfloat16 safetensors with its tokenizer. Raises `OvertonError` on a bad file."""
    check_gguf(file)
    with LOADING:
        _convert(file, folder)
    _forget_quantization(folder / "config.json")


def _convert(file: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
        loaded = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.bfloat16)
    except Exception as error:  # the library raises many types
        raise OvertonError(f"{file.name} cannot be converted ({type(error).__name__}).") from error
    # A model that was loaded from GGUF refuses to be saved, a plain one with the same weights does not.
    plain = AutoModelForCausalLM.from_config(loaded.config, dtype=torch.bfloat16)
    plain.load_state_dict(loaded.state_dict())
    plain.generation_config = loaded.generation_config
    plain.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _forget_quantization(config: Path) -> None:
    # The weights are plain now; the note of their origin would make the library look for the GGUF file.
    settings: dict[str, Any] = json.loads(config.read_text(encoding="utf-8"))
    settings.pop("quantization_config", None)
    config.write_text(json.dumps(settings, indent=2), encoding="utf-8")

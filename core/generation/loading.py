"""Loading a model: which device, which number format, how much memory it will take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
# Beside the weights: buffers, the working memory of one batch, and what the libraries take.
_OVERHEAD = 400 * 2**20


def device() -> str:
    """`cuda`, `mps` or `cpu`, the first that this machine has."""
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def dtype_for(place: str) -> Any:
    """The number format that the device computes fast: bfloat16 where its hardware has it.

    Else float16 on a graphics card, and float32 on a processor, where half precision would be emulated.
    """
    import torch

    if place == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float16
    if place == "mps":
        return torch.bfloat16 if torch.backends.mps.is_macos_or_newer(14, 0) else torch.float16
    return torch.bfloat16 if torch.ops.mkldnn._is_mkldnn_bf16_supported() else torch.float32


def size_in_memory(folder: Path, place: str) -> int:
    """Bytes that the model of a folder will take on a device, weights and working memory; 0 where that is unknown."""
    import torch

    stored = max(sum(file.stat().st_size for file in folder.glob(pattern)) for pattern in _WEIGHTS)
    if not stored:
        return 0
    width = torch.finfo(dtype_for(place)).bits / 8
    return int(stored * width / _stored_width(folder)) + _OVERHEAD


def _stored_width(folder: Path) -> float:
    """Bytes a number of the stored weights; 2 where the folder does not say."""
    import torch
    from transformers import AutoConfig

    try:
        named = AutoConfig.from_pretrained(folder).dtype
        return float(torch.finfo(named if isinstance(named, torch.dtype) else getattr(torch, str(named))).bits / 8)
    except (AttributeError, OSError, TypeError, ValueError):
        return 2.0


def hub_files(model: str) -> str:
    """The folder with the files of a hub model, which are downloaded if need be; others can load meanwhile."""
    from huggingface_hub import snapshot_download

    return str(snapshot_download(model, ignore_patterns=["*.gguf", "*.onnx", "*.msgpack", "*.h5", "original/*"]))


def out_of_memory(error: BaseException) -> bool:
    """Whether an error says that there was not enough memory, on whatever device."""
    import torch

    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    said = str(error).lower()
    return isinstance(error, RuntimeError) and ("allocate memory" in said or "out of memory" in said)
